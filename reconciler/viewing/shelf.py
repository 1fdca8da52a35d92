"""The stores of commits on the disk: which there are, which were read last, and which have to go.

Called by viewer. What is there belongs to one process: another one begins with nothing. A store is put there whole,
by renaming; API workers touch the file beside it when they read it.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from apiserver.endpoints.commitasking import MARK

_BLOCK = 512


@dataclass(frozen=True, slots=True)
class ShelfLimits:
    """`commits`: so many are kept; `size`: bytes of all stores together, on the disk."""

    commits: int = 8
    size: int = 1024 * 1024 * 1024


class KeptStore(NamedTuple):
    """One store. `name`: of its directory; `status`: the status commit that it was filled from, "" for none; `size`:
    bytes."""

    name: str
    commit: str
    status: str
    size: int


class Shelf:
    """`directory` is the shelf's alone."""

    def __init__(self, directory: Path, limits: ShelfLimits) -> None:
        """What another process left is taken away. Raises OSError."""
        self._directory, self._limits = directory, limits
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700, parents=True)
        self._kept: dict[tuple[str, str, bool], KeptStore] = {}
        self._numbers = itertools.count()

    def find(self, commit: str, path: str, *, children: bool) -> KeptStore | None:
        """See filling."""
        return self._kept.get((commit, path, children))

    def room(self) -> Path:
        """A directory to fill a store in."""
        made = self._directory / f"filling-{next(self._numbers)}"
        made.mkdir(mode=0o700)
        return made

    def put(self, commit: str, path: str, filled: Path, status: str, *, children: bool) -> KeptStore:
        """Keeps what was filled. Others go for it, and the one that was there before. Raises OSError."""
        (filled / MARK).touch(0o600)
        kept = KeptStore(f"{commit}-{next(self._numbers)}", commit, status, _size(filled))
        filled.rename(self._directory / kept.name)
        before = self._kept.pop((commit, path, children), None)
        if before is not None:
            self._take_away(before)
        self._kept[commit, path, children] = kept
        self._make_room(kept)
        return kept

    def drop(self, filled: Path) -> None:
        """Takes away what did not become a store."""
        shutil.rmtree(filled, ignore_errors=True)

    def _make_room(self, newest: KeptStore) -> None:
        """The commit goes that was read longest ago; of one alone its stores, one by one."""
        while len(commits := {each.commit for each in self._kept.values()}) > self._limits.commits or self._is_full():
            used = {commit: max(self._used(e) for e in self._kept.values() if e.commit == commit) for commit in commits}
            oldest = min(commits - {newest.commit} or commits, key=lambda commit: used[commit])
            of_it = [key for key, each in self._kept.items() if each.commit == oldest and each != newest]
            if not of_it:
                return
            alone = oldest == newest.commit
            for key in sorted(of_it, key=lambda k: self._used(self._kept[k]))[: 1 if alone else None]:
                self._take_away(self._kept.pop(key))

    def _take_away(self, gone: KeptStore) -> None:
        """The mark goes first: who finds it reads what is whole."""
        (self._directory / gone.name / MARK).unlink(missing_ok=True)
        shutil.rmtree(self._directory / gone.name, ignore_errors=True)

    def _is_full(self) -> bool:
        return sum(each.size for each in self._kept.values()) > self._limits.size

    def _used(self, kept: KeptStore) -> float:
        try:
            return (self._directory / kept.name / MARK).stat().st_mtime
        except OSError:
            return 0.0


def _size(directory: Path) -> int:
    """Bytes on the disk: stores are files with holes."""
    return sum(file.stat().st_blocks * _BLOCK for file in _files(directory))


def _files(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        yield from (Path(folder) / name for name in names)
