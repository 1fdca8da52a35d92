"""What only a mirror has: commits that its source did not take yet, or has lost again. Into a backup, and back.

What is recorded waits there while the status branch cannot be pushed, and so does what the served branch left behind. A
write that is a commit is not among them: it is answered once the source has it. Taken in by a server that has nothing
else yet; what becomes of the record then is statusbranch/lostrecord's to say.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from reconciler.repository.bundle import bundle, heads, lacking, unbundle
from reconciler.repository.errors import RepositoryError
from reconciler.repository.keep import is_kept
from reconciler.repository.mirror import HISTORY, LOST_REF, SERVED_REF, STATUS_REF, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.source import is_git_dir
from reconciler.saving.lender import lender, readable
from reconciler.statusbranch.chronicle import status_commits
from reconciler.statusbranch.naming import served_by

UNPUSHED = "unpushed.bundle"
"""Where it waits, in the data directory of a server that is to take it in."""


_MARGIN = 2 * 86400
"""Seconds: a source may come back from a backup of its own, of the night before say."""


class _Part(NamedTuple):
    """Of the record: the refs of histories that ended in it, and the commits that it goes on from."""

    histories: list[str]
    ground: list[str]


def saved(data_dir: Path, now: float, file: Path) -> bool:
    """Writes all of it into `file`; whether there is any. The mirror is only read. Raises RepositoryUnreadable."""
    if not is_git_dir(data_dir / "mirror"):
        return False
    with readable(data_dir) as repo:
        return _saved(repo, _elsewhere(repo, lender(data_dir)), now, file)


def _saved(repo: Repository, there: frozenset[str], now: float, file: Path) -> bool:
    recorded = repo.ref(STATUS_REF)
    part = _part(repo, recorded, there, now - _MARGIN) if recorded is not None else _Part([], [])
    kept = [name for name in repo.references if is_kept(name)]
    known = part.ground or [commit for commit in there if repo.has(commit)]
    return bundle(repo, [STATUS_REF, SERVED_REF, *kept, *part.histories], known, file)


def _elsewhere(repo: Repository, source: Path | None) -> frozenset[str]:
    """Commits that others have: a source on this machine by now, a URL when it was seen last."""
    found = _targets(repo, "refs/remotes/")
    return frozenset(found if source is None else found | _targets(Repository(source), "refs/"))


def _targets(repo: Repository, prefix: str) -> set[str]:
    found = (repo.ref(name) for name in repo.references if name.startswith(prefix))
    return {commit for commit in found if commit is not None}


def _part(repo: Repository, recorded: str, there: frozenset[str], before: float) -> _Part:
    """What was not pushed, and what is younger than `before`: with that alone nobody has to have seen that the source
    lost it."""
    names = {repo.ref(name): name for name in repo.references if name.startswith(HISTORY)}
    histories, served, pushed = list[str](), "", False
    last = None
    for last in status_commits(repo, recorded):
        pushed |= last.id in there
        if last.id in names:
            histories.append(names[last.id])
        if last.time < before:
            served = served or last.parents[-1]
            if pushed:
                return _Part(histories, [last.id])
    if last is None:
        return _Part(histories, [])
    return _Part(histories, [served or last.parents[-1], *([last.id] if pushed else [])])


class TakingIn:
    """What waits in `file`, into a mirror: once the source was looked at, which has what it goes on from."""

    def __init__(self, mirror: Mirror, file: Path) -> None:
        self._mirror, self._file = mirror, file

    @property
    def waits(self) -> bool:
        return self._file.is_file()

    def take(self) -> str:
        """Where something waits: afterwards the mirror has it, and what is newer there stays. Why it cannot be taken,
        "" if it was, or nothing waits."""
        if not self.waits:
            return ""
        repo = self._mirror.repository
        try:
            missing = lacking(repo, self._file)
            if missing:
                return f"it goes on from commit {missing[0]}, which {self._mirror.source_name} does not have"
            there = heads(repo, self._file)
            names = {name: name for name in there if is_kept(name) or name.startswith(HISTORY)}
            if STATUS_REF in there:
                names[STATUS_REF] = LOST_REF
            if names:
                unbundle(repo, self._file, names)
        except RepositoryError as error:
            return str(error)
        self._file.unlink()
        lost = self._mirror.lost_record()
        if lost is not None and not served_by(repo, lost):
            self._mirror.settle_lost_record()
        elif lost is not None and self._mirror.status() is None:
            self._mirror.keep_status(lost)
        return ""
