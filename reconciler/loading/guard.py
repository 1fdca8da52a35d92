"""Whether a commit may take away what it takes away from a workspace, or has to be allowed to.

Called by judge for a workspace whose content is good, and by removals for workspaces that go. All that decides (limits,
annotations, what is protected) is as it is served, never as the commit under judgement says. What is allowed is said by
a commit's trailer, which names this very loss (plan/deletions).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from apiserver.admission.committing import OWN_RUNTIME_KINDS
from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef, own
from apiserver.model.identity import sync_target_key
from apiserver.model.keys import Key, defined
from apiserver.model.origins import origin_of
from apiserver.model.storagenames import BINDINGS, CRDS, EXPORTS, SCHEMAS, SYNC_TARGETS, TYPES
from apiserver.registry import indexes
from apiserver.registry.catalog import Catalog
from apiserver.registry.exportspec import offered
from apiserver.registry.kinds import KindTable, storage_of
from apiserver.registry.tree import WorkspaceRecord, workspace_at
from apiserver.storage.protocol import Record, Store
from reconciler.layout.draft import Draft
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import ReadOnly
from reconciler.loading import copies
from reconciler.loading.saidbefore import RenderedBefore
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.sources import Sources
from reconciler.plan.deletions import (
    ALLOW,
    PROTECTED,
    Limits,
    Line,
    Loss,
    RefusedDeletion,
    copies_told,
    digest_of,
    refusal,
    standing,
)
from reconciler.plan.summary import Summary
from reconciler.plan.syncable import stays_upstream
from reconciler.repository import trailers
from reconciler.repository.objects import Repository

Object = dict[str, Any]

_CLAIMS = "persistentvolumeclaims"


class Taken(NamedTuple):
    """What a commit takes from a workspace. `removed`: the objects whose manifests go, of `total`; `edited`: Placements
    and Namespaces as they will be, which may take copies away; `kinds`: what the workspace serves from then on.
    `allowed`: what commits of its own source allow that came since what is served; asked for what is refused."""

    removed: Mapping[Key, Manifest]
    edited: Mapping[Key, Object]
    total: int
    kinds: KindTable
    allowed: Callable[[], Collection[str]] = tuple


@dataclass(slots=True)
class Guard:
    """Of one step, to `commit`. `before`: the records of workspaces as they were served when it began; `served`: their
    trees. `since`: the fleet's served commit then."""

    store: Store
    repo: Repository
    sources: Sources
    catalog: Catalog
    limits: Limits
    before: Callable[[str], WorkspaceRecord | None]
    served: ServedTrees
    commit: CommitRef
    since: CommitRef
    _allowed: dict[CommitRef, set[str]] = field(default_factory=dict)
    _above: dict[str, bool] = field(default_factory=dict)
    """Whether a workspace that others are in may go."""
    _types: dict[str, str] = field(default_factory=dict)
    """What types say of it."""

    def problem(self, record: WorkspaceRecord, taken: Taken, known: Summary) -> RefusedDeletion | None:
        """What of what a commit takes from a workspace has to be allowed first; None if it may go. `known`: the
        workspace's summary."""
        left = copies.left(self.store, record.cluster, {**dict.fromkeys(taken.removed), **taken.edited})
        if not taken.removed and not left:
            return None
        free, served = self.freed(record.path), frozenset(kind.storage for kind in taken.kinds.all())
        removed = (self.loss(record, key, manifest, served, free=free) for key, manifest in taken.removed.items())
        losses = (*removed, *self._copies(record, taken, left, free=free))
        why = refusal(losses, taken.total, self.limits)
        found = RefusedDeletion(losses, why) if why else None
        if self.commit == self.since:
            # Nobody said anything new: it stays held for what it is held for, in the words of then. What a recovery has
            # not (runtime objects in a namespace), and limits that changed since, make no difference.
            forgotten = self._forgotten(record, losses, left, known)
            found = standing((*losses, *forgotten), known.errors) or found
        if found is None or self.allows(found.losses, self._since(known)):
            return None
        return found if digest_of(found.losses) not in taken.allowed() else None

    def _copies(self, record: WorkspaceRecord, taken: Taken, left: Mapping[str, str], *, free: bool) -> Iterator[Loss]:
        """What is lost where namespaces are `left` behind."""
        for copy in copies.copies(self.store, self.catalog.kinds(record.cluster), record.path, record.cluster, left):
            if copy.record.key not in taken.removed:
                said = _said(_read(copy.record))
                freed = said == "false" or (free and said != "true")
                yield Loss(copy.line, "" if freed else copy.why, free=freed)

    def _forgotten(
        self, record: WorkspaceRecord, losses: Collection[Loss], left: Mapping[str, str], known: Summary
    ) -> Iterator[Loss]:
        """What the workspace is held for besides: copies of objects that no commit knows of."""
        lines = {loss.line for loss in losses}
        for line in copies_told(known.errors) if left else ():
            if line.path == record.path and line.namespace in left and line not in lines:
                yield Loss(line, left[line.namespace])

    def allows(self, losses: Iterable[Loss], since: CommitRef = NONE) -> bool:
        """Whether a commit says so that is not contained in `since` (NONE: in what was served before)."""
        return digest_of(losses) in self.said(since)

    def said(self, since: CommitRef = NONE) -> set[str]:
        """What such commits allow."""
        after = since if since and not since.repository and self.repo.has(since.id) else self.since
        if after not in self._allowed:
            self._allowed[after] = trailers.said(self.repo, self.commit.id, after.id, ALLOW)
        return self._allowed[after]

    def before_held(self, held: CommitRef) -> CommitRef:
        """See Summary.before, of a workspace that is held since the commit that is judged."""
        return NONE if self._first_parent(held) == self.since else self.since

    def _since(self, known: Summary) -> CommitRef:
        """What was served before a workspace was held, NONE if it is not."""
        return known.before or self._first_parent(known.held)

    def _first_parent(self, commit: CommitRef) -> CommitRef:
        parents = self.repo.commit(commit.id).parents if commit and self.repo.has(commit.id) else ()
        return own(parents[0]) if parents else NONE

    # -- one object

    def loss(
        self, record: WorkspaceRecord, key: Key, manifest: Manifest, served: Container[str] = (), *, free: bool
    ) -> Loss:
        """`served`: by store name, the resources that its workspace serves from then on; `free`: all of it may go."""
        line = line_of(record.path, key)
        said = _said(manifest.value)
        if said == "false" or (free and said != "true"):
            return Loss(line, free=True)
        if said == "true":
            return Loss(line, f"its annotation {PROTECTED} says so")
        return Loss(line, self._protected(key, served))

    def _protected(self, key: Key, served: Container[str]) -> str:
        """What hangs on an object, in words."""
        resource = key.resource.partition(":")[0]
        if resource == copies.NAMESPACES and self._holds_objects(key.cluster, key.name):
            return "it has objects"
        if resource == CRDS and defined(key.name) not in served and self._any(defined(key.name), key.cluster):
            return "there are objects of its kind"
        if resource == BINDINGS and any(s not in served and self._any(s, key.cluster) for s in self._bound(key)):
            return "there are objects of its kinds"
        if resource == EXPORTS and any(self._any(s, None) for s in self._exported(key)):
            return "consumers have objects of its kinds"
        if resource == SYNC_TARGETS and self._runs_something(sync_target_key(key.cluster, key.name)):
            return "it holds copies"
        if resource == _CLAIMS:
            return "it is storage, and so are its copies"
        return ""

    def _any(self, storage: str, cluster: str | None) -> bool:
        return bool(self.store.scan(storage, cluster, limit=1, count=False).records)

    def _holds_objects(self, cluster: str, namespace: str) -> bool:
        """What comes and goes by itself is none."""
        for kind in self.catalog.kinds(cluster).all():
            if not kind.namespaced or not kind.storage or kind.storage in OWN_RUNTIME_KINDS:
                continue
            for record in self.store.scan(kind.storage, cluster, namespace, limit=3, count=False).records:
                if not stays_upstream(kind.group_resource, {"metadata": {"name": record.key.name}}):
                    return True
        return False

    def _bound(self, key: Key) -> Iterator[str]:
        for resource in (_read(self.store.get(key)).get("status") or {}).get("boundResources") or ():
            yield storage_of(resource["group"], resource["resource"], resource["schema"]["identityHash"])

    def _exported(self, key: Key) -> Iterator[str]:
        export = _read(self.store.get(key))
        identity = (export.get("status") or {}).get("identityHash", "")
        for each in offered(export):
            if self.store.get(Key(SCHEMAS, key.cluster, "", each.schema)) is not None:
                yield storage_of(*each.resource, identity)

    def _runs_something(self, target: str) -> bool:
        terms = (indexes.runs(target), indexes.leaves(target))
        return any(self.store.indexed(indexes.PLACED, term, whole=True, limit=1) for term in terms)

    # -- what is free

    def freed(self, path: str) -> bool:
        """Whether all of a workspace may go. The nearest word counts: its own, its type's, then the same above it."""
        record, parent = self.before(path), paths.parent(path)
        said = self._said_of(record) if record is not None else ""
        if said or parent is None:
            return said == "false"
        if parent not in self._above:  # many go that have one parent
            self._above[parent] = self.freed(parent)
        return self._above[parent]

    def _said_of(self, record: WorkspaceRecord) -> str:
        tree = self.served.last(record)
        place = self.served.place(tree, record) if tree is not None else None
        if tree is not None and place is not None:
            found = self.sources.workspace(tree, place)
            said = _said(found.manifests[0].value) if found is not None and found.manifests else ""
            if said:
                return said
        if record.type not in self._types:
            where, _, name = record.type.rpartition(":")
            holder = self.before(where)
            kinds = self._declaring(holder, name) if holder is not None and holder.directory else ()
            words = (_said(m.value) for m in kinds if m.gvk.kind == "WorkspaceType" and m.name == name)
            self._types[record.type] = next(words, "")
        return self._types[record.type]

    def _declaring(self, holder: WorkspaceRecord, name: str) -> Iterator[Manifest]:
        """Manifests of a workspace, among them that of its type `name`, if it declares one. As long as the step did not
        come to it, what is stored names the file: beside that its directory may hold the whole fleet."""
        with self.store.view() as view:
            stored = view.get(Key(TYPES, holder.cluster, "", name))
            stands = workspace_at(view, holder.path) == holder
        origin = origin_of(_read(stored)) if stored is not None else None
        if stands and origin is None:
            return
        if stands and origin is not None:
            yield from self._piece(holder, origin.path)
        yield from self.manifests(holder)

    def _piece(self, record: WorkspaceRecord, name: str) -> Iterator[Manifest]:
        """One piece of what a workspace declares as it is served; nothing where its source tells only all of them."""
        tree = self.served.of(record)
        place = self.served.place(tree, record) if tree is not None else None
        if tree is None or place is None:
            return
        with suppress(ReadOnly):
            content = self.sources.served(tree, place, record.elsewhere)
            yield from self.sources.of(*content).editor(Draft(content.tree.repo, content.tree.tree_id)).find(name)

    def manifests(self, record: WorkspaceRecord) -> Iterator[Manifest]:
        """What a workspace declares as it is served."""
        tree = self.served.of(record)
        place = self.served.place(tree, record) if tree is not None else None
        if tree is not None and place is not None:
            said = RenderedBefore(self.store, record.cluster, always=False)
            for piece in self.sources.of(*self.sources.served(tree, place, record.elsewhere)).pieces():
                yield from said.of(piece)

    def outspoken(self, record: WorkspaceRecord) -> Iterator[Manifest]:
        """At least those of them that say whether they may go."""
        tree = self.served.of(record)
        place = self.served.place(tree, record) if tree is not None else None
        if tree is not None and place is not None:
            content = self.sources.served(tree, place, record.elsewhere)
            if self.sources.rendered(*content):
                yield from self.manifests(record)
            else:
                yield from self.sources.of(*content).mentioning(PROTECTED.encode())


def line_of(path: str, key: Key) -> Line:
    return Line(path, key.resource.partition(":")[0], key.namespace, key.name)


def _said(value: Object) -> str:
    found = (value.get("metadata") or {}).get("annotations") or {}
    return str(found.get(PROTECTED, ""))


def _read(record: Record | None) -> Object:
    found: Object = orjson.loads(record.value) if record is not None else {}
    return found
