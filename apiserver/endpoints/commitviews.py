"""Workspaces as commits have them, as this process serves them: a store for each, made elsewhere and opened here.

Asked by kube for each request below `/commits/`. Whoever makes the stores (the reconciler's viewing) also takes them
away again, oldest first; each is touched when it is read, so that it knows which these are. A store is closed here when
it is gone or many others were asked for since, never while a request reads it.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from apiserver.endpoints.commitasking import KEPT, LONGEST, MARK, CommitFilled, CommitQuestion, heard
from apiserver.endpoints.realms import Realm
from apiserver.localsocket import COMMITS, address
from apiserver.model.errors import unavailable
from apiserver.storage.protocol import Store

OPEN = 16
"""Stores that a process keeps open, beside those that are just being read."""
_ID = re.compile(r"[0-9a-f]{40}")
_KNOWN = 1024
_FRESH = 5.0
"""Seconds for which an answer is taken as it was: what an id means never changes, but more may be recorded of it."""
_TRIES = 3


@dataclass(slots=True)
class _Opened:
    """`users`: requests that read it just now."""

    realm: Realm
    users: int = 0


@dataclass(frozen=True, slots=True)
class FoundCommit:
    """`filled`: what was answered about it."""

    filled: CommitFilled
    realm: Realm


class CommitViews:
    """One per process, used in the event loop's thread. `realm`: makes one of a store that is opened."""

    def __init__(self, data_dir: Path, open_store: Callable[[Path], Store], realm: Callable[[Store], Realm]) -> None:
        self._data_dir, self._open_store, self._realm = data_dir, open_store, realm
        self._opened: OrderedDict[str, _Opened] = OrderedDict()
        self._known: OrderedDict[CommitQuestion, tuple[float, CommitFilled]] = OrderedDict()
        """Answers about commits that were asked for by their ids, and until when they count."""
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def found(self, asked: CommitQuestion) -> AsyncIterator[FoundCommit]:
        """For as long as a request reads it. Raises StatusError: 404 for a revision that is not there, 429 for too many
        at a time, 503 for what cannot be told now."""
        same = asked._replace(user="")
        for _ in range(_TRIES):
            until, filled = self._known.get(same, (0.0, None))
            if filled is None or until < time.monotonic():
                filled = await self._ask(asked)
            opened = await self._open(filled.directory) if self._touch(filled) else None
            # What was taken away while it was opened may have been opened empty.
            if opened is not None and self._touch(filled):
                break
            self._known.pop(same, None)
        else:
            raise unavailable("more commits are being read than are kept: please try again", retry_after=1)
        opened.users += 1
        try:
            yield FoundCommit(filled, opened.realm)
        finally:
            opened.users -= 1
            self._close_some()

    def close(self) -> None:
        """Closes every store that was opened."""
        for each in self._opened.values():
            each.realm.hub.close()
            each.realm.store.close()
        self._opened.clear()

    async def _ask(self, asked: CommitQuestion) -> CommitFilled:
        filled = await ask(self._data_dir, asked)
        if _ID.fullmatch(asked.rev):
            self._known[asked._replace(user="")] = time.monotonic() + _FRESH, filled
            if len(self._known) > _KNOWN:
                self._known.popitem(last=False)
        return filled

    def _touch(self, filled: CommitFilled) -> bool:
        """Whether it is there still."""
        try:
            os.utime(self._data_dir / KEPT / filled.directory / MARK)
        except OSError:
            return False
        return True

    async def _open(self, name: str) -> _Opened:
        async with self._opening:
            found = self._opened.get(name)
            if found is None:
                try:
                    store = await asyncio.to_thread(self._open_store, self._data_dir / KEPT / name / "store")
                except OSError as error:
                    raise unavailable("the commit is being put away: please try again", retry_after=1) from error
                found = self._opened[name] = _Opened(self._realm(store))
            self._opened.move_to_end(name)
            return found

    def _close_some(self) -> None:
        """Those that nobody reads: what is gone, and the oldest beyond so many."""
        for name in [*self._opened]:
            each = self._opened[name]
            gone = len(self._opened) > OPEN or not (self._data_dir / KEPT / name / MARK).exists()
            if gone and each.users == 0:
                del self._opened[name]
                each.realm.hub.close()
                each.realm.store.close()


async def ask(data_dir: Path, asked: CommitQuestion) -> CommitFilled:
    """Raises StatusError."""
    away = unavailable("what commits have cannot be read just now: please try again", retry_after=1)
    try:
        with address(data_dir, COMMITS) as at:
            reader, writer = await asyncio.open_unix_connection(at, limit=LONGEST)
    except OSError as error:
        raise away from error
    try:
        writer.write(asked.line())
        line = await reader.readline()
        return heard(line)
    except (OSError, ValueError, KeyError) as error:
        raise away from error
    finally:
        writer.close()
