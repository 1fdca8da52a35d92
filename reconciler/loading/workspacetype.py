"""The type of a workspace that is judged, and what it brings.

Called by phases.typed. A type decides when the workspace appears; from then on the workspace has it, whatever becomes
of its parent's default or of a nearer type of that name. What a type says (bindings, writes) follows its object while
that is there; when it goes, its workspaces keep what they had. So no change of a type holds a workspace that is served.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from apiserver.model import paths
from apiserver.registry import workspacetypes as types
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.workspacetypes import ResolvedType, TypeRef
from reconciler.layout.errors import LayoutError
from reconciler.loading.case import Case, Recorded, was_served
from reconciler.loading.consequences import held_there, remedy, type_in
from reconciler.loading.gather import Gathered
from reconciler.loading.world import World
from reconciler.plan.summary import Summary

Object = dict[str, Any]

Exports = tuple[tuple[str, str], ...]
"""As (path, name)."""
Programs = tuple[Sequence[str], Sequence[str]]
"""Names of initializers, and of terminators."""

_UNIVERSAL = str(TypeRef(*types.DEFAULT))


class Typed(NamedTuple):
    """`kind`: the type with what it brings; `problems`: why the workspace cannot have it. `name` and `brought`: as
    Summary holds them, what cannot be found out again from the types that there are."""

    kind: ResolvedType
    problems: list[LayoutError]
    name: str = ""
    brought: Object | None = None

    def tell(self, known: Summary) -> None:
        known.type, known.brought = self.name, self.brought or {}
        known.defaults = [f"{path}:{name}" for path, name in self.kind.bindings]
        known.initializers, known.terminators = [*self.kind.initializers], [*self.kind.terminators]


class HasType(Protocol):
    """What a workspace has of its type already."""

    def former(self, manifest: Object | None, before: Object | None, /) -> TypeRef | None:
        """The type that it has and keeps; None if it never was served, or workspace.yaml says less than before, so that
        it asks for another one. `manifest`: what workspace.yaml says now, and `before`."""

    def builtins(self, found: ResolvedType) -> str:
        """What a workspace starts with never changes, whatever its type says by now."""

    def bindings(self) -> Exports:
        """Those that it got by its type, which it keeps."""

    def programs(self) -> Programs:
        """The initializers and terminators that it got when it appeared."""

    def stays(self) -> bool:
        """Whether it has what it had, whatever its type says by now."""

    def as_it_was(self, found: ResolvedType) -> ResolvedType:
        """What a type brought that is no more, or that does not count for now."""


def brought_by(has: ResolvedType | WorkspaceRecord) -> Object:
    """What a workspace has of its type, as Summary.brought holds it."""
    return {"writes": has.writes, "builtins": has.builtins, **({"labels": dict(has.labels)} if has.labels else {})}


def type_of(world: World, case: Case, gathered: Gathered, has: HasType) -> Typed:
    """Asks `world` for the type, which may have to be judged first."""
    manifest = gathered.workspace.value if gathered.workspace else None
    former = has.former(manifest, gathered.old_workspace.value if gathered.old_workspace else None)
    found = world.type_of(manifest, case.path, former)
    problems = _problems(world, case, gathered, found) if former is None or found.ref != former else []
    if former is None or found.ref != former or case.path == paths.ROOT:
        return Typed(found, problems, said_of(found.ref, manifest))
    as_it_was = bool(found.error) or has.stays()
    if as_it_was:
        kind = has.as_it_was(found)
    else:
        kind = replace(found.of_one_with(has.bindings()), builtins=has.builtins(found))
    initializers, terminators = has.programs()
    kind = replace(kind, initializers=tuple(initializers), terminators=tuple(terminators))
    brought: Object = {}
    if as_it_was:
        brought = brought_by(kind)
    elif kind.builtins != found.builtins:
        brought = {"builtins": kind.builtins}
    return Typed(kind, [], said_of(found.ref, manifest), brought)


class Served(NamedTuple):
    """By its record and its summary."""

    record: WorkspaceRecord | None
    known: Summary | None

    def former(self, manifest: Object | None, before: Object | None) -> TypeRef | None:
        if self.record is None or not self.record.served:
            return None
        said, was = types.wanted(manifest), types.wanted(before)
        return TypeRef.parse(self.record.type) if said == was or all(said) else None

    def builtins(self, found: ResolvedType) -> str:
        return self.record.builtins if self.record is not None else found.builtins

    def bindings(self) -> Exports:
        return _exports(self.known)

    def programs(self) -> Programs:
        return (self.record.initializers, self.record.terminators) if self.record is not None else ((), ())

    def stays(self) -> bool:
        return False

    def as_it_was(self, found: ResolvedType) -> ResolvedType:
        assert self.record is not None
        writes, builtins, labels = self.record.writes, self.record.builtins, tuple(self.record.labels.items())
        kept = self.bindings()
        return ResolvedType(found.ref, kept, writes=writes, builtins=builtins, labels=labels, initial=kept)


class RememberedType(NamedTuple):
    """By what the status branch says."""

    recorded: Recorded

    def former(self, manifest: Object | None, _before: Object | None) -> TypeRef | None:
        if not was_served(self.recorded):
            return None
        name, path = types.wanted(manifest)
        return TypeRef(name, path) if name and path else TypeRef.parse(self.recorded.summary.type or _UNIVERSAL)

    def builtins(self, found: ResolvedType) -> str:
        return str(self.recorded.summary.brought.get("builtins", found.builtins))

    def bindings(self) -> Exports:
        return _exports(self.recorded.summary)

    def programs(self) -> Programs:
        return self.recorded.summary.initializers, self.recorded.summary.terminators

    def stays(self) -> bool:
        """One that is held."""
        return self.recorded.summary.served is not None and "writes" in self.recorded.summary.brought

    def as_it_was(self, found: ResolvedType) -> ResolvedType:
        brought = self.recorded.summary.brought
        writes, builtins = brought.get("writes", ""), brought.get("builtins", "")
        labels = tuple((brought.get("labels") or {}).items())
        kept = self.bindings()
        return ResolvedType(found.ref, kept, writes=writes, builtins=builtins, labels=labels, initial=kept)


def _exports(known: Summary | None) -> Exports:
    split = (text.rpartition(":") for text in (known.defaults if known is not None else ()))
    return tuple((path, name) for path, _, name in split)


def said_of(ref: TypeRef, manifest: Object | None) -> str:
    """The type as Summary.type holds it: "" where the manifest says all of it, or it is the usual one."""
    usual = str(ref) == _UNIVERSAL or ref == TypeRef("root", paths.ROOT)
    return "" if usual or all(types.wanted(manifest)) else str(ref)


def _problems(world: World, case: Case, gathered: Gathered, kind: ResolvedType) -> list[LayoutError]:
    manifest = gathered.workspace
    path, line = (str(manifest.origin), manifest.line) if manifest else (case.path, 0)
    if kind.error and case.path != paths.ROOT:
        held = type_in(world, _meant(world, case.path, manifest.value if manifest else None, kind))
        if held:
            return [LayoutError(path, line, 0, kind.error + held_there(held), remedy(held), held)]
        return [LayoutError(path, line, 0, kind.error, kind.remedy)]
    if case.record is not None and case.record.served and case.record.type != str(kind.ref):
        text = f"spec.type is immutable: it is {case.record.type}, not {kind.ref}"
        return [LayoutError(path, line, 0, text, "recreate the workspace in two commits")]
    return []


def _meant(world: World, path: str, manifest: Object | None, kind: ResolvedType) -> Iterator[TypeRef]:
    """The types by which that one may be what it is: wherever one of its name would have been found, and the type of
    the workspace above."""
    name, where = types.wanted(manifest)
    above = paths.parent(path)
    at = above if name and not where else None
    while at is not None:
        yield TypeRef(name, at)
        at = paths.parent(at)
    yield kind.ref
    parent = world.record(above) if above is not None else None
    if parent is not None:
        yield TypeRef.parse(parent.type)
