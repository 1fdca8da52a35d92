"""The roles that exist in every workspace without being declared, as Kubernetes' and kcp's users know them.

Data, read by rbac.py (in force everywhere, referable by name) and by whoever lists system content. A workspace that
declares a ClusterRole of the same name adds its rules to these.
"""

from __future__ import annotations

from typing import Any

from apiserver.auth.user import AUTHENTICATED, MASTERS, SYNCERS

Manifest = dict[str, Any]

RBAC_GROUP = "rbac.authorization.k8s.io"
API_VERSION = f"{RBAC_GROUP}/v1"
AGGREGATE = f"{RBAC_GROUP}/aggregate-to-"
_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}

_READ = ["get", "list", "watch"]
_WRITE = ["create", "delete", "deletecollection", "patch", "update"]

_WORKLOADS: dict[str, list[str]] = {
    "": [
        "bindings", "configmaps", "endpoints", "events", "limitranges", "namespaces/status", "persistentvolumeclaims",
        "persistentvolumeclaims/status", "pods", "pods/log", "pods/status", "replicationcontrollers",
        "replicationcontrollers/scale", "replicationcontrollers/status", "resourcequotas", "resourcequotas/status",
        "serviceaccounts", "services", "services/status",
    ],
    "apps": [
        "controllerrevisions", "daemonsets", "daemonsets/status", "deployments", "deployments/scale",
        "deployments/status", "replicasets", "replicasets/scale", "replicasets/status", "statefulsets",
        "statefulsets/scale", "statefulsets/status",
    ],
    "autoscaling": ["horizontalpodautoscalers", "horizontalpodautoscalers/status"],
    "batch": ["cronjobs", "cronjobs/status", "jobs", "jobs/status"],
    "discovery.k8s.io": ["endpointslices"],
    "events.k8s.io": ["events"],
    "networking.k8s.io": ["ingresses", "ingresses/status", "networkpolicies"],
    "policy": ["poddisruptionbudgets", "poddisruptionbudgets/status"],
    "resource.k8s.io": ["resourceclaims", "resourceclaims/status", "resourceclaimtemplates"],
}  # fmt: skip
"""What `view` reads, by API group."""

_READ_ONLY = {"limitranges", "resourcequotas", "bindings", "controllerrevisions"}
"""Of these, what `edit` may not write."""


def _rule(verbs: list[str], groups: list[str], resources: list[str], names: list[str] | None = None) -> Manifest:
    found: Manifest = {"verbs": verbs, "apiGroups": groups, "resources": resources}
    return {**found, "resourceNames": names} if names else found


def _urls(verbs: list[str], urls: list[str]) -> Manifest:
    return {"verbs": verbs, "nonResourceURLs": urls}


def _role(name: str, rules: list[Manifest], labels: dict[str, str] | None = None) -> Manifest:
    metadata: Manifest = {"name": name, "labels": {**_LABELS, **(labels or {})}}
    return {"kind": "ClusterRole", "apiVersion": API_VERSION, "metadata": metadata, "rules": rules}


def _aggregated(name: str, labels: dict[str, str] | None = None) -> Manifest:
    selectors = [{"matchLabels": {f"{AGGREGATE}{name}": "true"}}]
    return {**_role(name, [], labels), "aggregationRule": {"clusterRoleSelectors": selectors}}


def _into(name: str) -> dict[str, str]:
    return {f"{AGGREGATE}{name}": "true"}


def _writable(resources: list[str]) -> list[str]:
    return [r for r in resources if r not in _READ_ONLY and not r.endswith("/status") and r != "pods/log"]


def _view_rules() -> list[Manifest]:
    # Namespaces themselves can be read: kubectl and dashboards look there first.
    extended = {**_WORKLOADS, "": [*_WORKLOADS[""], "namespaces"]}
    return [_rule(_READ, [group], resources) for group, resources in extended.items()]


def _edit_rules() -> list[Manifest]:
    writes = [_rule(_WRITE, [group], _writable(resources)) for group, resources in _WORKLOADS.items()]
    return [
        _rule([*_READ, *_WRITE], [""], ["secrets"]),
        _rule(["impersonate"], [""], ["serviceaccounts"]),
        _rule(["create"], [""], ["serviceaccounts/token"]),
        _rule([*_READ, *_WRITE], ["coordination.k8s.io"], ["leases"]),
        *writes,
    ]


def _admin_rules() -> list[Manifest]:
    return [
        _rule(["create"], ["authorization.k8s.io"], ["localsubjectaccessreviews"]),
        _rule([*_READ, *_WRITE], [RBAC_GROUP], ["roles", "rolebindings"]),
    ]


_DISCOVERY_URLS = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"]
_HEALTH_URLS = ["/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz", "/readyz/*"]
_LOGICAL_CLUSTERS = ["logicalclusters", "logicalclusters/status"]
_SELF_SUBJECT = ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]

CLUSTER_ROLES: dict[str, Manifest] = {
    role["metadata"]["name"]: role
    for role in (
        _role("cluster-admin", [_rule(["*"], ["*"], ["*"]), _urls(["*"], ["*"])]),
        _aggregated("admin"),
        _aggregated("edit", _into("admin")),
        _aggregated("view", _into("edit")),
        _role("system:aggregate-to-admin", _admin_rules(), _into("admin")),
        _role("system:aggregate-to-edit", _edit_rules(), _into("edit")),
        _role("system:aggregate-to-view", _view_rules(), _into("view")),
        _role("system:discovery", [_urls(["get"], [*_DISCOVERY_URLS, *_HEALTH_URLS])]),
        _role(
            "system:public-info-viewer", [_urls(["get"], ["/healthz", "/livez", "/readyz", "/version", "/version/"])]
        ),
        _role(
            "system:basic-user",
            [
                _rule(["create"], ["authorization.k8s.io"], _SELF_SUBJECT),
                _rule(["create"], ["authentication.k8s.io"], ["selfsubjectreviews"]),
            ],
        ),
        _role("system:kcp:workspace:access", [_urls(["access"], ["/"])]),
        _role("system:kcp:tenancy:reader", [_rule(_READ, ["tenancy.kcp.io"], ["workspaces", "workspacetypes"])]),
        _role(
            "system:kcp:tenancy:workspace-bootstrapper",
            [_rule(["*"], ["*"], ["*"]), _urls(["*"], ["*"])],
        ),
        _role("system:kcp:logical-cluster-admin", [_rule(["*"], ["core.kcp.io"], _LOGICAL_CLUSTERS)]),
        _role(
            "system:kcp:external-logical-cluster-admin",
            [_rule(["delete", "get", "list", "watch"], ["core.kcp.io"], ["logicalclusters"]), _urls(["access"], ["/"])],
        ),
        _role("system:kcp:metrics-reader", [_urls(["get"], ["/metrics"])]),
    )
}
"""By name."""


def _binding(name: str, role: str, groups: list[str]) -> Manifest:
    return {
        "kind": "ClusterRoleBinding",
        "apiVersion": API_VERSION,
        "metadata": {"name": name, "labels": dict(_LABELS)},
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": group} for group in groups],
    }


CLUSTER_ROLE_BINDINGS: tuple[Manifest, ...] = (
    _binding("cluster-admin", "cluster-admin", [MASTERS]),
    _binding("system:discovery", "system:discovery", [AUTHENTICATED]),
    _binding("system:basic-user", "system:basic-user", [AUTHENTICATED]),
)
"""In force in every workspace, for those who have access to it."""

TARGET_BINDINGS: tuple[Manifest, ...] = (
    *CLUSTER_ROLE_BINDINGS,
    _binding("system:treeplane:syncer", "cluster-admin", [SYNCERS]),
)
"""In force in embedded sync targets, which are clusters without workspaces: nobody needs access to one."""
