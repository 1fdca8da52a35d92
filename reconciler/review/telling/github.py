"""What is wrong with a change, and what may be, as commands that GitHub's runner makes annotations of. See telling.

It shows ten of a kind for each step. Source: GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.model.counts import counted
from reconciler.review.result import ChangeReview
from reconciler.review.telling.harmless import plain
from reconciler.review.telling.words import summary

MOST = 10
"""Annotations of a kind."""


def told(review: ChangeReview) -> str:
    return "".join(f"{line}\n" for line in (*_errors(review), *_warnings(review), _command("notice", summary(review))))


def _errors(review: ChangeReview) -> Iterator[str]:
    found = [
        _command("error", f"{e.message} ({e.hint})" if e.hint else e.message, e.path, e.line, e.column)
        for e in review.errors()
    ]
    yield from _cut(found, "error")


def _warnings(review: ChangeReview) -> Iterator[str]:
    found = [_command("warning", f"{w.path}: {w.text}" if w.path else w.text, w.file) for w in review.warnings]
    yield from _cut(found, "warning")


def _cut(found: list[str], kind: str) -> Iterator[str]:
    if len(found) <= MOST:
        yield from found
        return
    yield from found[: MOST - 1]
    yield _command(kind, f"and {counted(len(found) - MOST + 1, f'more {kind}')}: run treeplane diff to see all")


def _command(kind: str, text: str, file: str = "", line: int = 0, column: int = 0) -> str:
    places = {"file": file, "line": str(line or ""), "col": str(column or "")}
    said = ",".join(f"{name}={_property(value)}" for name, value in places.items() if value)
    return f"::{kind} {said}::{_data(plain(text))}" if said else f"::{kind}::{_data(plain(text))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(plain(text)).replace(":", "%3A").replace(",", "%2C")
