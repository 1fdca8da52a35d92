"""A long first load, shown: a bar with counts on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from types import TracebackType

from rich import progress
from rich.console import Console

_EVERY = 3.0


class ProgressBar:
    """The total is not known before the end (a tree is read as it is loaded), so the bar counts."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bar = progress.Progress(
            progress.SpinnerColumn(),
            progress.TextColumn("loading"),
            progress.BarColumn(),
            progress.TextColumn("{task.completed:,.0f} workspaces"),
            progress.TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task: progress.TaskID | None = None
        self._began = self._last = time.monotonic()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish()

    def at(self, done: int) -> None:
        if self._console.is_terminal:
            if self._task is None:
                self._task = self._bar.add_task("loading", total=None)
                self._bar.start()
            self._bar.update(self._task, completed=done)
            return
        now = time.monotonic()
        if now - self._last >= _EVERY:
            self._last = now
            self._console.print(f"loading: {done:,} workspaces after {now - self._began:.0f} s")

    def finish(self) -> None:
        if self._task is not None:
            self._bar.stop()
            self._task = None
