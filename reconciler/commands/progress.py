"""A long first load, shown: a bar with counts on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

from apiserver.model.counts import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

_EVERY = 3.0


class ProgressBar:
    """The total is not known before the end (a tree is read as it is loaded), so the bar counts."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._began = self._last = time.monotonic()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    def at(self, done: int) -> None:
        if self._console.is_terminal:
            self._show(done)
            return
        now = time.monotonic()
        if now - self._last >= _EVERY:
            self._last = now
            self._console.print(f"loading: {counted(done, 'workspace')} after {now - self._began:.0f} s")

    def _show(self, done: int) -> None:
        if self._bar is None or self._task is None:
            self._bar = _bar(self._console)
            self._task = self._bar.add_task("loading", total=None, done="")
            self._bar.start()
        self._bar.update(self._task, completed=done, done=counted(done, "workspace"))

    def finish(self) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None


def _bar(console: Console) -> Progress:
    from rich import progress  # noqa: PLC0415 - most starts have nothing to show, and would wait for it

    return progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("loading"),
        progress.BarColumn(),
        progress.TextColumn("{task.fields[done]}"),
        progress.TimeElapsedColumn(),
        console=console,
        transient=True,
    )
