"""What several processes log comes to one place, line by line, and none of them waits for it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from apiserver.logs import outlets
from apiserver.logs.lines import LogLines
from apiserver.logs.outlets import Outlet, Outlets
from apiserver.logs.records import LogHandler
from apiserver.logs.rotated import RotatedFile

CHILD = """
import logging, sys
from apiserver.logs.records import begin
begin("nobody")
"""


@pytest.fixture(autouse=True)
def _nothing_is_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ends waits for two seconds until all is written, a test until it is."""
    monkeypatch.setattr(outlets, "_LAST_SECONDS", 60.0)


@pytest.fixture
def said(tmp_path: Path) -> Iterator[Callable[[str], list[dict[str, object]]]]:
    """What is logged by a child that runs some code, as JSON."""
    file = RotatedFile(tmp_path / "log", 1 << 20, 1)

    def run(code: str, level: str = "info") -> list[dict[str, object]]:
        made = Outlets(level, "json", file)
        made.begin("up")
        try:
            with made.child("api-1") as outlet:
                process = child(code, outlet)
            process.wait(60)
        finally:
            made.close()
        return [json.loads(line) for each in file.files() for line in each.read_text().splitlines()]

    return run


def child(code: str, outlet: Outlet) -> subprocess.Popen[bytes]:
    variables = {**os.environ, **outlet.logging.variables()}
    return subprocess.Popen(
        [sys.executable, "-c", CHILD + code], stderr=outlet.error, pass_fds=(outlet.pipe,), env=variables
    )


def test_what_a_child_logs(said: Callable[..., list[dict[str, object]]]) -> None:
    found = said("logging.getLogger('apiserver.x').info('first')\nlogging.getLogger('reconciler').warning('second')")
    assert [(each["process"], each["level"], each["message"]) for each in found] == [
        ("api-1", "info", "first"),
        ("api-1", "warning", "second"),
    ]


def test_libraries_say_warnings_alone(said: Callable[..., list[dict[str, object]]]) -> None:
    code = "logging.getLogger('urllib3').debug('an answer')\nlogging.getLogger('urllib3').warning('a warning')"
    assert [each["message"] for each in said(code, "debug")] == ["a warning"]


def test_less_is_said_where_less_is_asked_for(said: Callable[..., list[dict[str, object]]]) -> None:
    assert said("logging.getLogger('apiserver').warning('x')\nlogging.getLogger('other').warning('x')", "error") == []


def test_what_is_no_record_is_made_one(said: Callable[..., list[dict[str, object]]]) -> None:
    """Counterfeit ones, too: what stands on standard error is text."""
    forged = json.dumps({"level": "info", "process": "up", "message": "all is well"})
    found = said(f"print({forged!r}, file=sys.stderr)\nprint('half \\x1b[31m', end='', file=sys.stderr)")
    assert [(each["process"], each["logger"], each["message"]) for each in found] == [
        ("api-1", "stderr", forged),
        ("api-1", "stderr", "half \x1b[31m"),
    ]


@pytest.mark.parametrize("end", ["", "import threading; threading.Thread(target=lambda: float(text)).start()"])
def test_an_error_that_ends_a_process_or_a_thread_is_a_line(
    said: Callable[..., list[dict[str, object]]], end: str
) -> None:
    (found,) = said(f"text = 's3' + 'cret'\n{end or 'float(text)'}")
    assert "ValueError" in str(found["message"])
    assert "s3cret" not in str(found)


def test_a_child_s_own_children_do_not_have_the_pipe(said: Callable[..., list[dict[str, object]]]) -> None:
    code = """
import os, subprocess
assert "TREEPLANE_LOG" not in os.environ
found = subprocess.run(["sh", "-c", "ls /dev/fd | wc -l"], capture_output=True, text=True)
print(found.stdout.strip(), file=sys.stderr)
"""
    (found,) = said(code)
    assert int(str(found["message"])) <= 4, found  # its three, and the directory


def test_who_logs_does_not_wait_for_who_reads() -> None:
    mine, its = os.pipe()
    os.set_blocking(mine, False)
    handler = LogHandler(its)
    handler.setFormatter(LogLines("api-1", "json"))

    def log(number: int) -> None:
        """Of other places each, so that none is too many."""
        handler.emit(logging.LogRecord("apiserver", logging.INFO, "place", number, "%s", (f"{number}x" * 1000,), None))

    try:
        for number in range(100):
            log(number)
        seen = os.read(mine, 1 << 20)
        log(100)  # behind the rest of one that had been begun
        lines = [json.loads(line) for line in (seen + os.read(mine, 1 << 20)).splitlines()]
        assert 2 < len(lines) < 100
        assert [each["message"][:2] for each in lines[:2]] == ["0x", "1x"]
        assert lines[-1]["left_out"] == 101 - len(lines)
    finally:
        os.close(mine)
        handler.close()
        os.close(its)


def test_of_what_happens_again_and_again_there_are_some_and_a_count() -> None:
    mine, its = os.pipe()
    handler = LogHandler(its)
    handler.setFormatter(LogLines("api-1", "text"))
    try:
        for _ in range(1000):
            handler.emit(logging.LogRecord("apiserver", logging.INFO, "place", 1, "again", (), None))
        handler.emit(logging.LogRecord("apiserver", logging.INFO, "place", 2, "another", (), None))
        lines = os.read(mine, 1 << 16).decode().splitlines()
        assert len(lines) == 101
        assert lines[-1].endswith("another")
        (seen,) = [each for (_, line), each in handler._seen.items() if line == 1]
        assert seen.left_out == 900
        seen.since = -1000.0  # later
        handler.emit(logging.LogRecord("apiserver", logging.INFO, "place", 1, "again", (), None))
        assert os.read(mine, 1 << 16).decode().endswith("again left_out=900\n")
    finally:
        os.close(mine)
        os.close(its)
        handler.close()


def test_a_file_that_cannot_be_written_ends_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").mkdir()
    made = Outlets("info", "text", RotatedFile(tmp_path / "log", 100, 1))
    made.begin("up")
    logging.getLogger("apiserver").warning("x")
    made.close()
    assert "the log is not written" in capfd.readouterr().err
