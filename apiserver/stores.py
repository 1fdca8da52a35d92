"""Opens the stores that a data directory holds, the same way in every process.

Called by API workers and by the reconciler: which resources are marked has to be one answer.
"""

from __future__ import annotations

from pathlib import Path

from apiserver.auth import rbac
from apiserver.registry import catalog
from apiserver.settings import ServerSettings
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Store

MARKED = rbac.MARKED | catalog.MARKED
"""What kinds and rights are made of: a change of any of them makes workers look again."""


def open_main_store(settings: ServerSettings, *, start: int | None = None) -> Store:
    """The fleet's store. `start`: the revision is at least this (see lmdb.open_store for errors)."""
    return open_store(settings.store_dir, marked=MARKED, sync=settings.sync_writes, start=start)


def open_target_store(settings: ServerSettings, directory: Path) -> Store:
    """An embedded sync target's store; `directory` is one below settings.targets_dir."""
    return open_store(directory, marked=MARKED, sync=settings.sync_writes)
