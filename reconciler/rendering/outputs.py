"""Outputs on disk, by what they were made of, so that nothing is rendered twice.

Called by renderer. It is a cache and no more: what is short, damaged or under another's name is not there, and when
there is no room, nothing is kept. Several processes may share the directory. What was used least lately goes first,
which the files' times tell.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import orjson

from reconciler.rendering.rendering import Rendered
from reconciler.rendering.workplace import make_private

log = logging.getLogger(__name__)

_MAGIC = b"treeplane rendering 1\n"
_HASH = 32
_HEADER = 16 * 1024
"""Bytes that a fault and a hint take at most."""
_BLOCK = 4096
"""Bytes that a file takes on disk at least."""
_HOUR = 3600.0


class _OnDisk(NamedTuple):
    used: float
    size: int
    path: Path


class KeptOutputs:
    """`most`: bytes of all files; `largest`: of one output."""

    def __init__(self, directory: Path, most: int, largest: int) -> None:
        self._directory, self._most, self._largest = directory, most, largest
        self._lock = threading.Lock()
        self._size: int | None = None
        self._told = False

    def get(self, key: str) -> Rendered | None:
        path = self._path(key)
        try:
            with path.open("rb") as file:
                data = file.read(2 * self._largest + _HEADER)
                if time.time() - os.fstat(file.fileno()).st_mtime > _HOUR:
                    os.utime(file.fileno())
        except OSError:
            return None
        return _read(key, data, self._largest)

    def put(self, key: str, rendered: Rendered) -> None:
        """Keeps it if it can."""
        path, data = self._path(key), _written(key, rendered)
        try:
            make_private(path.parent)
            descriptor, scratch = tempfile.mkstemp(dir=path.parent, prefix="new-")  # for its owner alone
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(data)
                Path(scratch).replace(path)
            except BaseException:
                with contextlib.suppress(OSError):
                    Path(scratch).unlink()
                raise
            self._count(max(len(data), _BLOCK))
        except OSError as error:
            if not self._told:
                log.warning("%s: outputs of renderers are not kept: %s", self._directory, error.strerror)
            self._told = True

    def _path(self, key: str) -> Path:
        return self._directory / key[:2] / key[2:]

    def _count(self, new: int) -> None:
        """What other processes add is seen when this one looks again."""
        with self._lock:
            if self._size is None:
                self._size = sum(file.size for file in self._files())
            else:
                self._size += new
            if self._size > self._most:
                self._size = self._forget()

    def _forget(self) -> int:
        files = sorted(self._files())
        size = sum(file.size for file in files)
        for file in files:
            if size <= self._most // 4 * 3:
                break
            with contextlib.suppress(OSError):
                file.path.unlink()
            size -= file.size
        return size

    def _files(self) -> Iterator[_OnDisk]:
        for folder in self._directory.glob("[0-9a-f][0-9a-f]"):
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    with contextlib.suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        yield _OnDisk(status.st_mtime, max(status.st_size, _BLOCK), Path(entry.path))


def _written(key: str, rendered: Rendered) -> bytes:
    words = orjson.dumps([rendered.fault, rendered.hint])
    body = zlib.compress(words + b"\n" + rendered.output, 1)
    return _MAGIC + hashlib.sha256(key.encode() + body).digest() + body


def _read(key: str, data: bytes, largest: int) -> Rendered | None:
    at = len(_MAGIC)
    told, body = data[at : at + _HASH], data[at + _HASH :]
    if data[:at] != _MAGIC or told != hashlib.sha256(key.encode() + body).digest():
        return None
    try:
        words, _, output = zlib.decompressobj().decompress(body, largest + _HEADER).partition(b"\n")
        fault, hint = orjson.loads(words)
    except (zlib.error, ValueError):
        return None
    return Rendered(output, fault, hint)
