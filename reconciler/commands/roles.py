"""The roles of a reconciler's process: locked at its start, taken on its store, given up with its end.

Made by reconcile. Everything that a role writes goes through the handle that it has on the store (Stations); what it
writes elsewhere, to git or to a cluster, is written after a look at its token.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Self

from apiserver.storage.protocol import RoleLost, Store, View
from apiserver.storage.roles import Role, RoleLock

DIRECTORY = "roles"
"""Of the locks, below the data directory."""
_LONG, _LOOK = 5.0, 0.02


class Work(StrEnum):
    """What a role is for; the values are those of rows, files and options."""

    LOADING = "loading"
    """Commits into the store, and writes into commits: git's one writer on the desired branch."""
    CONTROLLERS = "controllers"
    """Housekeeping, clusters of Kubernetes' kinds, stand-ins."""
    STATUS = "status"
    """The status branch."""
    SYNCING = "syncing"
    """Sync targets, Locations, Placements: what runs where."""


class Roles:
    """Of one process. `lost`: told the role that another process has by now; this one is to end at once."""

    def __init__(self, data_dir: Path, lost: Callable[[Work], None] = lambda _: None) -> None:
        self._locks = {work: RoleLock(data_dir / DIRECTORY, work) for work in Work}
        self._taken: dict[Work, Role] = {}
        self._lost = lost

    def lock(self, waits: Callable[[str], None] = lambda _: None) -> None:
        """Returns once this process has the lock of each; told whom it waits for, where that takes long."""
        told = time.monotonic() + _LONG
        for work, lock in self._locks.items():
            while not lock.take(wait=False):
                time.sleep(_LOOK)
                if time.monotonic() >= told:
                    told, whose = math.inf, lock.whose()
                    waits(f"process {whose} has the role {work} still. If it does not end by itself: kill -9 {whose}")

    def handles(self, store: Store) -> Handles:
        """On the fleet's store, which was opened now. The roles are taken with the first."""
        for work in Work:
            if work not in self._taken:
                self._taken[work] = Role(work, store, partial(self._lost, work))
        return Handles(**{work: self.on(work, store) for work in Work})

    def on(self, work: Work, store: Store) -> Store:
        """What a role writes by to a store: the one that it was taken on, or one that belongs to that."""
        return self._taken[work].on(store)

    def check(self, work: Work, view: View) -> None:
        """Raises RoleLost where another process has it."""
        self._taken[work].check(view)

    def why(self, work: Work, view: View) -> str:
        """Why nothing may be written for a role, "" if it may."""
        try:
            self.check(work, view)
        except RoleLost as error:
            return str(error)
        return ""

    def end(self) -> None:
        """Lets others have them."""
        for lock in self._locks.values():
            lock.end()


@dataclass(frozen=True, slots=True)
class Handles:
    """One store, as each role writes to it."""

    loading: Store
    controllers: Store
    status: Store
    syncing: Store

    @classmethod
    def alike(cls, store: Store) -> Self:
        """Where nobody has to say who he is."""
        return cls(store, store, store, store)
