"""How much disk the repositories of all sources may take together, beside what each may.

Made by follower.py, asked by visit.py while something comes. Whoever would go beyond is refused, and nobody else: what
is here stays, however little room there is. Safe from every thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.faults import SourceFault

_COPIES = 2
"""Of a pack, while it comes: as it is received, and as git checks it."""


def size(git_dir: Path) -> int:
    """Bytes on disk of a repository's objects."""
    total = 0
    for path in (git_dir / "objects").rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # it is packed, or removed, meanwhile
            total += path.stat().st_size if path.is_file() else 0
    return total


class SourceDisk:
    """`store`: the repositories, of which nobody else adds to any. `most`: bytes."""

    def __init__(self, store: SourceStore, most: int) -> None:
        self.store, self._most = store, most
        self._lock = threading.Lock()
        self._sizes: dict[str, int] = {}
        self._taken = 0

    @contextlib.contextmanager
    def coming(self, name: str) -> Iterator[Callable[[int], None]]:
        """While something comes to a repository: call what is given with so many bytes more, before they are written.
        It raises SourceFault where they would be too many."""
        came = 0

        def more(number: int) -> None:
            nonlocal came
            with self._lock:
                came += _COPIES * number
                self._taken += _COPIES * number
                if self._taken > self._most:
                    raise _too_much(self._most)

        self._look(name)
        try:
            yield more
        finally:
            with self._lock:
                self._taken -= came
            self.changed(name)

    def changed(self, name: str) -> None:
        """What there is of one repository is another than before."""
        found = size(self.store.directory / name)
        with self._lock:
            self._taken += found - self._sizes.get(name, 0)
            self._sizes[name] = found

    def _look(self, name: str) -> None:
        """At those that are not known yet, and at that one; those that were removed are forgotten."""
        names = self.store.names()
        with self._lock:
            for each in self._sizes.keys() - names:
                self._taken -= self._sizes.pop(each)
            unknown = names - self._sizes.keys()
        for each in unknown | {name}:
            self.changed(each)


def _too_much(most: int) -> SourceFault:
    what = f"there is no more room here: all workspaces' repositories may take {most // (1024 * 1024)} MiB together"
    return SourceFault("TooLarge", what, "an administrator allows more with `treeplane up --sources-mib`")
