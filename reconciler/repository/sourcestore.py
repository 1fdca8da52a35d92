"""The repositories of sources, each bare and by itself below one directory: `<data>/sources/<name>/`.

No two share an object, and none shares one with the fleet's own: else whoever pushes to one could name another's file
by its id. Called by repositories.py, for reading, and by the room sourcing, which makes, fills and removes them.
"""

from __future__ import annotations

import shutil
import threading
from collections import OrderedDict
from pathlib import Path

from reconciler.repository import library, locks
from reconciler.repository.objects import Repository
from reconciler.repository.sourcerefs import SOURCE_NAME

_OPEN = 64
"""How many are open at a time. Whoever reads one that is closed reads to the end."""
_GOING = ".going"
_HALF = ("tmp*", "objects/tmp_*", "objects/??/tmp_*", "objects/pack/tmp_*", "objects/pack/.tmp-*")
"""What is received, checked or packed, until it is done."""


class SourceStore:
    """`directory`: need not be there. Safe from every thread, and of several processes one may write."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.Lock()
        self._open: OrderedDict[str, Repository] = OrderedDict()

    def open(self, name: str) -> Repository | None:
        """None where there is none of that name. Raises RepositoryUnreadable where it is damaged."""
        if SOURCE_NAME.fullmatch(name) is None:
            return None
        path = self.directory / name
        if not (path / "HEAD").exists():
            return None
        with self._lock:
            known = self._open.get(name)
            if known is None or not known.is_there():
                known = Repository(path)
            self._open[name] = known
            self._open.move_to_end(name)
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
        return known

    def make(self, name: str) -> Repository:
        """The one of that name, which is made where it is not there. It appears whole. Raises RepositoryUnreadable and
        OSError."""
        assert SOURCE_NAME.fullmatch(name), name
        found = self.open(name)
        if found is not None:
            return found
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        made = self.directory / f"{name}.new"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(mode=0o700)
        library.create(made, "none")
        made.rename(self.directory / name)
        found = self.open(name)
        assert found is not None
        return found

    def names(self) -> set[str]:
        """All that are there."""
        try:
            return {path.name for path in self.directory.iterdir() if SOURCE_NAME.fullmatch(path.name)}
        except FileNotFoundError:
            return set()

    def remove(self, name: str) -> None:
        """It disappears at once. Raises OSError."""
        with self._lock:
            self._open.pop(name, None)
        going = self.directory / f"{name}{_GOING}"
        shutil.rmtree(going, ignore_errors=True)
        (self.directory / name).rename(going)
        shutil.rmtree(going)

    def clear(self) -> None:
        """Removes what a process that was killed left: locks, and what was half made, fetched or removed. Only for who
        alone writes."""
        names = self.names()
        for path in self.directory.iterdir() if self.directory.is_dir() else ():
            if path.name not in names:
                shutil.rmtree(path, ignore_errors=True)
        for git_dir in map(self.directory.joinpath, names):
            locks.clear(git_dir)
            for pattern in _HALF:
                for left in git_dir.glob(pattern):
                    _remove(left)

    def let_go(self) -> None:
        """Closes what was repacked since it was opened (see Repository.let_go). Raises RepositoryUnreadable."""
        with self._lock:
            opened = [*self._open.values()]
        for repository in opened:
            if repository.path.is_dir():
                repository.let_go()


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
