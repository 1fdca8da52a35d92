"""Which tools run here, as far as that was asked: found when they are first needed, and looked for again where they
are missing or have changed.

Called by renderer, by any of its threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from reconciler.rendering.programs import NoProgram, RenderProgram, program_of
from reconciler.rendering.request import Tool
from reconciler.rendering.sandboxes import ReadyTool

_AGAIN = 2.0
"""Seconds after which a program is looked at again."""

Trying = Callable[[Tool, RenderProgram], ReadyTool]
"""Runs a program for the first time. Raises NoProgram."""


class FoundTools:
    """`told`: the programs that settings name."""

    def __init__(self, told: dict[Tool, Path | None], trying: Trying) -> None:
        self._told, self._trying = told, trying
        self._locks = {tool: threading.Lock() for tool in Tool}
        self._found: dict[Tool, tuple[float, ReadyTool | NoProgram]] = {}

    def ready(self, tool: Tool) -> ReadyTool:
        """Raises NoProgram, where it does not run here."""
        with self._locks[tool]:
            looked, known = self._found.get(tool, (0.0, None))
            now = time.monotonic()
            if known is None or now - looked > _AGAIN:
                known = self._look(tool, known)
                self._found[tool] = time.monotonic(), known
        if isinstance(known, NoProgram):
            raise NoProgram(str(known), known.hint)
        return known

    def _look(self, tool: Tool, known: ReadyTool | NoProgram | None) -> ReadyTool | NoProgram:
        try:
            program = program_of(tool, self._told[tool])
            if isinstance(known, ReadyTool) and known.program == program:
                return known
            return self._trying(tool, program)
        except NoProgram as error:
            return error
