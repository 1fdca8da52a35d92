"""Whose fault it is: the files', each time again, or this machine's, for now."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.renderings import RenderedFiles

from reconciler.rendering.bubblewrap import Bubblewrap
from reconciler.rendering.confinement import ConfinedRun
from reconciler.rendering.endings import fault_of
from reconciler.rendering.programs import RenderProgram
from reconciler.rendering.rendering import Rendered
from reconciler.rendering.running import RunEnd, RunResult
from reconciler.rendering.settings import RenderingBounds

GO = b"runtime: out of memory: cannot allocate %d-byte block (%d in use)\nfatal error: out of memory\n"
GIB = 1 << 30


def fault(
    tmp_path: Path, code: int, said: bytes = b"", output: bytes = b"", end: RunEnd = RunEnd.BY_ITSELF
) -> Rendered | None:
    run = ConfinedRun(RenderProgram(Path("/p"), (), (0, 0, 0)), (), {}, tmp_path, "a", RenderingBounds())
    request = RenderedFiles(tmp_path / "git").request({}, "a")
    return fault_of(request, RunResult(code, output, said, end), run, Bubblewrap("/b"))


def test_output_is_no_fault(tmp_path: Path) -> None:
    assert fault(tmp_path, 0, b"# Warning: old", b"a: 1") is None


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (1, b"error: no such field"),
        (2, b"panic: runtime error: index out of range"),
        (2, GO % (2 * GIB, 16_000_000)),
        (2, GO % (4_194_304, 2 * GIB - 16_000_000)),
        (0, b""),
    ],
)
def test_what_the_files_say_lasts(tmp_path: Path, code: int, said: bytes) -> None:
    came = fault(tmp_path, code, said)
    assert came is not None and came.lasting and came.fault and came.hint


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (2, GO % (4_194_304, 300_000_000)),
        (2, b"fatal error: out of memory\n"),
        (2, b"runtime: failed to create new OS thread (have 2 already; errno=11)"),
        (1, b"error: read a.yaml: input/output error"),
        (1, b"bwrap: execvp /program/kubectl: No such file or directory"),
        (137, b""), (-9, b""), (139, b""), (-11, b""), (152, b""),
    ],
)  # fmt: skip
def test_what_this_machine_is_short_of_does_not(tmp_path: Path, code: int, said: bytes) -> None:
    came = fault(tmp_path, code, said)
    assert came is not None and not came.lasting and came.fault and came.hint
