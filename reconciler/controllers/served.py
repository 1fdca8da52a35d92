"""Which logical clusters a loop serves, and what loops over the objects of such clusters have in common.

A loop knows its clusters by a question, not by a list: it keeps nothing for a cluster, and what it costs to be asked is
two point reads.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.registry.kinds import KUBERNETES
from apiserver.registry.tree import WorkspaceRecord, workspace_of
from apiserver.storage.protocol import Store

Serves = Callable[[str], bool]
"""Whether the cluster of this name is served."""


def anywhere(cluster: str) -> bool:  # noqa: ARG001
    """The Serves of what is wanted in every workspace, and costs nothing where there is nothing to do."""
    return True


def started_with(store: Store, builtins: str) -> Serves:
    """Those workspaces whose type gives them these kinds to start with (see WorkspaceRecord.builtins)."""
    return _of(store, lambda record: record.builtins == builtins)


def run_like_clusters(store: Store) -> Serves:
    """Those workspaces in whose every namespace there is what a cluster puts there: with all of Kubernetes' kinds, and
    those that were made through the API."""
    return _of(store, lambda record: record.stored or record.builtins == KUBERNETES)


def _of(store: Store, wanted: Callable[[WorkspaceRecord], bool]) -> Serves:
    """By what a record says for good. Several controllers ask of the same entry, so the last answer is kept."""
    last = "", False

    def serves(cluster: str) -> bool:
        nonlocal last
        asked, answer = last
        if asked != cluster:
            record = workspace_of(store, cluster)
            if record is None:
                return False
            answer = wanted(record)
            last = cluster, answer
        return answer

    return serves
