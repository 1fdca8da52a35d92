"""One rendering from its files to its output: laid out, run in a sandbox, judged.

Called by renderer, which knows what was rendered before. As many run at once as settings say, whoever asks.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

from reconciler.rendering import invocation, words
from reconciler.rendering.confinement import ConfinedRun, Confinement, NoConfinement
from reconciler.rendering.limits import grants
from reconciler.rendering.material import UnfitFiles, lay_out
from reconciler.rendering.rendering import Rendered
from reconciler.rendering.request import RenderRequest, Tool
from reconciler.rendering.running import RunEnd, RunResult, RunsUnderWay, run_confined
from reconciler.rendering.sandboxes import ReadyTool
from reconciler.rendering.settings import RenderingSettings
from reconciler.rendering.workplace import Workplace

log = logging.getLogger(__name__)

_MEMORY = b"out of memory"
_KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
_CPU = (-signal.SIGXCPU, 128 + signal.SIGXCPU)


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
                return _here(f"{request.tool} could not be run here: {error.strerror}")
            except NoConfinement as error:
                log.warning("%s could not be run: %s", request.tool, error)
                return _here(f"{request.tool} could not be run here: its sandbox did not begin, as the log says")

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
        fault = self._fault(request, result, run, ready.confinement)
        if fault is not None or request.tool is Tool.KUSTOMIZE:
            return fault or Rendered(result.output)
        # Charts can draw lots and look at the clock: each load would be another commit's worth of changes.
        left = replace(bounds, seconds=max(1.0, bounds.seconds - (time.monotonic() - began)))
        again = run_confined(ready.confinement, run._replace(bounds=left), self._under_way)
        if again.end is RunEnd.TIME:
            return self._late()
        return Rendered(result.output) if again.output == result.output else Rendered(fault=_LOTS, hint=_NO_LOTS)

    def _fault(
        self, request: RenderRequest, result: RunResult, run: ConfinedRun, sandbox: Confinement
    ) -> Rendered | None:
        bounds = run.bounds
        if result.end is RunEnd.TIME or result.code in _CPU:
            return self._late()
        if result.end is RunEnd.OUTPUT:
            text = f"it prints more than {bounds.output >> 20} MiB"
            return Rendered(fault=text, hint="render it in several directories")
        if result.code and _MEMORY in result.said:
            text = f"it takes more than {bounds.memory >> 20:,} MiB of memory"
            return Rendered(fault=text, hint="render less in one directory", lasting=grants(bounds))
        if result.code in _KILLED:
            return _here(f"{request.tool} was killed, as when this machine has no memory left")
        if result.code:
            seen_at = sandbox.seen_at(run.top)
            told = words.told(request.tool, request.directory, result.said, seen_at, blind=sandbox.blind)
            return Rendered(b"", *told)
        if not result.output.replace(b"---", b"").strip():
            return Rendered(fault="it renders nothing", hint="to have no objects, delete the directory")
        return None

    def _late(self) -> Rendered:
        text = f"it takes more than {self._settings.bounds.seconds:.0f} s"
        return Rendered(
            fault=text, hint="render less in one directory, or wait until the machine is less busy", lasting=False
        )


_LOTS = (
    "two renderings of the same files differ: the chart uses random values, makes certificates, or asks for the time"
)
_NO_LOTS = (
    "set the values that stand for these (as existingSecret) in values.yaml, or take randAlphaNum, genCA, uuidv4, now "
    "and the like out of its templates"
)


def _here(text: str) -> Rendered:
    return Rendered(fault=words.plain(text), hint="see the server's machine, then wait for the next try", lasting=False)
