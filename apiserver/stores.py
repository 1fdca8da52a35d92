"""Opens the stores that a data directory holds, the same way in every process.

Called by API workers and by the reconciler: what is declared, and so kept up by whoever writes, has to be one answer.
Such a process is started again when it ends, so where it can use a store no more it ends.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

from apiserver.auth import rbac
from apiserver.parent import leave
from apiserver.registry import catalog, indexes
from apiserver.settings import ServerSettings
from apiserver.storage import lmdb
from apiserver.storage.declared import Declared
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Store, View

log = logging.getLogger(__name__)

RUINED = 6
"""The exit code of a process that can use a store no more."""
DECLARED = Declared(indexes.ALL, rbac.MARKED | rbac.LIMITING | catalog.MARKED)
"""Marked is what kinds and rights are made of: a change of any of them makes workers look again."""


def open_main_store(settings: ServerSettings, *, start: int | None = None) -> Store:
    """The fleet's store. `start`: the revision is at least this (see lmdb.open_store for errors)."""
    return open_serving(settings.store_dir, sync=settings.sync_writes, start=start)


def open_target_store(settings: ServerSettings, directory: Path) -> Store:
    """An embedded sync target's store; `directory` is one below settings.targets_dir."""
    return open_serving(directory, sync=settings.sync_writes)


def looking_at(directory: Path) -> AbstractContextManager[View]:
    """A store of Kubernetes' objects as it is now, whether or not a server runs (see lmdb.looking_at for errors)."""
    return lmdb.looking_at(directory, DECLARED)


def open_at(directory: Path, *, sync: bool, start: int | None = None) -> Store:
    """A store that holds Kubernetes' objects."""
    return open_store(directory, declared=DECLARED, sync=sync, start=start)


def open_serving(directory: Path, *, sync: bool, start: int | None = None) -> Store:
    """The same, for a process that is started again when it ends: it does where it can use the store no more."""
    return open_store(directory, declared=DECLARED, sync=sync, start=start, ruined=_end)


def _end(directory: Path) -> NoReturn:
    """As if it were killed: nothing can be put in order without the store."""
    log.critical("%s: a commit could not be ended, and this process can use it no more: it ends", directory)
    leave(RUINED)
