"""What is written down of each push to the hosted repository (apiserver/pushlog), and when.

Called by git.py, which knows who pushes, and by gitservice.py, which hears from git what comes of it. The disk is
waited for in threads, so that other requests go on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from apiserver.endpoints.pushhooks import HELD_VERDICT, VERDICTS
from apiserver.endpoints.pushreport import PushReport
from apiserver.pushlog import ACCEPTED, HELD, REFUSED, UNKNOWN, WINDOW, PushedRef, Pusher, PushLog, RefOutcome

log = logging.getLogger(__name__)

_NONE = "0" * 40


class WrittenPushes:
    """Of one process. `served`: the branch that is served, as a ref."""

    def __init__(self, data_dir: Path, git_dir: Path, served: str, *, durable: bool = True) -> None:
        self.log = PushLog(data_dir, durable=durable)
        self.git_dir = git_dir
        self.served = served
        self._counting: asyncio.TimerHandle | None = None

    async def refused(self, pusher: Pusher, words: str) -> None:
        """Somebody was not let in."""
        try:
            if not await asyncio.to_thread(self.log.refused, pusher, words) and self._counting is None:
                self._counting = asyncio.get_running_loop().call_later(WINDOW, self._count)
        except OSError as error:
            log.warning("a push that was refused is not written down: %s", error)

    def _count(self) -> None:
        self._counting = None
        try:
            self.log.count()
        except OSError as error:
            log.warning("pushes that were refused are not written down: %s", error)


class WrittenPush:
    """One push."""

    def __init__(self, written: WrittenPushes, pusher: Pusher) -> None:
        self._written, self._pusher = written, pusher
        self._refs: tuple[PushedRef, ...] = ()
        self._push = ""

    async def begin(self, refs: Iterable[PushedRef]) -> None:
        """Before git is asked. Raises OSError: then it is not to be."""
        self._refs, written = tuple(refs), self._written
        self._push = await asyncio.to_thread(written.log.begun, self._pusher, self._refs, written.served)

    async def refuse(self, why: str) -> None:
        """git is not asked."""
        await self._written.refused(self._pusher, why)

    async def end(self, report: PushReport) -> None:
        """Once git has ended, before its client hears of it."""
        if not self._push:
            return
        push, self._push = self._push, ""
        try:
            await asyncio.to_thread(self._end, push, report)
        except OSError as error:
            log.error("what came of a push is not written down: %s", error)  # it is made; that it began is written

    async def cut(self, why: str) -> None:
        """It was given up in the middle."""
        await self.end(PushReport({}, why))

    def _end(self, push: str, report: PushReport) -> None:
        self._written.log.ended(push, self._outcomes(report.refs), report.words)

    def _outcomes(self, said: Mapping[str, str]) -> dict[str, RefOutcome]:
        found = {}
        for each in sorted(self._refs, key=lambda each: each.ref != self._written.served):
            why = said.get(each.ref)
            if why:
                found[each.ref] = RefOutcome(each.ref, REFUSED, why[:500])
            elif why is None and not self._stands(each):
                found[each.ref] = RefOutcome(each.ref, UNKNOWN)
            else:
                held = each.ref == self._written.served and self._is_held(each.new)
                found[each.ref] = RefOutcome(each.ref, HELD if held else ACCEPTED)
        return found

    def _stands(self, pushed: PushedRef) -> bool:
        """Whether a ref is where it was to go: a client need not have asked for a report."""
        if not pushed.ref.startswith("refs/") or ".." in pushed.ref or pushed.new == _NONE:
            return False
        try:
            return _begin_of(self._written.git_dir / pushed.ref) == pushed.new
        except (OSError, ValueError):
            return False

    def _is_held(self, commit: str) -> bool:
        """As the reconciler says by now."""
        try:
            return _begin_of(self._written.git_dir / VERDICTS / commit) == HELD_VERDICT
        except OSError:
            return False


def _begin_of(file: Path) -> str:
    with file.open("rb") as handle:
        return handle.readline(100).decode(errors="replace").rstrip("\n")
