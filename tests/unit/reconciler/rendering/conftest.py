"""What a hostile renderer comes to: the sandboxes that work here, and a program that does what it is told to in one."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.rendering import bubblewrap, invocation
from reconciler.rendering.confinement import ConfinedRun, Confinement, NoConfinement
from reconciler.rendering.landlock import Landlock
from reconciler.rendering.programs import program_of
from reconciler.rendering.request import Tool
from reconciler.rendering.running import RunResult, run_confined
from reconciler.rendering.settings import RenderingBounds

Deed = Callable[..., RunResult]
BOUNDS = RenderingBounds(seconds=20)


@pytest.fixture(scope="session", params=["bubblewrap", "Landlock"])
def sandbox(request: pytest.FixtureRequest, hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Confinement:
    """Each sandbox that works on this machine."""
    found = bubblewrap.programs()
    if request.param == "bubblewrap" and not found:
        pytest.skip("no bubblewrap: its wheel is not installed")
    made: Confinement = bubblewrap.Bubblewrap(found[0]) if request.param == "bubblewrap" else Landlock()
    try:
        run_confined(made, _run(hostile, ("version",), tmp_path_factory.mktemp("probe"), BOUNDS))
    except NoConfinement as error:
        pytest.skip(f"no {request.param} here: {error}")
    return made


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """What the program sees, with a file in it."""
    made = tmp_path / "shown"
    (made / "workspaces" / "root").mkdir(parents=True)
    (made / "workspaces" / "root" / "own.yaml").write_text("own: 1\n")
    return made


@pytest.fixture
def program(hostile: Path, tmp_path: Path) -> Path:
    """The program under a name that no other test's processes have."""
    return shutil.copy(hostile, tmp_path / f"hostile-{uuid.uuid4()}")


@pytest.fixture
def does(sandbox: Confinement, program: Path, top: Path) -> Deed:
    """`does(deed, *words)`: what comes of it in the sandbox."""

    def run(*words: str, **bounds: float) -> RunResult:
        return run_confined(sandbox, _run(program, words, top, replace(BOUNDS, **bounds)))

    return run


def _run(program: Path, words: tuple[str, ...], top: Path, bounds: RenderingBounds) -> ConfinedRun:
    environment = invocation.environment(bounds.memory)
    return ConfinedRun(program_of(Tool.KUSTOMIZE, program), words, environment, top, "", bounds)
