"""A reconciler's process that `up` starts before it knows what that is to do.

It loads its modules meanwhile, which takes longer than anything else at a start, and then waits to be told. Whoever
makes one ends it, where nobody takes it.
"""

from __future__ import annotations

import subprocess
from types import TracebackType

from apiserver.logs.outlets import Outlets
from reconciler.commands import tasks
from reconciler.commands.children import start_reconciler


class ReconcilerAhead:
    def __init__(self, outlets: Outlets) -> None:
        with outlets.child(tasks.RECONCILER) as outlet:
            self._process: subprocess.Popen[bytes] | None = start_reconciler(outlet)

    def __enter__(self) -> ReconcilerAhead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self.take()
        if process is not None:
            process.kill()
            process.communicate()

    def take(self) -> subprocess.Popen[bytes] | None:
        """The process, once: it belongs to who takes it."""
        process, self._process = self._process, None
        return process
