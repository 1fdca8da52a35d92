"""A repository of somebody else's on this machine, kept open: to open it takes a millisecond of git's configuration.

Called by who looks at the source there (local) and who commits to it (desired). It may be moved, packed and collected
at any time, so what stands under its name is looked at each time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from reconciler.repository.objects import Repository


class KeptOpen:
    """One name of a directory."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._opened: tuple[Repository, os.stat_result] | None = None

    def repository(self) -> Repository:
        """What stands there now: the one that was opened last, without the packs that are gone, if it is the same.
        Raises RepositoryUnreadable."""
        known, there = self._opened, self._there()
        if known is not None and there is not None and os.path.samestat(known[1], there) and known[0].is_there():
            known[0].let_go()
            return known[0]
        found = Repository(self._path)
        self._opened = (found, there) if there is not None else None
        return found

    def _there(self) -> os.stat_result | None:
        """The name may be a link's, which leads elsewhere by now."""
        with suppress(OSError):
            return Path(self._path).stat()
        return None
