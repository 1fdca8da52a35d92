"""A Lease on a target that keeps time by a clock of the test's: compare-and-swap, as a kube-apiserver does it."""

from __future__ import annotations

import copy
from typing import Any

from reconciler.syncing.errors import TargetRefused, TargetUnreachable

Object = dict[str, Any]


class Clock:
    """Seconds, which pass when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Target:
    """The one Lease of a target. `Link` is a server's way to it."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.writes = 0

    def store(self, lease: Object) -> Object:
        self.writes += 1
        uid = f"u{self.writes}" if self.lease is None else self.lease["metadata"]["uid"]
        metadata = {**lease["metadata"], "uid": uid, "resourceVersion": str(self.writes)}
        self.lease = copy.deepcopy({**lease, "metadata": metadata})
        return copy.deepcopy(self.lease)


class Link:
    """`cut`: nothing arrives. `deaf`: what is asked arrives, and the answer does not. `slow`: seconds that each request
    takes, half of them on its way."""

    def __init__(self, target: Target, clock: Clock) -> None:
        self._target, self._clock = target, clock
        self.cut = self.deaf = False
        self.slow = 0.0

    def get(self) -> Object | None:
        self._way()
        found = copy.deepcopy(self._target.lease)
        self._back()
        return found

    def create(self, lease: Object) -> Object:
        self._way()
        if self._target.lease is not None:
            raise TargetRefused(409, "AlreadyExists", "it is there")
        made = self._target.store(lease)
        self._back()
        return made

    def replace(self, lease: Object) -> Object:
        self._way()
        now = self._target.lease
        if now is None or now["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"]:
            raise TargetRefused(409, "Conflict", "it was changed")
        made = self._target.store(lease)
        self._back()
        return made

    def _way(self) -> None:
        self._clock.now += self.slow / 2
        if self.cut:
            raise TargetUnreachable("timed out")

    def _back(self) -> None:
        self._clock.now += self.slow / 2
        if self.deaf:
            raise TargetUnreachable("timed out")
