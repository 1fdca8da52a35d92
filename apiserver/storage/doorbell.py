"""The doorbell: after a commit, the other processes that share a store's directory are told to look.

Used by the embedded store. Each process that listens binds a datagram socket under `<directory>/bells/`; whoever
commits a change sends one byte to every other. Nothing depends on a ring being heard: the listening thread also looks
at the store's revision every `look_seconds`. What changed is not said: listeners read the log.

Socket paths end at 108 bytes, data directories may be longer: sockets are bound and reached through
`/proc/self/fd/<directory>/<name>`. Where that cannot be had, looking is all there is.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

_numbers = itertools.count(1)
_FRESH_NS = 50_000_000


class Doorbell:
    """`look` returns a number that every change of the log moves. Thread-safe; nothing is bound before the first
    `subscribe`."""

    def __init__(self, directory: Path, look: Callable[[], int], look_seconds: float) -> None:
        self._bells = directory / "bells"
        self._bells.mkdir(mode=0o700, exist_ok=True)
        self._fd = os.open(self._bells, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._name = f"{os.getpid()}-{next(_numbers)}.sock"
        self._look, self._look_seconds = look, look_seconds
        self._rings: tuple[Callable[[], None], ...] = ()
        self._lock = threading.Lock()
        self._listener: threading.Thread | None = None
        self._closed = False
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._peers: tuple[str, ...] = ()
        self._peers_at = -1
        self._seen = look()

    def subscribe(self, ring: Callable[[], None]) -> Callable[[], None]:
        def entry() -> None:  # one per subscription: the same callable may subscribe twice and leave once
            ring()

        with self._lock:
            self._rings = (*self._rings, entry)
            if self._listener is None and not self._closed:
                self._seen = self._look()
                bell = self._bind()
                self._listener = threading.Thread(target=self._listen, args=(bell,), daemon=True, name="doorbell")
                self._listener.start()

        def leave() -> None:
            with self._lock:
                self._rings = tuple(r for r in self._rings if r is not entry)

        return leave

    def committed(self) -> None:
        """Called by the writer thread after each commit: rings here and elsewhere."""
        self._seen = self._look()
        self._ring()
        try:
            for name in self._others():
                self._ring_other(name)
        except OSError as error:
            log.debug("cannot ring other processes: %s", error)

    def close(self) -> None:
        """Ends the listener. To be called once, when no `committed` can follow."""
        with self._lock:
            self._closed = True
            self._rings = ()
            listener = self._listener
        if listener is not None:
            with contextlib.suppress(OSError):  # then it wakes by itself
                self._sender.sendto(b"!", self._path(self._name))
            listener.join()
        (self._bells / self._name).unlink(missing_ok=True)
        self._sender.close()
        os.close(self._fd)

    def _path(self, name: str) -> str:
        return f"/proc/self/fd/{self._fd}/{name}"

    def _bind(self) -> socket.socket | None:
        bell = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            (self._bells / self._name).unlink(missing_ok=True)
            bell.bind(self._path(self._name))
            (self._bells / self._name).chmod(0o600)
        except OSError as error:
            log.warning("no doorbell in %s (%s): changes of other processes are looked for", self._bells, error)
            bell.close()
            return None
        bell.settimeout(self._look_seconds)
        return bell

    def _listen(self, bell: socket.socket | None) -> None:
        while not self._closed:
            try:
                if bell is None:
                    time.sleep(self._look_seconds)
                else:
                    bell.recv(16)
            except TimeoutError:
                pass
            found = self._look()
            if found != self._seen:
                self._seen = found
                self._ring()
        if bell is not None:
            bell.close()

    def _ring(self) -> None:
        for ring in self._rings:
            try:
                ring()
            except Exception:
                log.exception("a subscriber of the store failed")

    def _ring_other(self, name: str) -> None:
        try:
            self._sender.sendto(b"!", self._path(name))
        except BlockingIOError:
            pass  # its queue is full of rings that it has not heard yet
        except (ConnectionRefusedError, FileNotFoundError):
            (self._bells / name).unlink(missing_ok=True)  # its process is gone

    def _others(self) -> tuple[str, ...]:
        changed = self._bells.stat().st_mtime_ns
        if changed != self._peers_at:
            self._peers = tuple(bell.name for bell in self._bells.iterdir() if bell.name != self._name)
            # A second change within the clock's tick would go unseen: keep the list only once it is old enough.
            self._peers_at = changed if time.time_ns() - changed > _FRESH_NS else -1
        return self._peers
