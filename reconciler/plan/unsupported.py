"""What kcp's kinds let one say and Treeplane does not do: the condition `Supported`, on the object that says it.

Called by loading for what git declares and by the controllers of sync targets and locations. It stands only where there
is something to say. What would limit somebody's rights is refused instead (registry/behaviours/own.py): whoever relied
on it would be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from apiserver.model.conditions import Condition, condition

Object = dict[str, Any]

SUPPORTED = "Supported"
_REASON = "NotSupported"
_BINDINGS = "apibindings.apis.kcp.io"


class _Field(NamedTuple):
    """`said` is asked with the spec; `instead`: what is so."""

    path: str
    said: Callable[[Object], bool]
    instead: str


def _any(field: str, instead: str) -> _Field:
    return _Field(f"spec.{field}", lambda spec: bool(spec.get(field)), instead)


def _accepts(spec: Object) -> bool:
    """Whether an APIBinding accepts claims. A rejected one gives nothing, which is what is done."""
    return any(claim.get("state") == "Accepted" for claim in spec.get("permissionClaims") or ())


def _names_key(spec: Object) -> bool:
    return bool((spec.get("identity") or {}).get("secretRef"))


def _initializes_only(spec: Object) -> bool:
    return bool(spec.get("defaultAPIBindingLifecycle") == "InitializeOnly")


_FIELDS: Mapping[str, tuple[_Field, ...]] = {
    _BINDINGS: (_Field("spec.permissionClaims", _accepts, "the provider gets access to nothing by it"),),
    "apiexports.apis.kcp.io": (
        _any("permissionClaims", "no consumer is asked, and no access is given"),
        _Field("spec.identity.secretRef", _names_key, "the identity key is a file of the server's keys"),
    ),
    "locations.scheduling.kcp.io": (
        _any("availableSelectorLabels", "what placements select by is not compared with it"),
    ),
    "synctargets.workload.kcp.io": (_any("cells", "nothing is spread by it"),),
    "workspacetypes.tenancy.kcp.io": (
        _any("initializer", "a workspace is Ready without waiting for a program"),
        _any("terminator", "a workspace goes without waiting for a program"),
        _any("additionalWorkspaceLabels", "workspaces get no labels by it"),
        _any("authenticationConfigurations", "only the server's ways of signing in are taken"),
        _Field("spec.defaultAPIBindingLifecycle", _initializes_only, "default bindings are always maintained"),
    ),
}
"""By store name."""


def stated(resource: str, obj: Object, at: str) -> list[Condition]:
    """What an object of this storage resource has to say of fields that do nothing: `Supported`, False and naming them,
    and kcp's own conditions that speak of the same. [] where all of it is done. `at`: their time (RFC 3339)."""
    spec = obj.get("spec") or {}
    said = [f"{field.path} ({field.instead})" for field in _FIELDS.get(resource, ()) if field.said(spec)]
    if not said:
        return []
    told = condition(SUPPORTED, False, _REASON, f"not supported yet: {', '.join(said)}", at=at)
    return [*(_of_claims(at) if resource == _BINDINGS else ()), told]


def _of_claims(at: str) -> Iterator[Condition]:
    why = "permission claims are not supported yet"
    yield condition("PermissionClaimsApplied", False, _REASON, f"{why}: none is applied", at=at)
    yield condition("PermissionClaimsValid", None, _REASON, f"{why}: nobody looks at them", at=at)


def with_stated(existing: Iterable[Condition], told: Iterable[Condition]) -> list[Condition]:
    """`existing` conditions with those of `stated` in their place, and without a `Supported` that is said no more."""
    new = {c["type"]: c for c in told}
    kept = [new.pop(c["type"], c) for c in existing if c["type"] != SUPPORTED or SUPPORTED in new]
    return [*kept, *new.values()]
