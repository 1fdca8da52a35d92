"""Which logical clusters a loop serves, and what loops over the objects of such clusters have in common.

A loop knows its clusters by a question, not by a list: it keeps nothing for a cluster, and costs where it is asked are
two point reads.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.registry.kinds import KUBERNETES
from apiserver.registry.tree import workspace_of
from apiserver.storage.protocol import Store

Serves = Callable[[str], bool]
"""Whether the cluster of this name is served."""


def anywhere(cluster: str) -> bool:  # noqa: ARG001
    """The Serves of what is wanted in every workspace, and costs nothing where there is nothing to do."""
    return True


def started_with(store: Store, builtins: str) -> Serves:
    """Those workspaces whose type gives them these kinds to start with (see WorkspaceRecord.builtins)."""

    def serves(cluster: str) -> bool:
        record = workspace_of(store, cluster)
        return record is not None and record.builtins == builtins

    return serves


def run_like_clusters(store: Store) -> Serves:
    """Those workspaces in whose every namespace there is what a cluster puts there: with all of Kubernetes' kinds, and
    those that were made through the API."""

    def serves(cluster: str) -> bool:
        record = workspace_of(store, cluster)
        return record is not None and (record.stored or record.builtins == KUBERNETES)

    return serves
