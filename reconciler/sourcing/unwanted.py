"""Removes the repositories of sources that nobody has wanted for a while.

Called by timetabled.py, with its lock held, so that nobody begins to want one meanwhile. Who is wanted again within
that time (a workspace.yaml that was taken back) finds everything here.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Set

from reconciler.repository.sourcestore import SourceStore
from reconciler.sourcing.settings import FollowSettings

log = logging.getLogger(__name__)


class Unwanted:
    """`going`: names, and since when nobody wants them, as far as this process knows."""

    def __init__(self, store: SourceStore, settings: FollowSettings) -> None:
        self.going: dict[str, float] = {}
        self._store, self._settings = store, settings
        self._looked = -math.inf

    def clean(self, wanted: Set[str], now: float) -> None:
        """`wanted`: all whose repositories stay."""
        if now < self._looked + self._settings.clean:
            return
        self._looked = now
        self.going = {name: self.going.get(name, now) for name in self._store.names() - wanted}
        for name in [name for name, since in self.going.items() if now - since > self._settings.kept]:
            try:
                self._store.remove(name)
                log.info("removed the repository %s, which is no source's any more", name)
            except OSError as error:
                log.warning("the repository %s was not removed: %s", name, error)
