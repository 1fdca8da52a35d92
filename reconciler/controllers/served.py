"""Which logical clusters a loop serves, and what loops over the objects of such clusters have in common.

A loop knows its clusters by a question, not by a list: it keeps nothing for a cluster, and costs where it is asked are
two point reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from apiserver.model.keys import Key
from apiserver.registry.tree import workspace_of
from apiserver.storage.protocol import Record, Store

Serves = Callable[[str], bool]
"""Whether the cluster of this name is served."""

_PAGE = 1000


def started_with(store: Store, builtins: str) -> Serves:
    """Those workspaces whose type gives them these kinds to start with (see WorkspaceRecord.builtins)."""

    def serves(cluster: str) -> bool:
        record = workspace_of(store, cluster)
        return record is not None and record.builtins == builtins

    return serves


def records(store: Store, resource: str, serves: Serves) -> Iterator[Record]:
    """All objects of a resource in the clusters served, in key order; each cluster is asked about once."""
    after: Key | None = None
    cluster, served = "", False
    while True:
        page = store.scan(resource, after=after, limit=_PAGE)
        for record in page.records:
            if record.key.cluster != cluster:
                cluster, served = record.key.cluster, serves(record.key.cluster)
            if served:
                yield record
        if page.more is None:
            return
        after = page.more
