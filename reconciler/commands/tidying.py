"""Packs the repositories that are ours when nothing else is to be done: the mirror, and the one that the server hosts.

A thread of the reconciler's process, of a holder and of an observer alike. While something is always to be done, it
waits until there is much.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reconciler.commands.station import Station
from reconciler.repository import packing
from reconciler.repository.errors import RepositoryError
from reconciler.repository.packing import Load

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TidySettings:
    """`every`: seconds between two looks. From `some` on a repository is packed if nothing happened since the last
    look, from `many` on whatever happens."""

    every: float = 5.0
    some: Load = field(default=Load(loose=400, packs=25))
    many: Load = field(default=Load(loose=4000, packs=40))


class Tidying:
    """`start`, `stop`. `happened` returns something that differs when anything happened in between. `let_go` is called
    before and after each look, for whoever has packs open that may be gone."""

    def __init__(
        self,
        repositories: Sequence[Path],
        happened: Callable[[], object],
        settings: TidySettings = TidySettings(),
        let_go: Callable[[], object] = lambda: None,
    ) -> None:
        self._repositories = repositories
        self._let_go = let_go
        self._happened = happened
        self._settings = settings
        self._last: object = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tidying", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """What is under way is finished, unless it takes long: an end in the middle loses nothing."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def look(self) -> None:
        """Packs what is due."""
        try:
            self._let_go()
            self._pack()
            self._let_go()
        except RepositoryError as error:
            log.warning("%s", error)

    def _pack(self) -> None:
        before, self._last = self._last, self._happened()
        bound = self._settings.some if self._last == before else self._settings.many
        for git_dir in self._repositories:
            try:
                found = packing.load(git_dir)
                if found.loose >= bound.loose or found.packs >= bound.packs:
                    packing.pack(git_dir)
                    log.info("packed %s: %d loose objects, %d packs", git_dir, found.loose, found.packs)
            except (RepositoryError, OSError) as error:
                log.warning("%s was not packed: %s", git_dir, error)

    def _run(self) -> None:
        for git_dir in self._repositories:
            try:
                packing.own(git_dir)
            except RepositoryError as error:
                log.warning("%s", error)
        while not self._stop.wait(self._settings.every):
            self.look()


def tidying(station: Station) -> Tidying:
    """Of the repositories whose packing is this server's: never a user's."""
    settings, mirror = station.settings, station.mirror
    hosted = [Path(settings.source)] if settings.hosted else []
    return Tidying([mirror.path, *hosted], station.store.revision, let_go=mirror.repositories.let_go)
