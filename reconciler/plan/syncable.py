"""Which kinds go down to sync targets, and which objects of theirs do not.

Pure. Used by placement (what a target must serve), by the sync targets' status and by the syncer.
"""

from __future__ import annotations

from typing import Any

from apiserver.model.kinds import GroupResource
from apiserver.registry.builtins.catalogue import ENTRIES, resources_having
from apiserver.registry.builtins.entry import Sync

SYNCED = resources_having(lambda kind: kind.sync is not Sync.NEVER)
"""Kubernetes' own kinds that run or configure workloads. Access rules, quotas, events and leases stay upstream."""

OPTIONAL = resources_having(lambda kind: kind.sync is Sync.BUILT_IN)
"""Built in in every workspace, so never a reason why a target is not compatible."""

NEVER_NAMESPACES = frozenset({"kube-system", "kube-public", "kube-node-lease", "kcp-system"})
"""Namespaces that are never synced, as in kcp."""


def syncable(kind: GroupResource, *, namespaced: bool, custom: bool, offered: bool) -> bool:
    """Whether objects of the kind go down. `custom`: not Kubernetes' own. `offered`: bound from an API export that the
    sync target supports (spec.supportedAPIExports); custom kinds need that."""
    return namespaced and (offered if custom else kind in SYNCED)


def stays_upstream(kind: GroupResource, obj: dict[str, Any]) -> bool:
    """Objects that a cluster makes for itself in every namespace: the default ServiceAccount, the CA bundle."""
    return made_in_all(kind, obj["metadata"]["name"])


def made_in_all(kind: GroupResource, name: str) -> bool:
    """Whether a cluster makes such an object for itself in every namespace."""
    entry = ENTRIES.get(str(kind))
    return entry is not None and entry.made_in_all == name
