"""What the reconciler's process tells `up` of what its libraries log."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from apiserver.stores import open_at
from reconciler.commands.report import Report


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    found = logging.getLogger("apiserver.storage")
    before, propagates = list(found.handlers), found.propagate
    yield found
    found.handlers[:], found.propagate = before, propagates


def test_a_store_that_is_set_aside_here_is_told(
    tmp_path: Path, logger: logging.Logger, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """As an API worker's warning is, which stands on the terminal anyway: either may be the one that finds it. Once."""
    (tmp_path / "data.mdb").write_bytes(b"no store at all" * 10_000)
    Report().pass_on(logger)
    open_at(tmp_path, sync=False).close()
    [said] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert said["event"] == "note"
    assert "It is set aside as data.mdb.damaged" in said["text"]
    assert "set aside" not in caplog.text


def test_errors_are_told_by_who_meets_them(
    logger: logging.Logger, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    Report().pass_on(logger)
    logging.getLogger("apiserver.storage.writer").error("no room")
    assert capsys.readouterr().out == ""
    assert "no room" in caplog.text
