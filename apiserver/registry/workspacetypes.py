"""Workspace types: which one a workspace has, and whether it may stand where it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from apiserver.model import paths
from apiserver.registry.lifecycles import LIFECYCLES, name_of

Object = dict[str, Any]

FindType = Callable[[str, str], Object | None]
"""(workspace path, name) → the WorkspaceType, or None where there is none."""

FindCluster = Callable[[str], str]
"""The logical cluster name of the workspace at a path; "" where there is none."""


_TOLD = re.compile(r"\bworkspace type ([^\s:]+(?::[^\s:]+)+)")

DEFAULT = ("universal", "root")

MAINTAIN = "Maintain"
"""The lifecycle of default bindings that workspaces get too which are there already."""

OPEN_CIRCLE = "take one of these out of spec.extend.with"


@dataclass(frozen=True, slots=True)
class TypeRef:
    name: str
    path: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"

    @staticmethod
    def parse(text: str) -> TypeRef:
        """From `<path>:<name>`."""
        path, _, name = text.rpartition(":")
        return TypeRef(name, path)


@dataclass(frozen=True, slots=True)
class ResolvedType:
    """`error` is "" when all is well, and `remedy` says what to do about it; `bindings` are the exports (path, name)
    that the type, or one it extends, brings by default. `writes`, `builtins`: what it says of writes through the API
    and of the kinds it starts with, or what the nearest type says that it extends; "" if none does. `initial`: those of
    `bindings` that only a workspace gets which appears, or that it keeps; the others those too that are there
    already. `labels`: what the Workspace is labelled with where it does not say so itself. `initializers`,
    `terminators`: names of the programs that act on a workspace which appears, or goes (registry/lifecycles)."""

    ref: TypeRef
    bindings: tuple[tuple[str, str], ...] = ()
    error: str = ""
    remedy: str = ""
    writes: str = ""
    builtins: str = ""
    initial: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    initializers: tuple[str, ...] = ()
    terminators: tuple[str, ...] = ()

    def of_one_with(self, bindings: Iterable[tuple[str, str]]) -> ResolvedType:
        """As it is for a workspace that is there already, and has these bindings by its type: it keeps them."""
        maintained = [each for each in self.bindings if each not in self.initial]
        found = tuple(dict.fromkeys((*bindings, *maintained)))
        return replace(self, bindings=found, initial=tuple(each for each in found if each not in maintained))


def wanted(workspace: Object | None) -> tuple[str, str]:
    """Name and path of the type that a workspace.yaml asks for, each "" where it says nothing."""
    found = ((workspace or {}).get("spec") or {}).get("type") or {}
    return str(found.get("name") or ""), str(found.get("path") or "")


def by_path(workspace: Object, path_of: Callable[[str], str]) -> Object:
    """A Workspace that names where its type is by path, if there is such a workspace. `path_of`: of a workspace that is
    named by path or by logical cluster name, "" where there is none."""
    name, where = wanted(workspace)
    path = path_of(where) if where else ""
    return {**workspace, "spec": {**workspace["spec"], "type": {"name": name, "path": path}}} if path else workspace


def resolve(
    workspace: Object | None, path: str, parent: TypeRef | None, find: FindType, former: TypeRef | None = None
) -> ResolvedType:
    """The type of the workspace at `path`.

    `workspace`: its workspace.yaml (None: there is none). Without `spec.type` it is the default child type of the
    parent's type. A reference without a path is looked up in the parent and its ancestors, nearest first. `former`: the
    type that it has already, which it keeps unless workspace.yaml says otherwise; it may stay where it stands.
    """
    if path == paths.ROOT:
        return ResolvedType(TypeRef("root", "root"))
    name, where = wanted(workspace)
    if former is not None and name in ("", former.name) and where in ("", former.path):
        found = find(former.path, former.name)
        return _resolved(former, find, "") if found is not None else _unresolved(former)
    ref, kind = meant(workspace, path, parent, find)
    if kind is None:
        return _unresolved(ref)
    circle = circle_of(ref, find)
    if circle:
        return ResolvedType(ref, error=in_a_circle(circle), remedy=OPEN_CIRCLE)
    return _resolved(ref, find, _misplaced(ref, kind, parent, find))


def meant(workspace: Object | None, path: str, parent: TypeRef | None, find: FindType) -> tuple[TypeRef, Object | None]:
    """Which type a workspace.yaml means, for a workspace that has none yet: see `resolve`. With it, None where there is
    no such type."""
    name, where = wanted(workspace)
    if name:
        return _find(name, where, path, find)
    ref = _default_child(parent, find)
    return ref, find(ref.path, ref.name)


def _unresolved(ref: TypeRef) -> ResolvedType:
    error = f"workspace type {ref} cannot be resolved: no such WorkspaceType"
    return ResolvedType(ref, error=error, remedy="correct spec.type, or declare the WorkspaceType")


def _resolved(ref: TypeRef, find: FindType, error: str) -> ResolvedType:
    lineage = [(each, found.get("spec") or {}) for each, found in _lineage(ref, find)]
    brought = [
        ((str(b.get("path") or each.path), str(b["export"])), spec.get("defaultAPIBindingLifecycle") == MAINTAIN)
        for each, spec in lineage
        for b in spec.get("defaultAPIBindings") or ()
    ]
    bindings = tuple(dict.fromkeys(binding for binding, _ in brought))
    followed = {binding for binding, follows in brought if follows}
    initial = tuple(binding for binding in bindings if binding not in followed)
    labels = tuple(sorted((lineage[0][1].get("additionalWorkspaceLabels") or {}).items()))
    writes, builtins = (next((str(s[f]) for _, s in lineage if s.get(f)), "") for f in ("writes", "builtins"))
    remedy = "correct spec.type, or move the directory" if error else ""
    return ResolvedType(ref, bindings, error, remedy, writes, builtins, initial, labels)


def with_programs(kind: ResolvedType, find: FindType, cluster_of: FindCluster) -> ResolvedType:
    """The type with its initializers and terminators, and before them those of the types that it extends, as in kcp."""
    found: dict[str, list[str]] = {each.word: [] for each in LIFECYCLES}
    own, *others = _lineage(kind.ref, find)
    for ref, said in (*others, own):
        wanted = [each.word for each in LIFECYCLES if (said.get("spec") or {}).get(each.word)]
        cluster = cluster_of(ref.path) if wanted else ""
        for word in wanted:
            found[word] += [name_of(cluster, ref.name)] if cluster else []
    initializers, terminators = (tuple(found[each.word]) for each in LIFECYCLES)
    return replace(kind, initializers=initializers, terminators=terminators) if any(found.values()) else kind


def extends(ref: TypeRef, other: tuple[str, str], find: FindType) -> bool:
    """Whether a type is the other one (path and name), or extends it."""
    return any((each.path, each.name) == other for each, _ in _lineage(ref, find))


def circle_of(ref: TypeRef, find: FindType) -> list[TypeRef]:
    """A way from a type back to one on that way, by what each extends, that one first and last; [] if there is none."""
    way: dict[TypeRef, Iterator[TypeRef]] = {ref: _extended(ref, find)}
    seen = {ref}
    while way:
        following = next(way[[*way][-1]], None)
        if following is None:
            way.popitem()
        elif following in way:
            met = [*way]
            return [*met[met.index(following) :], following]
        elif following not in seen:
            seen.add(following)
            way[following] = _extended(following, find)
    return []


def told_of(error: str) -> TypeRef | None:
    """The type that an error names which tells what is wrong with a workspace's; None for all other errors."""
    found = _TOLD.search(error)
    return TypeRef.parse(found[1]) if found is not None else None


def in_a_circle(circle: list[TypeRef]) -> str:
    """In kcp's words."""
    return f"circular dependency detected in workspace type {circle[0]}: {' -> '.join(map(str, circle))}"


def sources(ref: TypeRef, find: FindType) -> set[str]:
    """Paths of the workspaces from which a type comes, and all that it extends."""
    return {ref.path, *(each.path for each, _ in _lineage(ref, find))}


def _default_child(parent: TypeRef | None, find: FindType) -> TypeRef:
    kind = find(parent.path, parent.name) if parent else None
    child = ((kind or {}).get("spec") or {}).get("defaultChildWorkspaceType") or {}
    return (
        TypeRef(child["name"], child.get("path") or (parent.path if parent else "root")) if child else TypeRef(*DEFAULT)
    )


def _find(name: str, where: str, path: str, find: FindType) -> tuple[TypeRef, Object | None]:
    if where:
        return TypeRef(name, where), find(where, name)
    at = paths.parent(path)
    while at is not None:
        kind = find(at, name)
        if kind is not None:
            return TypeRef(name, at), kind
        at = paths.parent(at)
    return TypeRef(name, paths.parent(path) or path), None


def _misplaced(ref: TypeRef, kind: Object, parent: TypeRef | None, find: FindType) -> str:
    if parent is None:
        return ""
    parents = (kind.get("spec") or {}).get("limitAllowedParents") or {}
    if parents.get("none"):
        return f"workspace type {ref} may stand under no other workspace"
    if parents.get("types") and not _listed(parent, parents["types"], find):
        allowed = ", ".join(f"{t.get('path', '')}:{t['name']}" for t in parents["types"])
        return f"workspace type {ref} may only stand under {allowed}, not under {parent}"
    parent_kind = find(parent.path, parent.name)
    children = ((parent_kind or {}).get("spec") or {}).get("limitAllowedChildren") or {}
    if children.get("none"):
        return f"workspace type {parent} allows no children"
    if children.get("types") and not _listed(ref, children["types"], find):
        allowed = ", ".join(f"{t.get('path', '')}:{t['name']}" for t in children["types"])
        return f"workspace type {parent} allows only children of {allowed}, not {ref}"
    return ""


def _listed(ref: TypeRef, types: list[Object], find: FindType) -> bool:
    """Whether `ref` or a type that it extends is in the list."""
    return any(
        t["name"] == each.name and (t.get("path") or each.path) == each.path
        for each, _ in _lineage(ref, find)
        for t in types
    )


def _lineage(ref: TypeRef, find: FindType) -> Iterator[tuple[TypeRef, Object]]:
    """The type and all that it extends, each once; {} stands for one that does not exist."""
    seen: set[TypeRef] = set()
    waiting = [ref]
    while waiting:
        current = waiting.pop(0)
        if current in seen:
            continue
        seen.add(current)
        kind = find(current.path, current.name) or {}
        yield current, kind
        waiting.extend(_said_to_extend(current, kind))


def _extended(ref: TypeRef, find: FindType) -> Iterator[TypeRef]:
    return _said_to_extend(ref, find(ref.path, ref.name) or {})


def _said_to_extend(ref: TypeRef, kind: Object) -> Iterator[TypeRef]:
    extended = ((kind.get("spec") or {}).get("extend") or {}).get("with") or ()
    return (TypeRef(t["name"], t.get("path") or ref.path) for t in extended)
