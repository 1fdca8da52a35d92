"""Whatever is logged is one line, in which nothing does anything and nothing secret stands."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.logs.lines import FORMATS, LEFT_OUT, LogLines
from apiserver.logs.requestids import REQUEST

HOSTILE = "a\nb\r\x1b[31m\x00\x7f\x85\u2028\u2029\u202e\u2066\u200b\ud800\N{NO-BREAK SPACE}z"


def record(text: str, *arguments: Any, name: str = "apiserver.some", error: BaseException | None = None) -> Any:
    caught = (type(error), error, error.__traceback__) if error is not None else None
    return logging.LogRecord(name, logging.WARNING, __file__, 1, text, arguments, caught)


@given(st.text(st.characters(), max_size=200))
def test_a_line_is_one_line_of_what_can_be_seen(text: str) -> None:
    for form in FORMATS:
        line = LogLines("api-1", form).format(record("%s of %s", text, HOSTILE))
        assert line.isprintable()
        assert len(line.splitlines()) == 1
        line.encode()  # nothing that is no character
    if "@" not in text and "?" not in text:
        assert json.loads(line)["message"] == f"{text} of {HOSTILE}"


def test_what_stands_in_a_line() -> None:
    token = REQUEST.set("abc-1")
    try:
        said = record("%d things", 3)
        setattr(said, LEFT_OUT, 7)
        text, found = (LogLines("api-1", form).format(said) for form in FORMATS)
    finally:
        REQUEST.reset(token)
    when, rest = text.split(" ", 1)
    assert rest == "warning api-1 apiserver.some: 3 things request=abc-1 left_out=7"
    assert json.loads(found) == {
        "time": when, "level": "warning", "process": "api-1", "pid": said.process, "logger": "apiserver.some",
        "message": "3 things", "request": "abc-1", "left_out": 7,
    }  # fmt: skip


@pytest.mark.parametrize("form", FORMATS)
def test_of_an_error_there_is_its_place_and_not_its_text(form: str) -> None:
    try:
        float("s3cret")
    except ValueError as error:
        line = LogLines("api-1", form).format(record("it failed", error=error))
    assert "ValueError" in line
    assert "test_lines.py" in line
    assert "could not convert" not in line.replace('float(\\"s3cret\\")', "").replace('float("s3cret")', "")


@pytest.mark.parametrize("form", FORMATS)
def test_what_asyncio_says_of_a_failed_task_has_its_error_s_text(form: str) -> None:
    said = record("Task exception was never retrieved\nfuture: exception=ValueError('s3cret')", name="asyncio")
    line = LogLines("api-1", form).format(said)
    assert "never retrieved" in line
    assert "s3cret" not in line


@pytest.mark.parametrize("form", FORMATS)
def test_passwords_in_urls_are_left_out(form: str) -> None:
    line = LogLines("up", form).format(record("%s and %s", "https://me:s3cret@forge/x", "https://forge/x?token=s3cret"))
    assert "s3cret" not in line
    assert "https://***@forge/x" in line


@pytest.mark.parametrize("before", [1970, 1985, 1995, 5000])
def test_nor_is_half_of_one_told_where_a_message_is_cut(before: int) -> None:
    text = f"{'x' * before} https://me:{'s3cret' * 5}@forge/x {'y' * 3990}"
    assert "s3" not in LogLines("up", "text").format(record("%s", text))


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    line = LogLines("up", "text").format(record("begin%send", "x" * 1_000_000))
    assert len(line) < 7000
    assert "begin" in line
    assert line.endswith("end")


def test_a_fault_of_who_logs_is_a_line() -> None:
    assert "do not fit" in LogLines("up", "text").format(record("%d", "no number"))
