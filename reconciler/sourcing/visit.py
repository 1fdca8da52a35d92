"""One visit to one source: where its branch stands, and what is new of it, fetched and found whole.

Called by follower.py from a thread of its own, never twice at a time for one source. Nothing of a visit that fails
counts: the refs move at the end, and what came until then goes.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

from reconciler.repository import packing
from reconciler.repository.command import Patience
from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.connection import SourceConnection, VisitTime
from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.followed import FollowedSource
from reconciler.sourcing.kept import SourceRefs
from reconciler.sourcing.settings import FollowSettings
from reconciler.sourcing.taking import ALONE, Taking, size
from reconciler.sourcing.uploadpack import UploadPack


class Visited(NamedTuple):
    """`head`: of the branch, whole and here. `left`: commits that it does not contain and that were heads until now.
    `second`: whether the server speaks git's protocol in its version 2."""

    head: str
    left: frozenset[str]
    second: bool


@dataclass(frozen=True, slots=True)
class Visit:
    """`keep`: ids of commits that stay. `second`: see Visited, as far as it is known."""

    name: str
    source: FollowedSource
    keep: Collection[str]
    second: bool
    time: VisitTime

    def make(self, store: SourceStore, settings: FollowSettings) -> Visited:
        """Raises SourceFault, VisitGivenUp, RepositoryError and OSError."""
        bounds, branch = settings.bounds, self.source.address.branch
        with SourceConnection(self.source, self.time, bounds) as connection:
            remote = UploadPack(connection, branch, bounds, self.second)
            head = remote.head()
            if head is None:
                hint = "push it, or name another; what is served stays"
                raise SourceFault("BranchNotFound", f"the repository has no branch {branch}", hint)
            repository = store.make(self.name)
            refs = SourceRefs(repository)
            self._keep(refs)
            left = frozenset[str]()
            if refs.head(branch) != head:
                refs.mend()
                taking = Taking(repository, self.time, bounds)
                if not taking.is_whole(head):
                    self._brought(remote, refs, taking, head)
                left = frozenset(refs.move(branch, head))
                if packing.load(repository.git_dir).packs > settings.packs:
                    packing.pack(repository.git_dir)
                    repository.let_go()
            return Visited(head, left, remote.second)

    def _brought(self, remote: UploadPack, refs: SourceRefs, taking: Taking, head: str) -> None:
        """Where there is no room for what comes, once more after what nobody needs has gone."""
        git_dir = refs.repository.git_dir
        before = size(git_dir)
        try:
            self._fetch(remote, refs, taking, head)
        except SourceFault as fault:
            if fault.reason != "TooLarge" or not before:
                raise
            refs.make_room(Patience(total=self.time.left()), ALONE)
            if size(git_dir) >= before:
                raise
            self._fetch(remote, refs, taking, head)

    def _fetch(self, remote: UploadPack, refs: SourceRefs, taking: Taking, head: str) -> None:
        room = remote.bounds.disk - size(refs.repository.git_dir)
        with tempfile.TemporaryFile(dir=refs.repository.git_dir) as pack:
            remote.fetch(head, refs.held(), pack, room)
            pack.flush()
            pack.seek(0)
            taking.take(pack, head)

    def _keep(self, refs: SourceRefs) -> None:
        there = refs.kept()
        refs.keep(set(self.keep) - there)
        refs.let_go(there - set(self.keep))


def within(seconds: float) -> VisitTime:
    return VisitTime(time.monotonic() + seconds)
