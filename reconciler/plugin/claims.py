"""Permission claims of the current workspace's APIBindings: shown, accepted, rejected; and what is told of those that
nobody has answered.

For `treeplane claims` and for whoever enters a workspace.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.plugin.client import Object
from reconciler.plugin.errors import PluginError
from reconciler.plugin.session import CLUSTERS, Session

BINDINGS = "/apis/apis.kcp.io/v1alpha2/apibindings"
ACCEPTED, REJECTED = "Accepted", "Rejected"
_COLUMNS = ("APIBINDING", "GROUP-RESOURCE", "VERBS", "STATUS")


def warnings(session: Session, path: str) -> list[str]:
    """Of the bindings of the workspace at `path`; none where they cannot be read."""
    answer = session.client.get(f"{CLUSTERS}{path}{BINDINGS}")
    found = answer.object.get("items") or [] if answer.status == 200 else []
    return [line for binding in found for line in _unanswered(binding)]


def _unanswered(binding: Object) -> Iterator[str]:
    name = binding["metadata"]["name"]
    answers = {_identity(claim): claim for claim in _said(binding)}
    for claim in _exported(binding):
        answer = answers.get(_identity(claim))
        verbs, allowed = claim.get("verbs") or [], (answer or {}).get("verbs") or []
        if answer is None:
            yield f"Warning: claim for {named(claim)} exported but not specified on APIBinding {name}"
            yield "Add this claim to the APIBinding's Spec."
        elif answer.get("state") not in (ACCEPTED, REJECTED):
            yield (f"Warning: claim for {named(claim)} specified on APIBinding {name} but not accepted or rejected.")
        elif answer["state"] == ACCEPTED and set(verbs) != set(allowed):
            yield (
                f"Warning: allowed verbs ({','.join(allowed)}) on claim for {named(claim)} on APIBinding {name} do not "
                f"match expected verbs ({','.join(verbs)})."
            )


def rows(session: Session, name: str = "") -> list[Object]:
    """Of one binding, or of all there are: each claim that it answers. Raises PluginError."""
    answer = session.client.get(session.within(f"{BINDINGS}/{name}" if name else BINDINGS))
    if answer.status != 200:
        raise answer.refusal()
    bindings = [answer.object] if name else answer.object.get("items") or []
    return [
        {
            "binding": binding["metadata"]["name"],
            "resource": _group_resource(claim),
            "verbs": claim.get("verbs") or [],
            "state": claim.get("state"),
        }
        for binding in bindings
        for claim in _said(binding)
    ]


def table(found: list[Object]) -> list[str]:
    """As kcp prints them."""
    cells = [_COLUMNS, *((f["binding"], f["resource"], ",".join(f["verbs"]), f["state"]) for f in found)]
    widths = [max(len(str(row[at])) for row in cells) + 3 for at in range(len(_COLUMNS))]
    return ["".join(str(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def answer_claims(session: Session, name: str, state: str, *, resource: str = "", identity: str = "") -> str:
    """The binding says `state` of the claims on `resource`, of the claim of that identity, or of all of them; what to
    tell of it. Raises PluginError where it has none such."""
    path = session.within(f"{BINDINGS}/{name}")
    found = session.client.get(path)
    if found.status != 200:
        raise found.refusal()
    binding = found.object
    said = _said(binding)
    there = {_identity(claim) for claim in said}
    asked = [claim for claim in _exported(binding) if _identity(claim) not in there]
    which = f'claim "{resource}"' if resource else f'claim with identity hash "{identity}"' if identity else "claim"
    if not any(_is_meant(claim, resource, identity) for claim in (*said, *asked)):
        raise PluginError(f'APIBinding "{name}" has no {which}')
    kept = [{**claim, "state": state} if _is_meant(claim, resource, identity) else claim for claim in said]
    kept += [answered(claim, state) for claim in asked if _is_meant(claim, resource, identity)]
    changed = {**binding, "spec": {**(binding.get("spec") or {}), "permissionClaims": kept}}
    written = session.client.send("PUT", path, changed)
    if written.status != 200:
        raise written.refusal()
    return f'{which if resource or identity else "every claim"} on APIBinding "{name}" is {state.lower()}'


def answered(claim: Object, state: str) -> Object:
    """What a binding says to a claim of an export."""
    same: Object = {field: claim[field] for field in ("group", "resource", "identityHash", "verbs") if field in claim}
    return {**same, "selector": claim.get("defaultSelector") or {"matchAll": True}, "state": state}


def group_resource(text: str) -> Object:
    """`resource.group`; `resource` or `resource.core` of Kubernetes' own group."""
    resource, _, group = text.partition(".")
    return {"group": "" if group == "core" else group, "resource": resource}


def named(claim: Object) -> str:
    """As kcp prints one."""
    name, identity = _group_resource(claim), claim.get("identityHash") or ""
    return f"{name}:{identity}" if claim.get("group") and identity else name


def _group_resource(claim: Object) -> str:
    return ".".join(filter(None, (claim.get("resource"), claim.get("group"))))


def _is_meant(claim: Object, resource: str, identity: str) -> bool:
    if identity:
        return bool(claim.get("identityHash") == identity)
    return not resource or group_resource(resource) == {
        "group": claim.get("group") or "",
        "resource": claim.get("resource"),
    }


def _identity(claim: Object) -> tuple[str, str, str]:
    return claim.get("group") or "", claim.get("resource") or "", claim.get("identityHash") or ""


def _said(binding: Object) -> list[Object]:
    return (binding.get("spec") or {}).get("permissionClaims") or []


def _exported(binding: Object) -> list[Object]:
    return (binding.get("status") or {}).get("exportPermissionClaims") or []
