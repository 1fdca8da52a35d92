"""The roles and bindings of every workspace that nobody declared, as Kubernetes' and kcp's users know them.

Data, read by rbac.py (in force everywhere, referable by name) and by whoever lists system content. A workspace that
declares a ClusterRole of the same name adds its rules to these.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from apiserver.auth.bootstrap_rules import roles
from apiserver.auth.user import AUTHENTICATED, MASTERS, SERVICE_ACCOUNTS, SYNCERS, UNAUTHENTICATED

Manifest = dict[str, Any]

RBAC_GROUP = "rbac.authorization.k8s.io"
API_VERSION = f"{RBAC_GROUP}/v1"
AGGREGATE = f"{RBAC_GROUP}/aggregate-to-"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}

_READ = ["get", "list", "watch"]


def _rule(verbs: list[str], groups: list[str], resources: list[str]) -> Manifest:
    return {"verbs": verbs, "apiGroups": groups, "resources": resources}


def _urls(verbs: list[str], urls: list[str]) -> Manifest:
    return {"verbs": verbs, "nonResourceURLs": urls}


def _role(name: str, rules: Sequence[Manifest], labels: dict[str, str] | None = None) -> Manifest:
    metadata: Manifest = {"name": name, "labels": {**_LABELS, **(labels or {})}}
    return {"kind": "ClusterRole", "apiVersion": API_VERSION, "metadata": metadata, "rules": list(rules)}


def _aggregated(name: str, labels: dict[str, str] | None = None) -> Manifest:
    selectors = [{"matchLabels": {f"{AGGREGATE}{name}": "true"}}]
    return {**_role(name, [], labels), "aggregationRule": {"clusterRoleSelectors": selectors}}


def _into(name: str) -> dict[str, str]:
    """Labels of a role that is part of `name`; none for ""."""
    return {f"{AGGREGATE}{name}": "true"} if name else {}


_CORE, _TENANCY, _APIS = ["core.kcp.io"], ["tenancy.kcp.io"], ["apis.kcp.io"]
_LOGICAL_CLUSTERS = ["logicalclusters", "logicalclusters/status"]
_AGGREGATED = {
    "system:aggregate-to-admin": "admin",
    "system:aggregate-to-edit": "edit",
    "system:aggregate-to-view": "view",
}

CLUSTER_ROLES: dict[str, Manifest] = {
    role["metadata"]["name"]: role
    for role in (
        _aggregated("admin"),
        _aggregated("edit", _into("admin")),
        _aggregated("view", _into("edit")),
        *(_role(name, rules, _into(_AGGREGATED.get(name, ""))) for name, rules in roles().items()),
        _role("system:kcp:workspace:access", [_urls(["access"], ["/"])]),
        _role(
            "system:kcp:tenancy:reader",
            [_rule(_READ, _TENANCY, ["workspaces", "workspacetypes"]), _rule(_READ, _CORE, ["logicalclusters"])],
        ),
        _role(
            "system:kcp:tenancy:workspace-bootstrapper",
            [_rule(["*"], ["*"], ["*"]), _urls(["*"], ["*"])],
        ),
        _role(
            "system:kcp:logical-cluster-admin",
            [
                _rule(["*"], _CORE, _LOGICAL_CLUSTERS),
                _rule(["delete", "update", "get"], _TENANCY, ["workspaces"]),
            ],
        ),
        _role(
            "system:kcp:external-logical-cluster-admin",
            [
                _rule(["delete", "update", "get"], _CORE, _LOGICAL_CLUSTERS),
                _rule(["delete", "update", "patch", "get"], _TENANCY, ["workspaces"]),
                _rule(["get"], [""], ["serviceaccounts", "secrets"]),
                _urls(["access"], ["/"]),
                _rule(["create"], ["authorization.k8s.io"], ["subjectaccessreviews"]),
                _rule(["update", "patch", "get"], _APIS, ["apiexportendpointslices/status"]),
                _rule(_READ, _APIS, ["apiexportendpointslices"]),
                _rule(["get"], _TENANCY, ["workspaceauthenticationconfigurations"]),
            ],
        ),
        _role("system:kcp:metrics-reader", [_urls(["get"], ["/metrics"])]),
        _role("system:treeplane:status-reader", [_urls(["get"], ["/status"])]),
        _role("system:treeplane:look-requester", [_urls(["get", "post"], ["/reconcile"])]),
    )
}
"""By name."""


def _binding(name: str, role: str, *subjects: str, kind: str = "Group") -> Manifest:
    return {
        "kind": "ClusterRoleBinding",
        "apiVersion": API_VERSION,
        "metadata": {"name": name, "labels": dict(_LABELS)},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": kind, "name": subject} for subject in subjects],
    }


def _user_binding(role: str, user: str) -> Manifest:
    return _binding(role, role, user, kind="User")


def cluster_manifests() -> list[Manifest]:
    """What a cluster has besides, as objects: the roles of Kubernetes' controllers, and who has them. In workspaces
    that are no clusters nobody is such a controller."""
    return [_cluster_manifest(fact) for fact in _controller_roles()]


@cache
def _controller_roles() -> list[Manifest]:
    found: list[Manifest] = orjson.loads(Path(__file__).with_name("controller_roles.json").read_bytes())
    return found


def _cluster_manifest(fact: Manifest) -> Manifest:
    content = {k: v for k, v in fact.items() if k not in ("kind", "name", "namespace")}
    place = {"namespace": fact["namespace"]} if "namespace" in fact else {}
    metadata = {"name": fact["name"], **place, "labels": dict(_LABELS)}
    return {"kind": fact["kind"], "apiVersion": API_VERSION, "metadata": metadata, **content}


CLUSTER_ROLE_BINDINGS: tuple[Manifest, ...] = (
    _binding("cluster-admin", "cluster-admin", MASTERS),
    _binding("system:basic-user", "system:basic-user", AUTHENTICATED),
    _binding("system:discovery", "system:discovery", AUTHENTICATED),
    _binding("system:kcp:admin:cluster-admin", "cluster-admin", "system:kcp:admin"),
    _user_binding("system:kube-controller-manager", "system:kube-controller-manager"),
    _user_binding("system:kube-scheduler", "system:kube-scheduler"),
    _binding("system:monitoring", "system:monitoring", "system:monitoring"),
    _user_binding("system:node-proxier", "system:kube-proxy"),
    _binding("system:public-info-viewer", "system:public-info-viewer", AUTHENTICATED, UNAUTHENTICATED),
    _binding("system:service-account-issuer-discovery", "system:service-account-issuer-discovery", SERVICE_ACCOUNTS),
    _user_binding("system:volume-scheduler", "system:kube-scheduler"),
)
"""In force in every workspace, for those who have access to it."""

TARGET_BINDINGS: tuple[Manifest, ...] = (
    *CLUSTER_ROLE_BINDINGS,
    _binding("system:treeplane:syncer", "cluster-admin", SYNCERS),
)
"""In force in embedded sync targets, clusters without workspaces: access has whoever is granted more than everybody."""
