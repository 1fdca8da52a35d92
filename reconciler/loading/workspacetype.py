"""The type of a workspace that is judged, and what it brings.

Called by phases.typed. A type decides when the workspace appears; from then on the workspace has it, whatever becomes
of its parent's default or of a nearer type of that name. What a type says (bindings, writes) follows its object while
that is there; when it goes, its workspaces keep what they had. So no change of a type holds a workspace that is served.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import orjson

from apiserver.model import marks, origins, paths
from apiserver.registry import workspacetypes as types
from apiserver.registry.catalog import BINDINGS
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.workspacetypes import ResolvedType, TypeRef
from apiserver.storage.protocol import ReadView
from reconciler.layout.errors import LayoutError
from reconciler.loading.case import Case, Recorded, was_served
from reconciler.loading.gather import Gathered
from reconciler.loading.world import World
from reconciler.plan.summary import Summary

Object = dict[str, Any]

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


class HasType(Protocol):
    """What a workspace has of its type already."""

    def former(self, manifest: Object | None, before: Object | None, /) -> TypeRef | None:
        """The type that it has and keeps; None if it never was served, or workspace.yaml says less than before, so that
        it asks for another one. `manifest`: what workspace.yaml says now, and `before`."""

    def builtins(self, found: ResolvedType) -> str:
        """What a workspace starts with never changes, whatever its type says by now."""

    def as_it_was(self, found: ResolvedType) -> ResolvedType:
        """What a type brought that is no more."""


def type_of(world: World, case: Case, gathered: Gathered, has: HasType) -> Typed:
    """Asks `world` for the type, which may have to be judged first."""
    manifest = gathered.workspace.value if gathered.workspace else None
    former = has.former(manifest, gathered.old_workspace.value if gathered.old_workspace else None)
    found = world.type_of(manifest, case.path, former)
    problems = _problems(case, gathered, found) if former is None or found.ref != former else []
    if former is None or found.ref != former or case.path == paths.ROOT:
        return Typed(found, problems, said_of(found.ref, manifest))
    kind = has.as_it_was(found) if found.error else replace(found, builtins=has.builtins(found))
    brought: Object = {}
    if found.error:
        brought = {"writes": kind.writes, "builtins": kind.builtins, "bindings": [f"{p}:{n}" for p, n in kind.bindings]}
    elif kind.builtins != found.builtins:
        brought = {"builtins": kind.builtins}
    return Typed(kind, [], said_of(found.ref, manifest), brought)


class Served(NamedTuple):
    """By its record and what the store holds."""

    store: ReadView
    record: WorkspaceRecord | None

    def former(self, manifest: Object | None, before: Object | None) -> TypeRef | None:
        if self.record is None or not self.record.served:
            return None
        said, was = types.wanted(manifest), types.wanted(before)
        return TypeRef.parse(self.record.type) if said == was or all(said) else None

    def builtins(self, found: ResolvedType) -> str:
        return self.record.builtins if self.record is not None else found.builtins

    def as_it_was(self, found: ResolvedType) -> ResolvedType:
        assert self.record is not None
        stored = (orjson.loads(r.value) for r in self.store.scan(BINDINGS, self.record.cluster).records)
        exports = [b["spec"]["reference"]["export"] for b in stored if _is_default(b)]
        bindings = tuple((str(e["path"]), str(e["name"])) for e in exports)
        return ResolvedType(found.ref, bindings, writes=self.record.writes, builtins=self.record.builtins)


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

    def as_it_was(self, found: ResolvedType) -> ResolvedType:
        brought = self.recorded.summary.brought
        split = (text.rpartition(":") for text in brought.get("bindings") or ())
        bindings = tuple((path, name) for path, _, name in split)
        return ResolvedType(found.ref, bindings, writes=brought.get("writes", ""), builtins=brought.get("builtins", ""))


def said_of(ref: TypeRef, manifest: Object | None) -> str:
    """The type as Summary.type holds it: "" where the manifest says all of it, or it is the usual one."""
    said = all(types.wanted(manifest))
    return "" if said or str(ref) == _UNIVERSAL or ref == TypeRef("root", paths.ROOT) else str(ref)


def _is_default(binding: Object) -> bool:
    annotations = binding["metadata"].get("annotations") or {}
    return annotations.get(marks.ORIGIN) == marks.SYSTEM and not origins.path_in(annotations)


def _problems(case: Case, gathered: Gathered, kind: ResolvedType) -> list[LayoutError]:
    manifest = gathered.workspace
    path, line = (str(manifest.origin), manifest.line) if manifest else (case.path, 0)
    if kind.error and case.path != paths.ROOT:
        return [LayoutError(path, line, 0, kind.error, kind.remedy)]
    if case.record is not None and case.record.served and case.record.type != str(kind.ref):
        text = f"spec.type is immutable: it is {case.record.type}, not {kind.ref}"
        return [LayoutError(path, line, 0, text, "recreate the workspace in two commits")]
    return []
