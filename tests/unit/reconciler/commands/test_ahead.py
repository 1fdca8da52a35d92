"""A reconciler's process that is started before anybody knows what it is to do: nobody is left behind, and one that
ended is started again."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.fleetrepo import plain_fleet

from reconciler import __main__ as program
from reconciler.commands import ahead as ahead_module
from reconciler.commands.ahead import ReconcilerAhead
from reconciler.commands.children import Children, start_reconciler
from reconciler.commands.journal import journal
from reconciler.commands.settings import LogSettings
from reconciler.commands.told import heard, tell


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Each process that is started ahead, from then on."""
    found: list[subprocess.Popen[bytes]] = []

    def start(*given: object) -> subprocess.Popen[bytes]:
        found.append(start_reconciler(*given))  # type: ignore[arg-type]
        return found[-1]

    monkeypatch.setattr(ahead_module, "start_reconciler", start)
    return found


def test_a_start_that_fails_leaves_no_process(started: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("a file")
    answer = CliRunner().invoke(program.main, ["up", str(plain_fleet(tmp_path)), f"--data-dir={data}"])
    assert answer.exit_code > 2, answer.output
    assert "Traceback" not in answer.output
    [process] = started
    assert process.returncode is not None


def test_one_that_was_never_told_ends_with_its_parent() -> None:
    reading, writing = os.pipe()
    os.write(writing, b'{"half":')
    os.close(writing)
    with pytest.raises(SystemExit) as ended:
        heard(reading)
    os.close(reading)
    assert ended.value.code == 0


def test_what_is_told_is_heard_whatever_its_length() -> None:
    text = '{"source": "' + "x" * 200_000 + '"}'
    code = f"import sys; from reconciler.commands.told import heard; sys.exit(len(heard(0)) != {len(text) + 1})"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as process:
        tell(process, text)
    assert process.returncode == 0


def test_one_that_ended_before_it_was_told_is_started_again(eventually: Callable[..., object]) -> None:
    made: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        code = "raise SystemExit(3)" if not made else "input(); input()"
        process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if not made:
            process.wait()
        made.append(process)
        tell(process, "{}")
        return process

    children = Children(ended=lambda _: None)
    children.add("the reconciler", start, lambda _: None, task="reconciler")
    try:
        eventually(lambda: children.look() == [] and len(made) > 1)
        assert made[1].poll() is None
    finally:
        children.stop()
        for process in made:
            out = process.stdout
            eventually(lambda out=out: out is None or out.closed, what="whoever listens has read all and closes it")
            with process:
                pass


def test_who_takes_it_has_it_alone(started: list[subprocess.Popen[bytes]]) -> None:
    with journal(LogSettings()) as outlets, ReconcilerAhead(outlets) as ahead:
        process = ahead.take()
        assert ahead.take() is None
    assert process is not None
    try:
        assert [process] == started
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()
