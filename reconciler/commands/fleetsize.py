"""Whether a fleet is large: then a process of its own does what there is to do beside loading.

Asked by the holder, in quiet moments and before it loads a commit. Where roles are said (`--roles`), that counts.
"""

from __future__ import annotations

import time

from apiserver.registry import tree
from apiserver.storage.protocol import View
from reconciler.layout.weight import added
from reconciler.repository.objects import Repository

LARGE = 10_000
"""Workspaces from which on a second process is worth its memory, where nothing else was said. A fleet that has come to
that many gets it in a quiet moment, and one to which a commit brings so many as that is loaded."""
_MUCH = 2_000
"""Changes of the store from one quiet moment to the next by which it is not one: to begin a process takes a second of a
processor, which what is written so quickly would have to wait for."""
_LONGEST = 60.0
"""Seconds after which that is not waited for any longer."""
_LARGE_COMMIT = 2
"""Files and directories for each of these: an empty workspace has two."""


class FleetSize:
    """`awaits`: whether a commit waits that would make a large fleet of a small one."""

    def __init__(self, roles: str, store: View) -> None:
        self._roles, self._store = roles, store
        self.awaits = False
        self._since, self._asked, self._revision = 0.0, float("-inf"), 0

    def is_large(self) -> bool:
        if self._roles == "auto":
            return self.awaits or tree.count(self._store) >= LARGE
        return self._roles == "apart"

    def is_busy(self) -> bool:
        """Whether so much is written that the process had better begin later. Asked in each quiet moment of a fleet
        that is large: in the first it cannot be told yet."""
        now, before, revision = time.monotonic(), self._revision, self._store.revision()
        if now - self._asked > _LONGEST:
            self._since = now  # it was small meanwhile
        self._asked, self._revision = now, revision
        return revision - before > _MUCH and now - self._since < _LONGEST

    def would_grow(self, repo: Repository, head: str) -> bool:
        """Whether a commit makes the fleet large, which it is not yet."""
        if self._roles != "auto" or self.is_large():
            return self.awaits
        most = _LARGE_COMMIT * LARGE
        served, new = (repo.fleet_at(each) for each in (tree.fleet(self._store).commit.id, head))
        return added(repo, served, new, most) > most
