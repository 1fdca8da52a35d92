"""The rights that a server needs on a sync target, as objects of that cluster. docs/targets.md shows these very ones.

Pure. One ServiceAccount, which may write what workspaces run, keep the Lease that says who writes, and renew its own
token; it may make a token of nobody else. It may list whatever there is, since a namespace that others keep something
in, of whatever kind, is not deleted (syncing/prune).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from apiserver.model.kinds import GroupResource
from apiserver.registry.kinds import kubernetes_builtins
from reconciler.plan.syncable import SYNCED
from reconciler.syncing.lease import NAMESPACE

Object = dict[str, Any]

ACCOUNT = "treeplane"
_RBAC = "rbac.authorization.k8s.io"
_LABELS = {"app.kubernetes.io/managed-by": "treeplane"}
_VERBS = ["get", "list", "watch", "create", "patch", "delete"]


def objects(more: Collection[GroupResource] = ()) -> list[Object]:
    """In the order in which they are made. `more`: kinds besides those that go down to every target."""
    return [_namespace(), _account(), *_everywhere(more), *_within()]


def _namespace() -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": _LABELS}}


def _account() -> Object:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _within_metadata()}


def _everywhere(more: Collection[GroupResource]) -> list[Object]:
    served = {kind.group_resource for kind in kubernetes_builtins().all()} & SYNCED
    wanted = {GroupResource("", "namespaces"), *served, *more}
    rules = [
        {"apiGroups": [group], "resources": sorted(k.resource for k in wanted if k.group == group), "verbs": _VERBS}
        for group in sorted({kind.group for kind in wanted})
    ]
    rules.append({"apiGroups": [""], "resources": ["events"], "verbs": ["list", "watch"]})
    rules.append({"apiGroups": ["*"], "resources": ["*"], "verbs": ["list"]})
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": _metadata(), "rules": rules}
    return [role, _binding("ClusterRole", _metadata())]


def _within() -> list[Object]:
    """In the namespace that is the server's own there."""
    rules = [
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "create", "update"]},
        {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [ACCOUNT], "verbs": ["create"]},
    ]
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": _within_metadata(), "rules": rules}
    return [role, _binding("Role", _within_metadata())]


def _binding(kind: str, metadata: Object) -> Object:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }


def _metadata() -> Object:
    return {"name": ACCOUNT, "labels": _LABELS}


def _within_metadata() -> Object:
    return {"name": ACCOUNT, "namespace": NAMESPACE, "labels": _LABELS}
