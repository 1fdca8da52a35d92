"""What an APIBinding and an APIExport say of themselves: their statuses, in kcp's conditions.

Called by apis, which decides, and by loading. What a binding said last is what the status branch keeps of it, where it
does not follow from what its export offers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from apiserver.model.conditions import Condition, condition, get, merged
from apiserver.registry.behaviours import ofkubernetes
from apiserver.registry.permissionclaims import ClaimsAnswer, answered
from reconciler.plan.exports import Bound

Object = dict[str, Any]


class BindingTrouble(NamedTuple):
    """Why a binding does not take what its export offers: the condition that is False for it, and what it says."""

    condition: str
    reason: str
    message: str


_CONDITIONS = ("APIExportValid", "BindingUpToDate", "InitialBindingCompleted", "PermissionClaimsValid",
               "PermissionClaimsApplied", "Ready")  # fmt: skip
NAMING_CONFLICTS = "NamingConflicts"
"""Why a binding is not bound whose names others have."""
_STANDS_ON = {
    "APIExportValid": ("APIExportValid", "BindingUpToDate"),
    "BindingUpToDate": ("BindingUpToDate",),
}
_SHOWN = 5
_INITIAL = ("InitialBindingCompleted", "Ready")


class BindingOutcome(NamedTuple):
    """What a binding comes to. `cluster`: the provider's logical cluster, "" if there is none; `resources`: what is
    bound, None if it is not bound; `asked`: the export's permission claims, None where there is no export."""

    cluster: str
    resources: list[Object] | None
    trouble: BindingTrouble | None
    asked: Sequence[Object] | None = ()


def binding_status(binding: Object, outcome: BindingOutcome, at: str) -> Object:
    """One that is bound stays Bound and Ready, whatever becomes of its export: what is wrong then stands in the other
    conditions."""
    cluster, resources, trouble, asked = outcome
    bound = resources is not None
    broken = set(_STANDS_ON[trouble.condition]) | (set() if bound else set(_INITIAL)) if trouble is not None else set()
    conditions: list[Condition] = []
    for kind in _CONDITIONS:
        if kind in broken and trouble is not None:
            conditions.append(condition(kind, False, trouble.reason, trouble.message, at=at))
        else:
            conditions.append(condition(kind, True, at=at))
    answer = answered(asked or (), binding)
    told = _of_claims(answer, asked, at)
    conditions = [told.get(each["type"], each) for each in conditions]
    status: Object = {
        "phase": "Bound" if bound else "Binding",
        "conditions": merged((binding.get("status") or {}).get("conditions"), conditions),
        "boundResources": resources or [],
    }
    if cluster:
        status["apiExportClusterName"] = cluster
    if asked:
        status["exportPermissionClaims"] = list(asked)
    if answer.applied:
        status["appliedPermissionClaims"] = list(answer.applied)
    return status


def _of_claims(answer: ClaimsAnswer, asked: Sequence[Object] | None, at: str) -> dict[str, Condition]:
    """What is wrong with what it accepts."""
    if asked is None and answer.unexpected:
        why = "the APIExport is not there: none of the accepted permission claims is applied"
        return {"PermissionClaimsApplied": condition("PermissionClaimsApplied", False, "APIExportNotFound", why, at=at)}
    if answer.unexpected:
        shown, reason = answer.unexpected[:_SHOWN], "InvalidPermissionClaims"
        why = f"{len(answer.unexpected)} unexpected and/or invalid permission claims (showing first {len(shown)}): "
        severity, listed = "Error", _listed(shown)
    elif answer.mismatched:
        shown, reason = answer.mismatched[:_SHOWN], "PermissionClaimsMismatch"
        why = f"{len(answer.mismatched)} permission claim(s) have mismatched verbs or selectors "
        why += f"(showing first {len(shown)}): "
        severity, listed = "Warning", ", ".join(shown)
    else:
        return {}
    told = condition("PermissionClaimsValid", False, reason, why + listed, at=at)
    return {"PermissionClaimsValid": {**told, "severity": severity}}


def _listed(errors: Sequence[str]) -> str:
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"


class BindingInShort(NamedTuple):
    """A binding's status in short. `bound` None: it is not bound; `cluster`: the provider's logical cluster."""

    cluster: str
    bound: Bound | None
    trouble: BindingTrouble | None

    @staticmethod
    def of(status: Object) -> BindingInShort:
        found = ((kind, get(status.get("conditions"), kind)) for kind in _STANDS_ON)
        wrong = next(((kind, c) for kind, c in found if c is not None and c["status"] == "False"), None)
        trouble = BindingTrouble(wrong[0], wrong[1]["reason"], wrong[1]["message"]) if wrong is not None else None
        return BindingInShort(status.get("apiExportClusterName", ""), Bound.of(status), trouble)

    def as_json(self) -> Object:
        out: Object = {"cluster": self.cluster} if self.cluster else {}
        if self.bound is not None:
            out |= {"identity": self.bound.identity, "schemas": list(self.bound.schemas), "uids": list(self.bound.uids)}
        return out | (self.trouble._asdict() if self.trouble is not None else {})

    @staticmethod
    def from_json(found: Object) -> BindingInShort:
        cluster = found.get("cluster", "")
        bound = None
        if "schemas" in found:
            bound = Bound(cluster, found["identity"], tuple(found["schemas"]), tuple(found["uids"]))
        wrong = [found[each] for each in BindingTrouble._fields if each in found]
        return BindingInShort(cluster, bound, BindingTrouble(*wrong) if wrong else None)


def export_status(
    export: Object, identity: str, at: str = "", wrong: str = "", schemas: Iterable[Object | None] = ()
) -> Object:
    """An APIExport's status: the identity hash ("" while there is none), IdentityValid, and which of its `schemas` are
    of Kubernetes' own kinds and do not count; `wrong`: what is wrong with the key."""
    reason = "IdentityVerificationFailed" if wrong else ""
    told = [condition("IdentityValid", not wrong, reason, wrong, at=at), *_as_kubernetes(schemas, at)]
    conditions = merged((export.get("status") or {}).get("conditions"), told)
    return {**({"identityHash": identity} if identity else {}), "conditions": conditions}


def _as_kubernetes(schemas: Iterable[Object | None], at: str) -> list[Condition]:
    said = {each["metadata"]["name"]: ofkubernetes.ignored(each["spec"]) for each in schemas if each is not None}
    return ofkubernetes.told("; ".join(f"{name}: {why}" for name, why in said.items() if why), at)
