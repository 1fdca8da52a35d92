"""From a remote to the repository here: one commit with all that it has, as far as there is room for it.

Called by visit.py, for the head of a branch and for commits that are served and were lost.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass

from reconciler.repository.command import Patience
from reconciler.sourcing.connection import VisitTime
from reconciler.sourcing.disk import SourceDisk, size
from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.kept import SourceRefs
from reconciler.sourcing.taking import ALONE, Taking
from reconciler.sourcing.uploadpack import UploadPack


@dataclass(frozen=True, slots=True)
class Fetching:
    """For one visit to one repository, `name`. `time`: what is left of the visit."""

    name: str
    remote: UploadPack
    refs: SourceRefs
    taking: Taking
    disk: SourceDisk
    time: VisitTime

    def bring(self, commit: str) -> None:
        """Afterwards the commit is here, whole. Where there is no room for what comes, it is asked for once more after
        what nobody needs has gone. Raises SourceFault, VisitGivenUp, RepositoryError and OSError."""
        if self.taking.is_whole(commit):
            return
        git_dir = self.refs.repository.git_dir
        before = size(git_dir)
        try:
            self._fetch(commit)
        except SourceFault as fault:
            if fault.reason != "TooLarge" or not before:
                raise
            self.refs.make_room(Patience(total=self.time.left()), ALONE)
            if size(git_dir) >= before:
                raise
            self._fetch(commit)

    def _fetch(self, commit: str) -> None:
        git_dir = self.refs.repository.git_dir
        room = self.remote.bounds.disk - size(git_dir)
        with self.disk.coming(self.name) as more, tempfile.TemporaryFile(dir=git_dir) as pack:

            def write(piece: bytes) -> None:
                more(len(piece))
                pack.write(piece)

            self.remote.fetch(commit, self.refs.held(), write, room)
            pack.flush()
            pack.seek(0)
            self.taking.take(pack, commit)
