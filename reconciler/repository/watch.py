"""Rings when a source's branches may have moved: at once for a repository on this machine, by polling for a URL.

Called by the loader's process. For a repository here a ring promises nothing, and none is lost. A URL is looked at in
this module's own thread, since it may take long to answer: what it says then is there when it rings.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import watchfiles

from reconciler.repository.objects import Repository
from reconciler.repository.source import kind_of_source

Callback = Callable[[], bool | None]
"""Returns whether the source answered: one that does not is asked less often."""

_log = logging.getLogger(__name__)
_SLOWEST = 60.0
_LEAST = 1.0
"""Seconds from one look that somebody rang for to the next, however often they ring."""
_LOOK_MILLISECONDS = 2000
"""How often refs are looked at without an event: inotify may miss a file in a directory that was just made."""


class HeadWatcher:
    """A thread (two for a repository here) that calls `callback` after a change. It never calls it twice at a time."""

    def __init__(
        self,
        source: str,
        callback: Callback,
        every: float = 10.0,
        planned: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`every`: seconds from one look at a URL to the next; `planned` is called with how many it will be. What
        changes from now on rings, however late the threads come to it."""
        self._callback = callback
        self._every = every
        self._planned = planned
        self._stop = Event()
        self._ring = Event()
        self._asked = Event()
        self._last = -_LEAST
        self._threads: list[Thread] = []
        if kind_of_source(source) == "url":
            self._loops: list[tuple[Callable[..., None], tuple[object, ...]]] = [(self._poll, ())]
        else:
            git_dir = Repository(source).git_dir
            self._loops = [
                (self._watch, (git_dir, False)),
                (self._watch, (git_dir / "refs", True)),
                (self._look, (git_dir, fingerprint(git_dir))),
            ]

    def start(self) -> None:
        for target, arguments in self._loops:
            thread = Thread(target=target, args=arguments, name="heads", daemon=True)
            thread.start()
            self._threads.append(thread)

    def ring(self) -> None:
        """Have `callback` called now, whether or not something moved; at most once a second."""
        self._asked.set()
        self._ring.set()

    def stop(self) -> None:
        """Returns when no call is under way any more, at most a few seconds later."""
        self._stop.set()
        self._ring.set()
        for thread in self._threads:
            thread.join(timeout=5)

    def _watch(self, directory: Path, recursive: bool) -> None:
        """Rings for events. Two of these: HEAD and packed-refs are replaced in the git directory, and watching that
        with all below it would mean every object."""
        while not self._stop.is_set():
            try:
                for _ in watchfiles.watch(
                    directory, recursive=recursive, stop_event=self._stop, debounce=100, step=20, watch_filter=None
                ):
                    self._ring.set()
            except (OSError, RuntimeError) as error:
                _log.warning("%s cannot be watched (%s); it is looked at every two seconds", directory, error)
                self._stop.wait(30)

    def _look(self, git_dir: Path, before: dict[str, tuple[int, int, int]]) -> None:
        """Calls back when the refs' files differ from what they were; an event only makes it look at once."""
        while not self._stop.is_set():
            # Who asked within the second waits for its end, what moved does not.
            early = self._early() if self._asked.is_set() else 0.0
            self._ring.wait(early or _LOOK_MILLISECONDS / 1000)
            self._ring.clear()
            if self._stop.is_set():
                return
            now = fingerprint(git_dir)
            asked = self._asked.is_set() and not self._early()
            if now != before or asked:
                before = now
                if asked:
                    self._begin_asked()
                self._call()

    def _poll(self) -> None:
        failures = 0
        while not self._stop.is_set():
            seconds = pause(self._every, failures) * random.uniform(0.9, 1.0)  # noqa: S311 (spreads load)
            self._planned(seconds)
            if self._ring.wait(seconds):
                self._stop.wait(self._early())
            if self._stop.is_set():
                return
            self._ring.clear()
            self._begin_asked()
            failures = 0 if self._call() else failures + 1

    def _early(self) -> float:
        """Seconds until a look may begin that somebody rang for."""
        return max(0.0, self._last + _LEAST - time.monotonic())

    def _begin_asked(self) -> None:
        """Whoever rings from now on means the next look."""
        self._asked.clear()
        self._last = time.monotonic()

    def _call(self) -> bool:
        try:
            return bool(self._callback())
        except Exception:
            _log.exception("a new commit could not be looked at")
            return False


def pause(every: float, failures: int) -> float:
    """Seconds until a URL is looked at again, after so many looks in a row that it did not answer."""
    return max(every, min(every * 1.5**failures, _SLOWEST))


def fingerprint(git_dir: Path) -> dict[str, tuple[int, int, int]]:
    """What tells whether any ref moved: inode, size and time of each file that holds one. Lock files do not count."""
    files = [git_dir / "packed-refs", git_dir / "HEAD"]
    files += [path for path in (git_dir / "refs").rglob("*") if path.suffix != ".lock"]
    out: dict[str, tuple[int, int, int]] = {}
    for path in files:
        try:
            found = path.stat()
        except OSError:
            continue
        if path.is_file():
            out[str(path)] = (found.st_ino, found.st_size, found.st_mtime_ns)
    return out
