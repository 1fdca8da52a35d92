"""What a commit has workspaces take of others that they did not take before: whose word that needs besides.

Called by gate, for commits whose voucher has to be asked about. Two trees are compared, at the cost of what differs,
and held against what is served; who may is owners' to say. An object that said the same in the tree before is not asked
about: whoever stood for that was asked, and what he might not is held by now. Nor is what it is served with, so neither
what is taken back nor a file or a workspace that moves; but what a pin has served is not what the branch says.

What programs make of files is not looked at, since a commit would wait for them: where owners are asked, nothing that
takes something of others may come of a program (phases/asking).

A workspace.yaml need not say all of its type. What it comes to is reckoned as judging will; since that follows from the
commits that are there by then, it is noted, and what turns out to be another type is held (phases/asking).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from apiserver.auth.pushing import is_declared
from apiserver.model import paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import TYPES, WORKSPACES
from apiserver.registry import codec, tree
from apiserver.registry import workspacetypes as types
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.reliance import RELYING, Named, stated
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.workspacetypes import TypeRef
from apiserver.storage.protocol import View
from reconciler.layout.compare import Touched, touched
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.sources import Sources
from reconciler.plan import system
from reconciler.plan.trespasses import Relying

Object = dict[str, Any]

_KINDS = {
    (entry.group, entry.kind): entry.qualified
    for entry in ENTRIES.values()
    if entry.qualified in RELYING and entry.qualified != WORKSPACES
}
_TEXTS = tuple(kind.encode() for _, kind in _KINDS)


class Reliance(NamedTuple):
    """That an object of the workspace at `path` is to take something of another. `file`: where it says so; `what`: the
    object, for people. `asks`: whether it did not before; if not, it is only said again."""

    path: str
    file: str
    what: str
    relying: Relying
    asks: bool


def storage_of_kind(manifest: Manifest) -> str:
    """The storage name of a manifest's kind, "" where none of its objects takes anything of others."""
    return _KINDS.get((manifest.gvk.group, manifest.gvk.kind), "")


def said_by(manifests: Iterable[Manifest], path: str) -> set[Relying]:
    """What some manifests of the workspace at `path` say."""
    return {
        Relying(f"{storage}/{manifest.name}", named)
        for manifest in manifests
        if (storage := storage_of_kind(manifest))
        for named in stated(storage, manifest.value, path)
    }


def is_served(view: View, record: WorkspaceRecord | None, relying: Relying) -> bool:
    """Whether a workspace is served with it already, by what git declares."""
    if record is None or not record.served:
        return False
    storage, _, name = relying.object.partition("/")
    if storage == WORKSPACES:
        return record.type == str(relying.named)
    found = view.get(Key(storage, record.cluster, "", name))
    obj = orjson.loads(found.value) if found is not None else None
    return obj is not None and is_declared(obj) and relying.named in stated(storage, obj, record.path)


@dataclass(slots=True)
class Reliances:
    """Of one commit. `record`: finds what is served of a workspace; `before`, `after`: the tree that the commit
    follows, and its own, which are opened for this alone. `push`: whether nothing of it is taken yet. Then what
    may move is what it will be; else that is seen when it has moved, or has not (phases/asking).
    """

    view: View
    record: Callable[[str], WorkspaceRecord | None]
    sources: Sources
    before: WorkspaceTree
    after: WorkspaceTree
    push: bool = False
    found: list[Reliance] = field(default_factory=list)
    types: dict[str, TypeRef] = field(default_factory=dict)
    """What workspaces mean that do not say all of their type, by path."""
    _touched: Touched = field(default_factory=Touched)
    _moved: dict[str, str] = field(default_factory=dict)
    _brought: dict[tuple[str, str], Object] = field(default_factory=dict)
    _refs: dict[str, TypeRef] = field(default_factory=dict)

    def find(self, only: frozenset[str] | None = None) -> Reliances:
        """Fills in `found` and `types`. `only`: of these workspaces, None for all that the commit touches."""
        try:
            self._touched = touched(self.after, self.before, self._known)
        except BadFile:
            return self  # such a commit is held as a whole
        self._moved = dict(self._moves()) if self.push else {}
        every = self._touched.changed | self._touched.appeared
        wanted = sorted(every if only is None else every & only, key=paths.depth)
        for path in wanted:
            place = self._touched.places.get(path) or self.after.find(path, self._directory(path))
            if place is not None:
                self._content(path, place)
        for path in wanted:
            place = self._touched.places.get(path) or self.after.find(path, self._directory(path))
            if place is not None and path != paths.ROOT:
                self._type(path, place)
        return self

    def summary(self, path: str) -> Object:
        """Of a workspace, wherever it is before it moves."""
        return tree.summary(self.view, self._moved.get(path, path))

    def appears(self, path: str) -> bool:
        """Whether a workspace was not there before."""
        return path in self._touched.appeared

    # -- where

    def _known(self, path: str) -> list[str] | None:
        record = tree.workspace_at(self.view, path)
        if record is not None and record.errors:
            return None
        return [record.directory] if record is not None and record.directory else []

    def _directory(self, path: str) -> str:
        record = tree.workspace_at(self.view, path)
        return record.directory if record is not None else ""

    def _served(self, path: str) -> WorkspaceRecord | None:
        """What is served of a workspace, wherever that is before it moves."""
        return self.record(self._moved.get(path, path))

    def _was(self, path: str) -> WorkspaceDir | None:
        old = self._moved.get(path, path)
        return self.before.find(old, self._directory(old))

    def _moves(self) -> Iterator[tuple[str, str]]:
        """The new place of each workspace that may move (loading/moves), and the old one."""
        found = self._touched
        if not (found.removed and found.appeared):
            return
        said = {self._stated(path): path for path in found.appeared}
        tops = {}
        for old in found.removed:
            record = tree.workspace_at(self.view, old)
            uid = self._uid(record) if record is not None else ""
            first = tree.summary(self.view, old).get("first") if record is not None else None
            new = (said.get(uid) if uid else None) or (first if first in found.appeared else None)
            if new:
                tops[new] = old
        for path in found.appeared:
            above = next((new for new in tops if paths.is_within(path, new)), "")
            if above:
                yield path, tops[above] + path[len(above) :]

    def _stated(self, path: str) -> str:
        place = self._touched.places.get(path)
        return self.sources.stated_uid(self.after, place) if place is not None else ""

    def _uid(self, record: WorkspaceRecord) -> str:
        parent = tree.workspace_at(self.view, record.parent) if record.parent else None
        key = Key(WORKSPACES, parent.cluster, "", paths.base(record.path)) if parent is not None else None
        found = self.view.get(key) if key is not None else None
        return codec.uid_of(found.value) if found is not None else ""

    # -- what its own content says

    def _content(self, path: str, place: WorkspaceDir) -> None:
        was, here = self._was(path), self.sources.written(self.after, place)
        old, new = list[Manifest](), list[Manifest]()
        if was is None:
            new += here.mentioning(*_TEXTS)
        else:
            for change in here.changes(self.sources.written(self.before, was), _TEXTS):
                old += change.old.manifests if change.old is not None else ()
                new += change.new.manifests if change.new is not None else ()
        written = len(new)
        new += self._pinned(place, was)
        self._brought |= {(path, m.name): _as_type(m) for m in new if storage_of_kind(m) == TYPES}
        before, record = said_by(old, path), self._served(path)
        for number, manifest in enumerate(new):
            counts = number >= written or record is None or not record.pin
            for relying in sorted(said_by((manifest,), path)):
                asks = relying not in before and not (counts and is_served(self.view, record, relying))
                what = f"{manifest.gvk.kind} {manifest.name}"
                self.found.append(Reliance(path, str(manifest.origin), what, relying, asks))

    def _pinned(self, place: WorkspaceDir, was: WorkspaceDir | None) -> Iterator[Manifest]:
        """What a pin that is new has served. Of one that names a commit of a tenant's repository whoever stands for
        that is asked."""
        pin = self.sources.pin(self.after, place) if self.sources.source(self.after, place) is None else None
        before = self.sources.pin(self.before, was) if was is not None else None
        if pin is None or (before is not None and before.commit == pin.commit):
            return
        content = self.sources.pinned(self.after, place, pin.commit)
        if content is not None:
            yield from self.sources.written(*content).mentioning(*_TEXTS)

    # -- of which type it is

    def _type(self, path: str, place: WorkspaceDir) -> None:
        there, record = self._was(path), self._served(path)
        now, was = self._manifest(self.after, place), self._manifest(self.before, there)
        ref, _ = types.meant(now.value if now is not None else None, path, self._above(path), self._find_type)
        self._refs[path] = ref
        if now is None or (there is not None and there.manifest == place.manifest):
            return
        said, served = types.wanted(now.value), record is not None and record.served
        if record is not None and served and record.type == str(ref):
            return
        asks = was is None or types.wanted(was.value) != said
        if not (all(said) or served):
            asks = asks or self.summary(path).get("vouched") not in (None, str(ref))
            self.types[path] = ref
        relying = Relying(f"{WORKSPACES}/{paths.base(path)}", Named(TYPES, ref.path, ref.name))
        self.found.append(Reliance(path, str(now.origin), f"Workspace {paths.base(path)}", relying, asks))

    def _manifest(self, at: WorkspaceTree, place: WorkspaceDir | None) -> Manifest | None:
        piece = self.sources.workspace(at, place) if place is not None else None
        return next(iter(piece.manifests), None) if piece is not None else None

    def _above(self, path: str) -> TypeRef | None:
        """The type of the workspace in which one is."""
        parent = paths.parent(path)
        if parent is None or parent in self._refs:
            return self._refs.get(parent or "")
        record = self._served(parent)
        return TypeRef.parse(record.type) if record is not None else None

    def _find_type(self, path: str, name: str) -> Object | None:
        """A WorkspaceType that the commit brings, is served, or ships."""
        brought = self._brought.get((path, name))
        if brought is not None:
            return brought
        record = self._served(path)
        found = self.view.get(Key(TYPES, record.cluster, "", name)) if record is not None and record.served else None
        obj = orjson.loads(found.value) if found is not None else None
        return obj if obj is not None and is_declared(obj) else system.workspace_type(path, name)


def _as_type(manifest: Manifest) -> Object:
    """A WorkspaceType as far as it decides about the types of others; as somebody wrote it, so it need not be valid."""
    spec = manifest.value.get("spec")
    child = spec.get("defaultChildWorkspaceType") if isinstance(spec, dict) else None
    if not isinstance(child, dict) or not isinstance(child.get("name"), str):
        return {}
    path = child.get("path")
    return {
        "spec": {"defaultChildWorkspaceType": {"name": child["name"], "path": path if isinstance(path, str) else ""}}
    }
