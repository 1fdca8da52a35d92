"""Chooses the sandbox: bubblewrap where user namespaces work, else Landlock, else none.

Called by tools. What works is found out by what it is for: a renderer is run in it and asked for its version.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from reconciler.rendering import bubblewrap, invocation
from reconciler.rendering.confinement import ConfinedRun, Confinement, NoConfinement
from reconciler.rendering.landlock import Landlock
from reconciler.rendering.programs import NoProgram, RenderProgram
from reconciler.rendering.request import Tool
from reconciler.rendering.running import run_confined
from reconciler.rendering.settings import RenderingBounds
from reconciler.rendering.words import plain


class ReadyTool(NamedTuple):
    """A tool that runs here. `version`: in its own words."""

    program: RenderProgram
    confinement: Confinement
    version: str


def known_sandboxes() -> list[Confinement]:
    """The best first."""
    if sys.platform != "linux":
        return []
    return [*(bubblewrap.Bubblewrap(program) for program in bubblewrap.programs()), Landlock()]


def tried(tool: Tool, program: RenderProgram, among: Sequence[Confinement], bounds: RenderingBounds) -> ReadyTool:
    """The program in the first sandbox that it runs in. Raises NoProgram."""
    reasons = []
    for confinement in among:
        try:
            version = _version(tool, program, confinement, bounds)
        except (NoConfinement, OSError) as error:
            reasons.append(f"{confinement.name}: {plain(str(error), 300)}")
            continue
        if not version:
            text = f"{program.path} tells no version, as {tool} would: {' '.join(invocation.VERSION_OF[tool])}"
            raise NoProgram(text, "is it the right program, and for this machine?")
        return ReadyTool(program, confinement, version)
    text = (
        f"nothing on this machine keeps {tool} from what it must not see ({'; '.join(reasons) or 'this is no Linux'})"
    )
    raise NoProgram(text, "allow user namespaces (in a container: by its seccomp profile), or a kernel with Landlock")


def _version(tool: Tool, program: RenderProgram, confinement: Confinement, bounds: RenderingBounds) -> str:
    with tempfile.TemporaryDirectory(prefix="treeplane-") as top:
        environment = invocation.environment(bounds.memory)
        run = ConfinedRun(program, invocation.VERSION_OF[tool], environment, Path(top), "", bounds)
        result = run_confined(confinement, run)
    return plain(result.output.decode("utf-8", "replace"), 200) if result.code == 0 else ""
