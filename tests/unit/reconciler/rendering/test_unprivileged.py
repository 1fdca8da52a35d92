"""The sandboxes of a server that is not root, where these tests run as root: the same, for a user without rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from reconciler.rendering.confinement import Confinement

CODE = """
import os, sys
from pathlib import Path
from reconciler.rendering import bubblewrap, landlock, running, programs
from reconciler.rendering.confinement import ConfinedRun
from reconciler.rendering.request import Tool
from reconciler.rendering.settings import RenderingBounds

name, python, program, top, *deeds = sys.argv[1:]
os.setgroups([])
os.setresgid(65534, 65534, 65534)
os.setresuid(65534, 65534, 65534)
sys.executable = python
sandbox = landlock.Landlock() if name == "Landlock" else bubblewrap.Bubblewrap(bubblewrap.programs()[0])
bounds = RenderingBounds(seconds=20, memory=256 * 1024 * 1024)
for deed in deeds:
    found = programs.program_of(Tool.KUSTOMIZE, Path(program))
    result = running.run_confined(sandbox, ConfinedRun(found, tuple(deed.split()), {}, Path(top), "", bounds))
    print(result.output.decode().partition(" ")[0] or "failed")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="these tests run as a user without rights anyway")
def test_a_user_without_rights_is_as_safe(sandbox: Confinement, hostile: Path) -> None:
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        place.chmod(0o755)
        program = Path(shutil.copy(hostile, place / "hostile"))
        program.chmod(0o755)
        shown = place / "shown"
        shown.mkdir(mode=0o755)
        (shown / "own.yaml").write_text("own: 1\n")
        (place / "beside").write_text("secret")
        (place / "beside").chmod(0o644)
        good = ["read own.yaml"]
        bad = [
            f"read {place}/beside",
            "read /etc/passwd",
            "read /proc/self/environ",
            "connect udp 192.0.2.1:53",
            "fork",
        ]
        bad += [f"write {place}/new", "exec /bin/sh", "owner 1", "raise", "memory 600"]
        # Elsewhere the kernel counts all threads of the user, whom a server is one of.
        bad += ["threads 1000"] if sandbox.name == "bubblewrap" else []
        words = [sandbox.name, _python(), str(program), str(shown), *good, *bad]
        answer = subprocess.run([sys.executable, "-c", CODE, *words], capture_output=True, text=True, check=False)
    said = answer.stdout.split()
    assert len(said) == len(good) + len(bad), answer.stderr
    assert said[0] == "done" and "done" not in said[1:], said


def _python() -> str:
    """One that everybody may start, for the launcher of Landlock, which needs nothing beside it."""
    for python in (os.path.realpath(sys.executable), "/usr/bin/python3"):
        if all(Path(place).stat().st_mode & 0o005 == 0o005 for place in (python, *Path(python).parents)):
            return python
    pytest.skip("there is no Python that another user may start")
