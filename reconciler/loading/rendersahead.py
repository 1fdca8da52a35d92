"""What comes of tenants' repositories, rendered before it counts, so that nobody waits for a stranger's program.

Made by commands/sourcing, and given to the loader in place of what renders (`Sources.theirs`): who judges is told at
once what is at hand, and that something is being rendered where it is not. `is_ready` has it rendered, in threads of
its own; `came` says whose is there, to be judged again. What fails for the moment is late, and is that until `again`.

Whose turn it is goes by sources (`sourceturns`): somebody whose programs never end is in nobody's way but for the first
time, when nobody knows it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from apiserver.model.failures import described
from apiserver.model.remembered import Remembered
from reconciler.loading.renderings import RenderedDirectory
from reconciler.loading.sourceturns import SourceTurn, SourceTurns, Wisher
from reconciler.rendering.rendering import Rendered, Renders
from reconciler.rendering.request import RenderRequest, Tool
from reconciler.rendering.settings import cores

log = logging.getLogger(__name__)

_LATE, _EACH = 8 * 1024 * 1024, 1024
"""Bytes in memory of what is late, and of one of these."""
_COMING = Rendered(fault="it is being rendered", hint="it is served once that is done", lasting=False)
_REST = Rendered(
    fault="what its workspace has rendered takes too long together",
    hint="have it render less, or give some of it another workspace; it is tried again",
    lasting=False,
)
_AWAY = Rendered(fault="its files cannot be read", hint="it is tried again", lasting=False)


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
        self._turns = SourceTurns(self._at_once)
        self._came: set[str] = set()
        self._workers = 0

    # -- as what is rendered counts

    def is_ready(self, source: str, path: str, some: Iterable[RenderedDirectory]) -> bool:
        """Whether it is known what comes of these, for a workspace in the source of the one at `source`; what is not is
        rendered, and said by `came` then."""
        return self._are_ready(source, Wisher(path), {path: some})

    def has(self, source: str, all_of_it: Mapping[str, Iterable[RenderedDirectory]]) -> bool:
        """The same of all that a head of a source has, by workspaces, whatever names them. `came` says nothing of
        it."""
        return self._are_ready(source, Wisher("", head=True), all_of_it)

    def is_busy(self, source: str) -> bool:
        """Whether what `has` was asked for last is being rendered still."""
        with self._lock:
            return self._turns.waits(source, Wisher("", head=True))

    def again(self, source: str, path: str, some: Collection[RenderedDirectory]) -> None:
        """Tries again what is late of these; `came` says when that is done."""
        for each in some:
            self._late.forget(_key(each.request))
        if self.is_ready(source, path, some):
            with self._lock:
                self._came.add(path)

    def _are_ready(self, source: str, who: Wisher, wanted: Mapping[str, Iterable[RenderedDirectory]]) -> bool:
        missing = {path: self._missing(some) for path, some in wanted.items()}
        missing = {path: found for path, found in missing.items() if found}
        if missing:
            self._begin(source, who, missing)
        return not missing

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
            self._turns.clear()

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
            found = self._turns.take(self._now())
        if found is not None:
            self._render(found)
        return found is not None

    def _begin(self, source: str, who: Wisher, missing: Mapping[str, Collection[RenderRequest]]) -> None:
        with self._lock:
            self._turns.want(source, who, missing)
            for _ in range(min(self._at_once - self._workers, self._turns.sources)):
                self._workers += 1
                threading.Thread(target=self._run, name="prepared", daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                found = self._turns.take(self._now())
                if found is None:
                    self._workers -= 1
                    return
            self._render(found)

    def _render(self, turn: SourceTurn) -> None:
        request = turn.request
        try:
            made = self._late.get(_key(request)) or self._renders.rendered(request)
        except Exception as error:
            log.warning("what is rendered of %s cannot be: %s", turn.source, described(error))
            made = _AWAY
        with self._lock:
            if not made.lasting:
                self._late.put(_key(request), made, _EACH + len(made.fault))
            done = self._turns.done(turn, self._now())
            for each in done.too_many:
                self._late.put(_key(each), _REST, _EACH)
            if done.over and turn.who.path:
                self._came.add(turn.who.path)
        if done.over:
            self._ring()


def _key(request: RenderRequest) -> tuple[Path, str]:
    return request.repo.path, request.digest
