"""What the reconciler's process says of its work, as reports for `up` (see report). A trouble is told once, not at each
try."""

from __future__ import annotations

from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.commands.report import Report
from reconciler.loading.loader import Loaded


class Teller:
    """Methods may be called from every thread."""

    def __init__(self, report: Report) -> None:
        self.progress = report.progress
        self._report = report
        self._told = ""

    def loaded(self, store: Store, commit: str, seconds: float) -> None:
        """The first load is complete."""
        held, count = tree.held(store), tree.count(store)
        self._report.say("loaded", commit=commit, workspaces=count, seconds=round(seconds, 2), held=held)

    def held(self, loaded: Loaded) -> None:
        """Who is held back by what was loaded, and who no more."""
        if loaded.problems:
            self.trouble(f"commit {loaded.head:.10} is held: {'; '.join(map(str, loaded.problems))}")
        for step in loaded.steps:
            for path in step.mended:
                self._report.say("mended", workspace=path)
            for path, problems in step.held.items():
                self._report.say("held", workspace=path, problems=[str(p) for p in problems])

    def trouble(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._report.say("trouble", text=text)

    def over(self) -> None:
        """The last trouble is over: it would be told again."""
        self._told = ""

    def refused(self, text: str) -> None:
        """The server does not start."""
        self._report.say("refused", text=text)
