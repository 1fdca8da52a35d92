"""One rendering from its files to its output: laid out, run in a sandbox, judged (endings).

Called by renderer, which knows what was rendered before. As many run at once as settings say, whoever asks.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from pathlib import Path

from reconciler.rendering import invocation, words
from reconciler.rendering.confinement import ConfinedRun, NoConfinement
from reconciler.rendering.endings import fault_of, here, late
from reconciler.rendering.material import UnfitFiles, lay_out
from reconciler.rendering.rendering import Rendered
from reconciler.rendering.request import RenderRequest, Tool
from reconciler.rendering.running import RunEnd, RunsUnderWay, run_confined
from reconciler.rendering.sandboxes import ReadyTool
from reconciler.rendering.settings import RenderingSettings
from reconciler.rendering.workplace import Workplace

log = logging.getLogger(__name__)


class Rounds:
    """Of one renderer."""

    def __init__(self, settings: RenderingSettings) -> None:
        self._settings = settings
        self._workplace = Workplace(settings.cache / "work")
        self._under_way = RunsUnderWay()
        self._turns = threading.BoundedSemaphore(max(1, settings.at_once))

    def render(self, request: RenderRequest, ready: ReadyTool) -> Rendered:
        """Raises RepositoryUnreadable."""
        with self._turns:
            try:
                with self._workplace.room() as top:
                    lay_out(request.files(), request.repo, top, self._settings.bounds)
                    if not (top / request.directory).is_dir():
                        raise UnfitFiles(f"{request.directory or 'the top'} is no directory with files", "")
                    return self._run(request, ready, top)
            except UnfitFiles as error:
                return Rendered(fault=words.plain(str(error)), hint=error.hint)
            except OSError as error:  # without the name of the file, which is this machine's
                return here(f"{request.tool} could not be run here: {error.strerror}")
            except NoConfinement as error:
                log.warning("%s could not be run: %s", request.tool, error)
                return here(f"{request.tool} could not be run here: its sandbox did not begin, as the log says")

    def end(self) -> None:
        """Ends what runs just now."""
        self._under_way.end()

    def close(self) -> None:
        self._workplace.close()

    def _run(self, request: RenderRequest, ready: ReadyTool, top: Path) -> Rendered:
        bounds, began = self._settings.bounds, time.monotonic()
        run = ConfinedRun(
            ready.program,
            invocation.arguments(request.tool, request.directory, self._settings),
            invocation.environment(bounds.memory),
            top,
            request.directory,
            bounds,
        )
        result = run_confined(ready.confinement, run, self._under_way)
        fault = fault_of(request, result, run, ready.confinement)
        if fault is not None or request.tool is Tool.KUSTOMIZE:
            return fault or Rendered(result.output)
        # Charts can draw lots and look at the clock: each load would be another commit's worth of changes.
        left = max(1.0, bounds.seconds - (time.monotonic() - began))
        run = run._replace(bounds=replace(bounds, seconds=left))
        again = run_confined(ready.confinement, run, self._under_way)
        fault = fault_of(request, again, run, ready.confinement)
        if again.end is RunEnd.TIME:
            return late(bounds)
        if fault is not None and not fault.lasting:
            return fault
        return Rendered(result.output) if again.output == result.output else Rendered(fault=_LOTS, hint=_NO_LOTS)


_LOTS = (
    "two renderings of the same files differ: the chart uses random values, makes certificates, or asks for the time"
)
_NO_LOTS = (
    "set the values that stand for these (as existingSecret) in values.yaml, or take randAlphaNum, genCA, uuidv4, now "
    "and the like out of its templates"
)
