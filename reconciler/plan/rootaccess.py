"""What kcp grants every authenticated user in the workspace root, as objects, where treeplane.yaml says so.

Names and rules are those that kcp starts with. Called by system.py: like all that ships they stand in the store, so the
API's authorization knows them as it knows any other object of root, and asks nobody what the fleet is set to.
"""

from __future__ import annotations

from typing import Any

from apiserver.auth.bootstrap import API_VERSION, RBAC_GROUP
from apiserver.auth.user import AUTHENTICATED, BINDING_PREFIX
from apiserver.model.marks import ORIGIN, SYSTEM

Manifest = dict[str, Any]
Rule = dict[str, list[str]]

_READ = ["get", "list", "watch"]
_EXPORTS = {
    "tenancy": ["workspaces", "workspacetypes", "workspaceauthenticationconfigurations"],
    "topology": ["partitions", "partitionsets"],
}
"""The exports whose APIs all may bind, and what of them a consumer's own RBAC may give; each in its own group."""


def grants() -> list[Manifest]:
    """To enter root and look at the workspaces there, to bind what every workspace needs, to use the usual types."""
    own = [
        _binding("system:kcp:tenancy:authenticated:access", "system:kcp:workspace:access", AUTHENTICATED),
        _binding("system:kcp:authenticated:tenancy:reader", "system:kcp:tenancy:reader", AUTHENTICATED),
        *_given(
            "system:kcp:universal-workspacetype-use",
            [_rule(["use"], "tenancy.kcp.io", ["workspacetypes"], ["universal", "organization", "team"])],
            "system:kcp:authenticated:universal-workspacetype-use",
            AUTHENTICATED,
        ),
    ]
    return own + [manifest for name, resources in _EXPORTS.items() for manifest in _export(name, resources)]


def _export(name: str, resources: list[str]) -> list[Manifest]:
    group, called = f"{name}.kcp.io", f"apiexport:{name}"
    status = [f"{resource}/status" for resource in resources]
    bind = _rule(["bind"], "apis.kcp.io", ["apiexports"], [group])
    most = [_rule(["*"], group, resources), _rule(_READ, group, status)]
    everybody = f"{BINDING_PREFIX}{AUTHENTICATED}"
    policy = f"{called}:maximal-permission-policy"
    return [
        *_given(f"system:kcp:{called}:bind", [bind], f"system:kcp:authenticated:{called}:bind", AUTHENTICATED),
        *_given(f"system:kcp:{policy}", most, f"system:kcp:authenticated:{policy}", everybody),
    ]


def _given(role: str, rules: list[Rule], binding: str, group: str) -> list[Manifest]:
    return [{**_object("ClusterRole", role), "rules": rules}, _binding(binding, role, group)]


def _rule(verbs: list[str], group: str, resources: list[str], names: list[str] | None = None) -> Rule:
    found = {"verbs": verbs, "apiGroups": [group], "resources": resources}
    return {**found, "resourceNames": names} if names else found


def _binding(name: str, role: str, group: str) -> Manifest:
    return {
        **_object("ClusterRoleBinding", name),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": group}],
    }


def _object(kind: str, name: str) -> Manifest:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "annotations": {ORIGIN: SYSTEM}}}
