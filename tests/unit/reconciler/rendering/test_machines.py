"""Machines that are other than this one: kernels with less of Landlock, no namespaces, programs that need libraries."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reconciler.rendering import bubblewrap, landlock, landlocked
from reconciler.rendering.confinement import ConfinedRun, Confinement, NoConfinement
from reconciler.rendering.programs import program_of
from reconciler.rendering.request import Tool
from reconciler.rendering.running import run_confined
from reconciler.rendering.settings import RenderingBounds

BOUNDS = RenderingBounds(seconds=20)
CODE = """
import sys
from pathlib import Path
from reconciler.rendering.renderer import DirectoryRenderer
from reconciler.rendering.request import Tool
from reconciler.rendering.settings import RenderingSettings

Path("/proc/sys/user/max_user_namespaces").write_text("0")
renderer = DirectoryRenderer(RenderingSettings(Path(sys.argv[2]), kubectl=Path(sys.argv[1])))
print(renderer.version(Tool.KUSTOMIZE), renderer._tools.ready(Tool.KUSTOMIZE).confinement.name)
"""


def test_rights_are_those_that_the_kernel_knows() -> None:
    assert [landlocked.handled(abi) for abi in (1, 2, 3, 4, 5, 6)] == [
        (0x1FFF, 0, 0), (0x3FFF, 0, 0), (0x7FFF, 0, 0), (0x7FFF, 3, 0), (0xFFFF, 3, 0), (0xFFFF, 3, 3)
    ]  # fmt: skip


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5])
def test_with_less_of_landlock_it_is_as_safe(
    hostile: Path, top: Path, monkeypatch: pytest.MonkeyPatch, abi: int
) -> None:
    if landlock._abi() < abi:
        pytest.skip("this kernel has less")
    monkeypatch.setattr(landlock, "_abi", lambda: abi)
    own = "workspaces/root/own.yaml"

    def output(*words: str) -> bytes:
        run = ConfinedRun(program_of(Tool.KUSTOMIZE, hostile), words, {}, top, "", BOUNDS)
        return run_confined(landlock.Landlock(), run).output

    assert output("read", own).startswith(b"done")
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            for words in (
                ("read", "/etc/passwd"), ("write", own), ("remove", own), ("connect", "tcp", "127.0.0.1:1"),
                ("connect", "unix", "@x"), ("signal", str(other.pid)), ("call", "76"), ("exec", "/bin/sh"), ("fork",),
            ):  # fmt: skip
                assert not output(*words).startswith(b"done"), words
            assert other.poll() is None
        finally:
            other.kill()


def test_a_kernel_without_landlock(hostile: Path, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "_abi", lambda: -1)
    with pytest.raises(NoConfinement, match="no Landlock"):
        landlock.Landlock().start(ConfinedRun(program_of(Tool.KUSTOMIZE, hostile), (), {}, top, "", BOUNDS))


def test_another_processor(hostile: Path, top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a filter for it neither sandbox is one."""
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    for sandbox in (bubblewrap.Bubblewrap("/nowhere"), landlock.Landlock()):
        with pytest.raises(NoConfinement, match="processor"):
            sandbox.start(ConfinedRun(program_of(Tool.KUSTOMIZE, hostile), (), {}, top, "", BOUNDS))


def test_where_no_namespaces_are_made_landlock_is_taken(hostile: Path, tmp_path: Path) -> None:
    """The kernel refuses them here for real, in a namespace that may have none below it."""
    unshare = shutil.which("unshare")
    if unshare is None or landlock._abi() < 1:
        pytest.skip("no unshare, or no Landlock")
    command = [unshare, "-Ur", sys.executable, "-c", CODE, str(hostile), str(tmp_path / "cache")]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in answer.stderr:
        pytest.skip(f"no user namespaces here: {answer.stderr}")
    assert answer.stdout == "v0.0.0-hostile Landlock\n", answer.stderr


def test_a_program_that_is_linked_to_libraries(sandbox: Confinement, top: Path) -> None:
    found = shutil.which("cat")
    program = program_of(Tool.KUSTOMIZE, Path(found)) if found else None
    if program is None or not program.beside:
        pytest.skip("there is no cat that is linked to libraries")

    def output(path: str) -> Any:
        return run_confined(sandbox, ConfinedRun(program, (path,), {}, top, "", BOUNDS)).output

    assert output("workspaces/root/own.yaml") == b"own: 1\n"
    assert output("/etc/passwd") == output("/proc/self/environ") == b""


def test_a_bubblewrap_that_is_none(hostile: Path, top: Path) -> None:
    for program in ("/bin/false", "/bin/echo"):
        with pytest.raises(NoConfinement):
            run = ConfinedRun(program_of(Tool.KUSTOMIZE, hostile), (), {}, top, "", BOUNDS)
            bubblewrap.Bubblewrap(program).start(run)
