"""What the end of a program's run says of a rendering: nothing, or why there is none.

Called by rounds. Told apart is what the same files give each time from what this machine is to blame for: the first is
kept for good, so a machine that was short of something for a moment must not be taken for it.
"""

from __future__ import annotations

import re
import signal

from reconciler.rendering import words
from reconciler.rendering.confinement import ConfinedRun, Confinement
from reconciler.rendering.limits import grants
from reconciler.rendering.rendering import Rendered
from reconciler.rendering.request import RenderRequest
from reconciler.rendering.running import RunEnd, RunResult
from reconciler.rendering.settings import RenderingBounds

_CPU = (-signal.SIGXCPU, 128 + signal.SIGXCPU)
_MEMORY = re.compile(rb"out of memory(?:: cannot allocate (\d+)-byte block \((\d+) in use\))?")
"""As Go's runtime says it."""
_UNCOUNTED = 256 * 1024 * 1024
"""Bytes that Go's runtime takes beside those which it says are in use."""
_SHORT = re.compile(
    rb"^bwrap: |failed to create new OS thread|[Cc]annot allocate memory|[Rr]esource temporarily unavailable"
    rb"|[Ii]nput/output error",
    re.MULTILINE,
)
"""What is said where a machine is short of something, or its disk fails."""


def fault_of(request: RenderRequest, result: RunResult, run: ConfinedRun, sandbox: Confinement) -> Rendered | None:
    """Why there is no output; None where there is."""
    bounds = run.bounds
    if result.end is RunEnd.TIME or result.code in _CPU:
        return late(bounds)
    if result.end is RunEnd.OUTPUT:
        text = f"it prints more than {bounds.output >> 20} MiB"
        return Rendered(fault=text, hint="render it in several directories")
    if not result.code:
        empty = not result.output.replace(b"---", b"").strip()
        hint = "to have no objects, delete the directory"
        return Rendered(fault="it renders nothing", hint=hint) if empty else None
    memory = _MEMORY.search(result.said)
    if memory is not None:
        return _too_much(bounds, sum(int(number or 0) for number in memory.groups()))
    if not 0 < result.code < 128:
        number = -result.code if result.code < 0 else result.code - 128
        return here(f"{request.tool} was ended by signal {number}, as when this machine has no memory left")
    if _SHORT.search(result.said):
        return here(f"{request.tool} could not be run here: {words.plain(result.said.decode('utf-8', 'replace'), 300)}")
    seen_at = sandbox.seen_at(run.top)
    return Rendered(b"", *words.told(request.tool, request.directory, result.said, seen_at, blind=sandbox.blind))


def late(bounds: RenderingBounds) -> Rendered:
    text = f"it takes more than {bounds.seconds:.0f} s"
    hint = "render less in one directory, or wait until the machine is less busy"
    return Rendered(fault=text, hint=hint, lasting=False)


def here(text: str) -> Rendered:
    """What this machine is to blame for."""
    return Rendered(fault=words.plain(text), hint="see the server's machine, then wait for the next try", lasting=False)


def _too_much(bounds: RenderingBounds, asked: int) -> Rendered:
    """`asked`: bytes that it had with those that it wanted then. Where that is far from its bound, others have them."""
    if asked < bounds.memory - _UNCOUNTED:
        return here("this machine has no memory left for it")
    text = f"it takes more than {bounds.memory >> 20:,} MiB of memory"
    return Rendered(fault=text, hint="render less in one directory", lasting=grants(bounds))
