"""Finds out who pushed what the branch goes on with, and notes it before that is served.

Called by the holder ahead of each load. Who stands for a commit is vouching's to say, what is kept of it
statusbranch/pushers'.
"""

from __future__ import annotations

from apiserver.model.commits import NONE, own
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.loading.vouching import Vouching
from reconciler.plan.pushedby import PushedBy
from reconciler.repository.chain import brought
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.statusbranch import pushers

_MOST, _SIGNED = 1_000, 200
"""Commits of one load that are looked at: the newest, and fewer where a signature has to be."""
_SWEEP = 1_000
"""Loads between two looks for records that are too many."""


class WhoPushed:
    """`repo` has the served branch."""

    def __init__(self, store: Store, repo: Repository, vouching: Vouching) -> None:
        self._store, self._repo, self._vouching = store, repo, vouching
        self._looks = 0

    def ahead_of(self, head: str, recorded: str = "") -> None:
        """Notes of the commits up to `head` who pushed them, as far as that is known. `recorded`: where a fleet that is
        not loaded yet goes on from. What cannot be read is left to the load that follows, which says so."""
        if self._looks % _SWEEP == 0:
            self._vouching.records.sweep()
        self._looks += 1
        before = tree.fleet(self._store).commit.id or recorded
        try:
            chain, _ = brought(self._repo, before or None, head, _MOST)
            found = self._found(before, chain)
        except RepositoryError:
            return
        pushers.note(self._store, {commit: by for commit, by in found.items() if by})

    def _found(self, before: str, chain: list[str]) -> dict[str, PushedBy]:
        repo, vouching, commits = self._repo, self._vouching, [own(commit) for commit in chain]
        trusted = repo.commit(before).tree if before and repo.has(before) else ""
        pushes = vouching.pushes(own(before) if before else NONE, commits)
        asked = {commit for commit in commits if commit in pushes} | {*commits[-_SIGNED:]}
        return {c.id: vouching.voucher(repo, c, trusted, pushes.get(c)).said for c in commits if c in asked}
