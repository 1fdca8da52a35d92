"""Which kinds a workspace serves, decided from content: its CRDs and its APIBindings against the providers' exports.

Called by loading for each workspace whose CRDs or bindings changed, or one of whose providers did. Never looks at a
binding's phase: a binding and its objects may arrive in one commit. What it finds becomes the bindings' status, from
which the apiserver serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from apiserver.model.conditions import Condition, condition, merged
from apiserver.registry.kinds import KindTable, ServedKind, kinds_of_crd, kinds_of_schema, overlay

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Export:
    """An APIExport at its provider's served commit: the provider's logical cluster, identity hash and schemas.

    `missing`: names in spec.latestResourceSchemas that the provider does not have.
    """

    path: str
    name: str
    cluster: str
    identity: str
    schemas: tuple[Object, ...]
    missing: tuple[str, ...] = ()


FindExport = Callable[[str, str], Export | None]
"""(workspace path, export name) → the export, or None where there is none."""


@dataclass(frozen=True, slots=True)
class Apis:
    """The kinds, the status of each binding by name, and the providers that were looked at (path, export)."""

    kinds: KindTable
    bindings: dict[str, Object]
    providers: frozenset[tuple[str, str]]


def resolve(
    builtins: KindTable, crds: Iterable[Object], bindings: Iterable[Object], find: FindExport, home: str, at: str
) -> Apis:
    """`crds` carry their computed status; `home` is the workspace's path (an export without path is its own); `at`
    the time for conditions that change (RFC 3339)."""
    crds, bindings = list(crds), list(bindings)
    if not crds and not bindings:
        return Apis(builtins, {}, frozenset())
    kinds: list[ServedKind] = []
    taken = {(k.group, k.resource): "a built-in kind" for k in builtins.all()}
    for crd in crds:
        for kind in kinds_of_crd(crd):
            kinds.append(kind)
            taken[kind.group, kind.resource] = f"the CustomResourceDefinition {crd['metadata']['name']}"
    statuses: dict[str, Object] = {}
    providers = set()
    for binding in sorted(bindings, key=lambda b: str(b["metadata"]["name"])):
        name = binding["metadata"]["name"]
        reference = ((binding.get("spec") or {}).get("reference") or {}).get("export") or {}
        path = reference.get("path") or home
        providers.add((path, str(reference.get("name", ""))))
        export = find(path, str(reference.get("name", "")))
        found, status = _bind(binding, export, path, taken, at)
        kinds.extend(found)
        for kind in found:
            taken[kind.group, kind.resource] = f"the APIBinding {name}"
        statuses[name] = status
    return Apis(overlay(builtins, kinds) if kinds else builtins, statuses, frozenset(providers))


def _bind(
    binding: Object, export: Export | None, path: str, taken: dict[tuple[str, str], str], at: str
) -> tuple[list[ServedKind], Object]:
    wanted = binding["spec"]["reference"]["export"]["name"]
    if export is None:
        why = f"no APIExport {wanted} in workspace {path}: declare it there, or correct spec.reference.export"
        return [], _status(binding, None, [], {"APIExportValid": ("APIExportNotFound", why)}, at)
    if export.missing:
        why = f"APIExport {path}:{wanted} names schemas that do not exist: {', '.join(export.missing)}"
        return [], _status(binding, export, [], {"APIExportValid": ("InternalError", why)}, at)
    for schema in export.schemas:
        spec = schema["spec"]
        holder = taken.get((spec["group"], spec["names"]["plural"]))
        if holder is not None:
            what = f"{spec['names']['plural']}.{spec['group']}".rstrip(".")
            why = f"{what} is served already by {holder}: remove one of the two"
            return [], _status(binding, export, [], {"BindingUpToDate": ("NamingConflicts", why)}, at)
    kinds = [k for schema in export.schemas for k in kinds_of_schema(schema, export.identity)]
    bound = [_bound_resource(schema, export.identity) for schema in export.schemas]
    return kinds, _status(binding, export, bound, {}, at)


def _bound_resource(schema: Object, identity: str) -> Object:
    spec, metadata = schema["spec"], schema["metadata"]
    return {
        "group": spec["group"],
        "resource": spec["names"]["plural"],
        "schema": {"name": metadata["name"], "UID": metadata.get("uid", ""), "identityHash": identity},
        "storageVersions": [v["name"] for v in spec["versions"] if v.get("storage")],
    }


_CONDITIONS = ("APIExportValid", "BindingUpToDate", "InitialBindingCompleted", "PermissionClaimsValid",
               "PermissionClaimsApplied", "Ready")  # fmt: skip
_FAILS_WITH = {
    "APIExportValid": {"APIExportValid", "BindingUpToDate", "InitialBindingCompleted", "Ready"},
    "BindingUpToDate": {"BindingUpToDate", "InitialBindingCompleted", "Ready"},
}


def _status(
    binding: Object, export: Export | None, bound: list[Object], failed: dict[str, tuple[str, str]], at: str
) -> Object:
    conditions: list[Condition] = []
    broken: dict[str, tuple[str, str]] = {}
    for cause, text in failed.items():
        broken.update(dict.fromkeys(_FAILS_WITH[cause], text))
    for kind in _CONDITIONS:
        if kind in broken:
            conditions.append(condition(kind, False, broken[kind][0], broken[kind][1], at=at))
        else:
            conditions.append(condition(kind, True, at=at))
    status: Object = {
        "phase": "Bound" if not failed else "Binding",
        "conditions": merged((binding.get("status") or {}).get("conditions"), conditions),
        "boundResources": bound,
    }
    if export is not None:
        status["apiExportClusterName"] = export.cluster
    return status


def export_status(export: Object, identity: str, at: str) -> Object:
    """An APIExport's status: the identity hash and IdentityValid."""
    conditions = merged(
        (export.get("status") or {}).get("conditions"),
        [condition("IdentityValid", True, at=at)],
    )
    return {"identityHash": identity, "conditions": conditions}
