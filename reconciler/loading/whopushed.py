"""Finds out who pushed what the branch goes on with, and notes it before that is served.

Called by the holder ahead of each load. What the hosted repository's hooks wrote down is repository/pushrecords', what
is kept of it statusbranch/pushers'.
"""

from __future__ import annotations

from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.plan.pushedby import NOBODY, OPERATOR, PUSH, PushedBy
from reconciler.repository.chain import brought
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecord, PushRecords, covering
from reconciler.statusbranch import pushers

_MOST = 1_000
"""Commits of one load that are looked at: the newest."""
_SWEEP = 1_000
"""Loads between two looks for records that are too many."""


def of_record(record: PushRecord | None) -> PushedBy:
    user = record.pusher.get("username") if record is not None else None
    if record is None or not isinstance(user, str):
        return NOBODY
    return PushedBy(user, OPERATOR if record.operator else PUSH)


class WhoPushed:
    """`repo` has the served branch."""

    def __init__(self, store: Store, repo: Repository, records: PushRecords) -> None:
        self._store, self._repo, self._records = store, repo, records
        self._looks = 0

    def ahead_of(self, head: str, recorded: str = "") -> None:
        """Notes of the commits up to `head` who pushed them, as far as that is known. `recorded`: where a fleet that is
        not loaded yet goes on from. What cannot be read is left to the load that follows, which says so."""
        if self._looks % _SWEEP == 0:
            self._records.sweep()
        self._looks += 1
        before = tree.fleet(self._store).commit.id or recorded
        try:
            chain, _ = brought(self._repo, before or None, head, _MOST)
        except RepositoryError:
            return
        found = {commit: of_record(each) for commit, each in covering(self._records, chain, before).items()}
        pushers.note(self._store, {commit: by for commit, by in found.items() if by})
