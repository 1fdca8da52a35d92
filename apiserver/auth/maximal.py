"""kcp's maximal permission policies: how far RBAC of those who bind an export may go with its objects.

An export that has one (spec.maximalPermissionPolicy.local) says so by RBAC of its own workspace, for users and groups
prefixed `apis.kcp.io:binding:`. Read here from a workspace's bindings and exports; rbac.py keeps it with the
workspace's policy, and asks the provider's. A policy ends with its export.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Object = dict[str, Any]


class Provided(NamedTuple):
    """The export that a resource comes from, and the logical cluster that it stands in."""

    cluster: str
    export: str


def provided(bindings: Iterable[Object], cluster: str) -> Mapping[tuple[str, str], Provided]:
    """By group and resource where what the workspace `cluster` has bound comes from."""
    found: dict[tuple[str, str], Provided] = {}
    for binding in bindings:
        status = binding.get("status") or {}
        export = Provided(status.get("apiExportClusterName") or cluster, binding["spec"]["reference"]["export"]["name"])
        for bound in status.get("boundResources") or ():
            found[bound.get("group") or "", bound["resource"]] = export
    return found


def limiting(exports: Iterable[Object]) -> frozenset[str]:
    """The names of those that have a policy."""
    return frozenset(each["metadata"]["name"] for each in exports if _limits(each.get("spec") or {}))


def _limits(spec: Object) -> bool:
    return (spec.get("maximalPermissionPolicy") or {}).get("local") is not None
