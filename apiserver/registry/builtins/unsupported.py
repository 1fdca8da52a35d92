"""What kcp's kinds let one say and Treeplane does not do, kind by kind; told by reconciler/plan/unsupported.

What would limit somebody's rights is refused instead (behaviours/own.py): whoever relied on it would be wrong.
"""

from __future__ import annotations

from apiserver.registry.builtins.entry import Object, Unsupported


def _any(field: str, instead: str) -> Unsupported:
    return Unsupported(f"spec.{field}", lambda spec: bool(spec.get(field)), instead)


def _accepts(spec: Object) -> bool:
    """Whether an APIBinding accepts claims. A rejected one gives nothing, which is what is done."""
    return any(claim.get("state") == "Accepted" for claim in spec.get("permissionClaims") or ())


def _names_key(spec: Object) -> bool:
    return bool((spec.get("identity") or {}).get("secretRef"))


API_BINDING = (Unsupported("spec.permissionClaims", _accepts, "the provider gets access to nothing by it"),)
API_EXPORT = (
    _any("permissionClaims", "no consumer is asked, and no access is given"),
    Unsupported("spec.identity.secretRef", _names_key, "the identity key is a file of the server's keys"),
)
LOCATION = (_any("availableSelectorLabels", "what placements select by is not compared with it"),)
SYNC_TARGET = (_any("cells", "nothing is spread by it"),)
WORKSPACE_TYPE = (
    _any("initializer", "a workspace is Ready without waiting for a program"),
    _any("terminator", "a workspace goes without waiting for a program"),
    _any("authenticationConfigurations", "only the server's ways of signing in are taken"),
)
