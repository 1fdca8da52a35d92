"""Is the content of a workspace good, and what are its objects? Kinds first, then everything that uses them.

Called by judge. Finds every problem, not the first one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from apiserver.model import origins
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import KindTable, ServedKind, builtins_of
from apiserver.registry.tree import WorkspaceRecord
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.case import Case
from reconciler.loading.gather import Gathered
from reconciler.loading.render import Declared, Renderer, itself, key_of
from reconciler.loading.resolving import Identity, Resolving
from reconciler.loading.world import World
from reconciler.plan import apis, bootstrap
from reconciler.plan.exports import Turn
from reconciler.plan.residue import is_runtime

Object = dict[str, Any]

NAMESPACES = "namespaces"
_BY_LAYOUT = {
    ("tenancy.kcp.io", "Workspace"): "a directory with a workspace.yaml is a workspace",
    ("core.kcp.io", "LogicalCluster"): "every workspace has one",
}
_KINDS_FIRST = frozenset({"CustomResourceDefinition", "APIBinding", "APIExport", "APIResourceSchema"})


@dataclass(slots=True)
class Content:
    """`declared` by key; `removed`: what git declared and no longer does; `old`: the objects as git said before;
    `faulty`: (group, kind) of manifests with problems; `apis` only when kinds were decided anew."""

    kinds: KindTable
    declared: dict[Key, Declared] = field(default_factory=dict)
    removed: dict[Key, Manifest] = field(default_factory=dict)
    old: dict[Key, Object] = field(default_factory=dict)
    problems: list[LayoutError] = field(default_factory=list)
    faulty: set[tuple[str, str]] = field(default_factory=set)
    apis: apis.Apis | None = None


class Contents:
    """Judges content against the store's state and the rest of the fleet."""

    def __init__(self, world: World, catalog: Catalog, identity: Identity) -> None:
        self._world = world
        self._identity = identity
        self._catalog = catalog

    def examine(self, case: Case, record: WorkspaceRecord, gathered: Gathered, extra: Iterable[Manifest]) -> Content:
        """`record`: the workspace's, as it will be. `extra`: manifests that its type brings (default bindings).

        A provider's change holds no consumer: a binding whose export offers what the content does not fit keeps what it
        is bound to. Where that does not help, the problems are those with what is offered.
        """
        manifests = [*extra, *gathered.new] if gathered.complete else gathered.new
        keep: frozenset[str] = frozenset()
        first = content = self._examined(case, record, gathered, manifests, keep)
        while more := self._unfit(case, record.cluster, content):
            keep |= more
            content = self._examined(case, record, gathered, manifests, keep)
        return content if set(content.problems) <= set(first.problems) else first

    def _examined(
        self, case: Case, record: WorkspaceRecord, gathered: Gathered, new: list[Manifest], keep: frozenset[str]
    ) -> Content:
        cluster, builtins = record.cluster, builtins_of(record.builtins)
        was = self._catalog.kinds(cluster) if case.record is not None and case.record.served else builtins
        content = Content(was)
        content.problems.extend(gathered.problems)
        rest = new
        if gathered.complete:
            first = [m for m in new if m.gvk.kind in _KINDS_FIRST]
            rest = [m for m in new if m.gvk.kind not in _KINDS_FIRST]
            self._declare(first, builtins, cluster, gathered, content)
            resolving = Resolving(self._world, self._identity, case, cluster, content.declared)
            past = resolving.past()
            content.apis = resolving.resolve(builtins, replace(past, keep=past.keep | keep))
            content.kinds = content.apis.kinds
        self._declare(rest, content.kinds, cluster, gathered, content, _strict(case, content.apis))
        if content.kinds is not was:
            content.problems.extend(_changed_hands(content, was))
        self._look_back(gathered, was, cluster, content)
        self._check_others(case, cluster, gathered, content)
        return content

    def _unfit(self, case: Case, cluster: str, content: Content) -> frozenset[str]:
        """Bindings that take something else than they were bound to, which objects of the workspace do not fit."""
        return frozenset(
            name
            for name, turn in _turned(case, content.apis).items()
            if turn.kinds() & content.faulty or self._leaves_behind(turn.dropped(), cluster, content)
        )

    def _leaves_behind(self, storages: Iterable[str], cluster: str, content: Content) -> bool:
        """Whether there are objects of resources that would be served no more. What git removes with this is none."""
        return any(
            record.key not in content.removed
            for storage in storages
            for record in self._world.store.scan(storage, cluster).records
        )

    def _declare(
        self,
        manifests: Iterable[Manifest],
        kinds: KindTable,
        cluster: str,
        gathered: Gathered,
        out: Content,
        strict: Collection[tuple[str, str]] = (),
    ) -> None:
        """`strict`: (group, kind) of what nothing excuses."""

        def accepted(manifest: Manifest) -> Object | None:
            if gathered.accepted is None or (manifest.gvk.group, manifest.gvk.kind) in strict:
                return None
            return gathered.accepted(manifest)

        renderer = Renderer(kinds, cluster, gathered.line, accepted if strict else gathered.accepted)
        for manifest in manifests:
            refused = _refused(manifest)
            if refused is not None:
                out.problems.append(refused)
                continue
            declared, problems = renderer.render(manifest)
            out.problems.extend(problems)
            if problems:
                out.faulty.add((manifest.gvk.group, manifest.gvk.kind))
            if declared is None:
                continue
            other = out.declared.get(declared.key)
            if other is not None and other.manifest.origin.path:
                out.problems.extend(_twice(declared, other.manifest))
                continue
            out.declared[declared.key] = declared

    def _look_back(self, gathered: Gathered, was: KindTable, cluster: str, out: Content) -> None:
        """Which objects git said before, and which of them it says no more."""
        renderer = Renderer(was, cluster, lambda manifest, _: manifest.line, itself)
        for manifest in gathered.old:
            key = key_of(manifest, out.kinds, cluster) or key_of(manifest, was, cluster)
            if key is None:
                continue
            now = out.declared.get(key)
            if now is None:
                out.removed[key] = manifest
            elif _same(now, manifest):
                # Of what a schema knows no more git's part goes; what another default had filled in stays.
                out.old[key] = now.obj if _same_schema(now.kind, was) else manifest.value
            else:
                rendered, _ = renderer.render(manifest)
                out.old[key] = rendered.obj if rendered is not None else {"metadata": {}}

    def _check_others(self, case: Case, cluster: str, gathered: Gathered, out: Content) -> None:
        """Against what is stored already: namespaces that are used, objects that stand in files not looked at."""
        for key, declared in out.declared.items():
            if key.namespace and not self._has_namespace(key.namespace, cluster, gathered, out):
                text = f"{declared.kind.kind} {key.name} is in the namespace {key.namespace}, which is not declared"
                hint = f"add a manifest: {{apiVersion: v1, kind: Namespace, metadata: {{name: {key.namespace}}}}}"
                out.problems.append(declared.manifest.error(text, hint))
        if gathered.complete or case.record is None:
            return
        for key, declared in out.declared.items():
            record = self._world.store.get(key)
            if record is None:
                continue
            path = origins.file_of(codec.decode(record.value, 0))
            if path and path not in gathered.changed:
                text = f"{declared.kind.kind} {key.name} is declared twice: also in {path}"
                out.problems.append(declared.manifest.error(text))
                out.problems.append(
                    LayoutError(path, 0, 0, f"{text.partition(':')[0]}: also in {declared.manifest.path}")
                )

    def _has_namespace(self, name: str, cluster: str, gathered: Gathered, out: Content) -> bool:
        """A namespace that exists at runtime alone is none to build on: a clone would not have it."""
        key = Key(NAMESPACES, cluster, "", name)
        if key in out.declared or gathered.complete:
            return key in out.declared
        found = self._world.store.get(key)
        return found is not None and (name in bootstrap.NAMESPACES or not is_runtime(found.value))


def _turned(case: Case, found: apis.Apis | None) -> Mapping[str, Turn]:
    """Bindings that take what others offer, and not what they were bound to."""
    turned = found.turned.items() if found is not None else ()
    return {name: turn for name, turn in turned if turn.export.path != case.path}


def _strict(case: Case, found: apis.Apis | None) -> Collection[tuple[str, str]]:
    """(group, kind) of these: what does not fit them keeps its binding where it is, and needs no excuse there. At
    recovery what was accepted is put back."""
    return (
        () if case.recorded is not None else {kind for turn in _turned(case, found).values() for kind in turn.kinds()}
    )


def _changed_hands(content: Content, was: KindTable) -> Iterator[LayoutError]:
    """Manifests of a kind that another definition brings than the one that brought it so far: they would become other
    objects, and those that were there would go."""
    for key, declared in content.declared.items():
        kind, manifest = declared.kind, declared.manifest
        before = was.preferred(kind.group, kind.resource) if manifest.origin.path else None
        if before is not None and before.storage != kind.storage:
            text = f"{kind.kind} {key.name}: the kind changes hands, and this is no object of the new definition"
            hint = "remove it in the commit that removes the old one, and add it in a later one"
            yield manifest.error(text, hint)


def _refused(manifest: Manifest) -> LayoutError | None:
    """What the layout declares by directories is no manifest."""
    kind = (manifest.gvk.group, manifest.gvk.kind)
    if not manifest.origin.path or kind not in _BY_LAYOUT:
        return None
    text = f"{manifest.gvk.kind} {manifest.name} cannot be declared here"
    return manifest.error(text, _BY_LAYOUT[kind])


def _same(now: Declared, before: Manifest) -> bool:
    return now.manifest is before or now.manifest.value == before.value


def _same_schema(kind: ServedKind, was: KindTable) -> bool:
    """Whether a manifest means the object that it meant."""
    before = was.by_kind(kind.group, kind.version, kind.kind)
    return before is not None and before.schema.digest == kind.schema.digest


def _twice(declared: Declared, other: Manifest) -> list[LayoutError]:
    """An error of both files."""
    here, what = declared.manifest, f"{declared.kind.kind} {declared.key.name} is declared twice: also in "
    return [
        here.error(f"{what}{other.place}"),
        other.error(f"{what}{here.place}"),
    ]
