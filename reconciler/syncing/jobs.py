"""Jobs run once: what has ended upstream is not made again, by whatever way its copy went. Called by syncers.

That a Job has ended is its status upstream, which stands on the status branch and so outlives server, store and target.
Its copy has no time to live of its own: when that of the Job has passed, the copy is taken away, after its end is on
record. A Job of the same name that was made anew upstream has another uid, and is another run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from apiserver.registry.served import ServedKind
from reconciler.plan.jobs import JOBS, ended, left
from reconciler.syncing import client
from reconciler.syncing.apply import Applier
from reconciler.syncing.live import Live
from reconciler.syncing.render import OF
from reconciler.syncing.site import TargetSite
from reconciler.syncing.upstream import Item, Upstream

Object = dict[str, Any]


class Jobs:
    """`durable`: blocks until the status branch holds everything up to a store revision. `later(item, seconds)`: has it
    looked at again."""

    def __init__(
        self,
        site: TargetSite,
        upstream: Upstream,
        applier: Applier,
        durable: Callable[[int], None],
        later: Callable[[Item, float], None],
    ) -> None:
        self._site, self._upstream, self._applier = site, upstream, applier
        self._durable, self._later = durable, later

    def runs(self, item: Item, kind: ServedKind, obj: Object) -> bool:
        """Whether the Job is to be applied; else all has been done that there is to do."""
        obj = self._ended_and_gone(item, kind, obj)
        live = self._site.live(item)
        if live is not None and live.of not in ("", obj["metadata"]["uid"]):
            self._delete(item, kind, live)  # of one that was deleted upstream; its end brings us back
            return False
        if not ended(obj):
            return True
        if live is None or live.deleting:
            return False
        if live.fresh is not None:
            self._applier.report(item, kind, obj, live.fresh)
        self._expire(item, kind, obj, live)
        return False

    def _ended_and_gone(self, item: Item, kind: ServedKind, obj: Object) -> Object:
        """The Job with the end that its copy had when somebody deleted it."""
        ledger = self._site.ledger
        with ledger.lock:
            last = ledger.ends.pop(item, None)
        if last is None or ended(obj) or (last["metadata"].get("annotations") or {}).get(OF) != obj["metadata"]["uid"]:
            return obj
        self._applier.report(item, kind, obj, last)
        return self._upstream.get(kind, item) or obj

    def _expire(self, item: Item, kind: ServedKind, obj: Object, live: Live) -> None:
        seconds = left(obj, time.time())
        if seconds is None:
            return
        if seconds > 0:
            self._later(item, seconds + 0.01)
            return
        copy = self._site.client.get(self._where(item, kind))
        if copy is None or copy["metadata"]["uid"] != live.uid or not ended(copy):
            return  # of several targets another one's has ended; this one's end is an event
        self._durable(int(obj["metadata"]["resourceVersion"]))
        self._delete(item, kind, live)

    def _delete(self, item: Item, kind: ServedKind, live: Live) -> None:
        self._site.client.delete(self._where(item, kind), live.uid)

    def _where(self, item: Item, kind: ServedKind) -> str:
        home = self._site.homes.get(item.cluster, item.namespace)
        version = self._site.version(item.kind, kind.version)
        return client.path(item.kind, version, home.name if home else "", item.name)


def over(item: Item, obj: Object) -> bool:
    """Whether the object is a Job that has ended, so that it need not be anywhere."""
    return item.kind == JOBS and ended(obj)
