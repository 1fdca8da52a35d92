"""What comes of tenants' repositories, rendered before it counts, so that nobody waits for a stranger's program.

Made by commands/sourcing, and given to the loader in place of what renders (`Sources.theirs`): who judges is told at
once what is at hand, and that something is being rendered where it is not. `is_ready` has it rendered, in threads of
its own; `came` says whose is there, to be judged again. What fails for the moment is late, and is that until `again`.

Each workspace has one directory at work, in turns; those that took long last time have half of the places together, and
after a minute of work the rest of a workspace is late. So somebody whose programs never end is in nobody's way but for
the first time, when nobody knows it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.model.failures import described
from apiserver.model.remembered import Remembered
from reconciler.loading.expected import TOGETHER
from reconciler.loading.renderings import RenderedDirectory
from reconciler.rendering.rendering import Rendered, Renders
from reconciler.rendering.request import RenderRequest, Tool
from reconciler.rendering.settings import cores

log = logging.getLogger(__name__)

_LONG = 5.0
"""Seconds of one rendering from which on its workspace is one of those that take long."""
_LATE, _EACH = 8 * 1024 * 1024, 1024
"""Bytes in memory of what is late, and of one of these."""
_COMING = Rendered(fault="it is being rendered", hint="it is served once that is done", lasting=False)
_REST = Rendered(
    fault="what its workspace has rendered takes too long together",
    hint="have it render less, or give some of it another workspace; it is tried again",
    lasting=False,
)
_AWAY = Rendered(fault="its files cannot be read", hint="it is tried again", lasting=False)


@dataclass(slots=True)
class _Round:
    """What is rendered for one workspace. `wanted`: digests of all of it; `at_work`: what is rendered just now, `since`
    when; `spent`: seconds of what was."""

    wanted: frozenset[str] = frozenset()
    left: deque[RenderRequest] = field(default_factory=deque)
    at_work: RenderRequest | None = None
    since: float = 0.0
    spent: float = 0.0

    def want(self, missing: Collection[RenderRequest]) -> None:
        """What was wanted before may be of a head that its branch has no more."""
        digests = frozenset(each.digest for each in missing)
        if not digests <= self.wanted:
            self.wanted, self.spent = digests, 0.0
        at_work = self.at_work.digest if self.at_work is not None else ""
        self.left = deque(each for each in missing if each.digest != at_work)


class PreparedRenderings:
    """A Renders. Safe from every thread. `ring` is called by its threads, of which there are `at_once` at most, when
    `came` has something to say; 0: whoever made it calls `work`. `now`: seconds of a clock that never goes back."""

    def __init__(
        self,
        renders: Renders,
        ring: Callable[[], None] = lambda: None,
        at_once: int | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._renders, self._ring, self._now = renders, ring, now
        self._at_once = max(2, cores()) if at_once is None else at_once
        self._late: Remembered[tuple[Path, str], Rendered] = Remembered(_LATE)
        self._lock = threading.Lock()
        self._rounds: dict[str, _Round] = {}
        """By workspace; whose turn comes next is first."""
        self._long: set[str] = set()
        self._came: set[str] = set()
        self._workers = 0

    # -- as what is rendered counts

    def is_ready(self, path: str, some: Iterable[RenderedDirectory]) -> bool:
        """Whether it is known what comes of these, for a workspace; what is not is rendered, and said by `came`
        then."""
        missing = self._missing(some)
        if missing:
            self._begin(path, missing)
        return not missing

    def again(self, path: str, some: Collection[RenderedDirectory]) -> None:
        """Tries again what is late of these; `came` says when that is done."""
        for each in some:
            self._late.forget(_key(each.request))
        if self.is_ready(path, some):
            with self._lock:
                self._came.add(path)

    def _missing(self, some: Iterable[RenderedDirectory]) -> list[RenderRequest]:
        found = {each.request.digest: each.request for each in some if each.refused is None}
        return [each for each in found.values() if not self.is_at_hand(each)]

    def came(self) -> set[str]:
        """The workspaces for which all has come since this was asked last."""
        with self._lock:
            found, self._came = self._came, set()
        return found

    def drop(self) -> None:
        """Forgets what is still to be begun. What is at work ends with who renders."""
        with self._lock:
            self._rounds.clear()

    # -- as a Renders

    def rendered(self, request: RenderRequest) -> Rendered:
        late = self._late.get(_key(request))
        if late is not None:
            return late
        return self._renders.rendered(request) if self._renders.is_at_hand(request) else _COMING

    def expect(self, requests: Iterable[RenderRequest]) -> None:
        """Nobody waits for what comes of tenants' repositories."""

    def is_expected(self, request: RenderRequest) -> bool:  # noqa: ARG002
        return False

    def is_at_hand(self, request: RenderRequest) -> bool:
        return self._late.get(_key(request)) is not None or self._renders.is_at_hand(request)

    def version(self, tool: Tool) -> str:
        return self._renders.version(tool)

    @property
    def fingerprint(self) -> str:
        return self._renders.fingerprint

    # -- at work

    def work(self) -> bool:
        """Renders what is next; whether there was something."""
        with self._lock:
            found = self._next()
        if found is not None:
            self._render(*found)
        return found is not None

    def _begin(self, path: str, missing: Collection[RenderRequest]) -> None:
        with self._lock:
            self._rounds.setdefault(path, _Round()).want(missing)
            for _ in range(min(self._at_once - self._workers, len(self._rounds))):
                self._workers += 1
                threading.Thread(target=self._run, name="prepared", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                found = self._next()
                if found is None:
                    self._workers -= 1
                    return
            self._render(*found)

    def _render(self, path: str, request: RenderRequest) -> None:
        try:
            made = self._renders.rendered(request)
        except Exception as error:
            log.warning("what is rendered of %s cannot be: %s", path, described(error))
            made = _AWAY
        with self._lock:
            over = self._done(path, request, made)
        if over:
            self._ring()

    def _next(self) -> tuple[str, RenderRequest] | None:
        now = self._now()
        at_work = {path: now - each.since for path, each in self._rounds.items() if each.at_work is not None}
        long = sum(1 for path, took in at_work.items() if took >= _LONG or path in self._long)
        full = long >= max(1, self._at_once // 2)
        for path, each in self._rounds.items():
            if each.left and each.at_work is None and not (full and path in self._long):
                self._rounds[path] = self._rounds.pop(path)
                each.at_work, each.since = each.left.popleft(), now
                return path, each.at_work
        return None

    def _done(self, path: str, request: RenderRequest, made: Rendered) -> bool:
        """Whether that was the last of a workspace."""
        if not made.lasting:
            self._late.put(_key(request), made, _EACH + len(made.fault))
        known = self._rounds.get(path)
        if known is None:
            return False
        took, known.at_work = self._now() - known.since, None
        known.spent += took
        if took >= _LONG:
            self._long.add(path)
        elif known.spent < _LONG and not known.left:
            self._long.discard(path)
        if known.spent >= TOGETHER:
            for each in known.left:
                self._late.put(_key(each), _REST, _EACH)
            known.left.clear()
        if known.left:
            return False
        del self._rounds[path]
        self._came.add(path)
        return True


def _key(request: RenderRequest) -> tuple[Path, str]:
    return request.repo.path, request.digest
