"""The Leases on all real sync targets, by key of the target. Owned by service.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from reconciler.syncing.client import TargetClient
from reconciler.syncing.keeper import Keeper
from reconciler.syncing.lease import Contender, LeaseSettings, name_of

_PATIENCE = 2.0
"""Seconds that a target which hangs may hold up our end."""


class Keepers:
    """`contender`: as whom; None: no target needs a Lease. `fleet`: the fleet's id. `barred`: why no cluster at all may
    be written to just now, "" if it may. `changed`: told (target, whether it may be written to) when that or its reason
    is another."""

    def __init__(
        self,
        contender: Contender | None,
        fleet: Callable[[], str],
        settings: LeaseSettings,
        barred: Callable[[], str],
        changed: Callable[[str, bool], None],
    ) -> None:
        self._contender, self._fleet, self._settings = contender, fleet, settings
        self._barred, self._changed = barred, changed
        self._keepers: dict[str, Keeper] = {}
        self._ended = False
        self._lock = threading.Lock()

    def find(self, key: str) -> Keeper | None:
        with self._lock:
            return self._keepers.get(key)

    def connected(self, key: str, client: TargetClient | None) -> None:
        """The connection to a target from now on, None for none: it writes only while the Lease is ours."""
        if client is not None:
            client.barred = self._barred
        if self._contender is None:
            return
        real = client if client is not None and not client.embedded else None
        keeper = self.find(key) if real is None else self._made(key, self._contender)
        lease = keeper.use(real) if keeper is not None else None
        if real is not None and keeper is not None and lease is not None:
            # This very connection's Lease: the next one may be to another cluster.
            real.barred = lambda: self._barred() or keeper.why(lease)
            real.left = lease.left
        if real is not None and self._ended and keeper is not None:
            keeper.end()

    def drop(self, key: str) -> None:
        """The target is no more. Its Lease runs out by itself: the cluster may be another target's, too."""
        with self._lock:
            keeper = self._keepers.pop(key, None)
        if keeper is not None:
            keeper.end()

    def end(self) -> None:
        """Nothing new is written anywhere."""
        with self._lock:
            self._ended = True
            for keeper in self._keepers.values():
                keeper.end()

    def release(self, idle: Mapping[str, bool]) -> None:
        """After `end`: give back what can be, where nothing is being written any more. All at the same time. One for
        which a target is still asked after a while runs out by itself."""
        with self._lock:
            keepers, self._keepers = self._keepers, {}
        until = time.monotonic() + _PATIENCE
        resting = {key: each for key, each in keepers.items() if each.rest(max(until - time.monotonic(), 0.0))}
        at_work = {keeper.uid for key, keeper in keepers.items() if not idle.get(key, True)}
        found = {keeper.uid: keeper for keeper in resting.values() if keeper.uid and keeper.uid not in at_work}
        ending = [threading.Thread(target=keeper.release, daemon=True) for keeper in found.values()]
        for thread in ending:
            thread.start()
        for thread in ending:
            thread.join(_PATIENCE)

    def _made(self, key: str, contender: Contender) -> Keeper:
        with self._lock:
            keeper = self._keepers.get(key)
            if keeper is None:
                keeper = Keeper(name_of(self._fleet()), contender, self._settings, lambda can: self._changed(key, can))
                self._keepers[key] = keeper
                keeper.start()
            return keeper
