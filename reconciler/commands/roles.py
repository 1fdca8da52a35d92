"""The roles of a reconciler's process: locked at its start, taken on its store, given up with its end.

Made by reconcile. Everything that a role writes goes through the handle that it has on the store (Handles); what it
writes elsewhere, to git or to a cluster, is written after a look at its token.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

from apiserver.model.tables import Table
from apiserver.storage.protocol import CheckRow, RoleLost, Store, View
from apiserver.storage.roles import Role, RoleLock, take

DIRECTORY = "roles"
"""Of the locks, below the data directory."""
_LONG = 5.0
"""Seconds after which it is said who is waited for."""
_LOOK, _SELDOM = 0.02, 0.25


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


ALL: Final = tuple(Work)
REST: Final = (Work.CONTROLLERS, Work.STATUS, Work.SYNCING)
"""What may be another process's than who loads."""


def parse(text: str) -> tuple[Work, ...]:
    """The roles of one process, as they are written after one another. Raises ValueError for what no process has."""
    found = set(text.split(",")) if text != "all" else set(ALL)
    for each in (ALL, REST, (Work.LOADING,)):
        if found == set(each):
            return each
    raise ValueError(f"{text!r} is not all, {Work.LOADING} or {','.join(REST)}")


class Roles:
    """Of one process. `lost`: told the role that another process has by now; this one is to end at once. `works`: those
    that it may have."""

    def __init__(
        self, data_dir: Path, lost: Callable[[Work], None] = lambda _: None, works: Collection[Work] = ALL
    ) -> None:
        self._locks = {work: RoleLock(data_dir / DIRECTORY, work) for work in Work}
        self._works = [work for work in Work if work in works]
        self._taken: dict[Work, Role] = {}
        self._lost = lost

    def lock(self, waits: Callable[[str], None] = lambda _: None, stopped: Callable[[], bool] = lambda: False) -> bool:
        """Whether this process has the lock of each: it waits until it has, or is `stopped`. `waits`: told for whom,
        where that takes long."""
        began = time.monotonic()
        told = began + _LONG
        for work in self._works:
            while not self._locks[work].take(wait=False):
                now = time.monotonic()
                if stopped():
                    return False
                if now >= told:
                    told, whose = math.inf, self.whose(work).partition(" ")[0]
                    waits(f"process {whose} has the role {work} still. If it does not end by itself: kill -9 {whose}")
                time.sleep(_LOOK if now < began + _LONG else _SELDOM)
        return not stopped()

    def whose(self, work: Work) -> str:
        """See RoleLock."""
        return self._locks[work].whose()

    def lend(self, works: Collection[Work]) -> None:
        """Another process may have these until `lock`. What was written by their handles has arrived."""
        for work in works:
            self._taken.pop(work, None)
            self._locks[work].end()

    def handles(self, store: Store) -> Handles:
        """On the fleet's store. Roles that this process has locked and not taken yet are taken from whoever had
        them."""
        new = [work for work in self._works if work not in self._taken]
        token = take(store, new) if new else 0
        self._taken |= {work: Role(work, token, partial(self._lose, work)) for work in new}
        return Handles(**{work: self.on(work, store) for work in Work})

    def on(self, work: Work, store: Store) -> Store:
        """What a role writes by to a store: the one that it was taken on, or one that belongs to that. Of a role that
        this process has not, one that reads."""
        role = self._taken.get(work)
        return role.on(store) if role is not None else store.under(CheckRow(Table.ROLES, work, b"another's"))

    def check(self, work: Work, view: View) -> None:
        """Raises RoleLost where another process has it."""
        role = self._taken.get(work)
        if role is None:
            raise RoleLost(work)
        role.check(view)

    def look(self, view: View) -> None:
        """At all that this process has: `lost` is told what another has by now, or could have."""
        for work, role in list(self._taken.items()):
            role.check(view)
            if not self._locks[work].stands():
                self._lose(work)

    def why(self, work: Work, view: View) -> str:
        """Why nothing may be written for a role, "" if it may."""
        try:
            self.check(work, view)
        except RoleLost as error:
            return str(error)
        return ""

    def _lose(self, work: Work) -> None:
        if work in self._taken:
            self._lost(work)


@dataclass(frozen=True, slots=True)
class Handles:
    """One store, as each role writes to it."""

    loading: Store
    controllers: Store
    status: Store
    syncing: Store
