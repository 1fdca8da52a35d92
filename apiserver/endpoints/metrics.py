"""GET /targets/<target>/metrics and /clusters/<workspace>/metrics: what a cluster holds, in Prometheus' text format.
Called by kube.py.

Of an embedded target, and of a workspace with all of Kubernetes' kinds; others have none, as in kcp. Named as
kube-apiserver names it. What the process does (requests, watches, CPU) is the server's, at /metrics.
"""

from __future__ import annotations

from apiserver.endpoints.exchange import TEXT, Exchange
from apiserver.endpoints.realms import RealmWorld

_TEXT = b"text/plain; version=0.0.4; charset=utf-8"
_NAME = "apiserver_resource_objects"
_HEAD = (
    f"# HELP {_NAME} [STABLE] Objects that are stored, by group and resource.",
    f"# TYPE {_NAME} gauge",
)


async def no_metrics(exchange: Exchange) -> None:
    """Of a workspace that is no whole cluster, for whom a cluster would show them."""
    await exchange.answer(501, b"shard-level endpoint not available at workspace scope\n", TEXT)


async def metrics(exchange: Exchange, world: RealmWorld) -> None:
    """Authorization is the caller's: `get` on the path /metrics, as in any cluster."""
    store = world.realm.store
    kinds = {kind.storage: kind for kind in world.kinds().all() if "list" in kind.verbs}
    counts = [
        f'{_NAME}{{group="{kind.group}",resource="{kind.resource}"}} {store.count(storage, world.cluster)}'
        for storage, kind in kinds.items()
    ]
    await exchange.answer(200, "\n".join((*_HEAD, *counts, "")).encode(), _TEXT)
