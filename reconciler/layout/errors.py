"""A fault in a repository's files, with its place and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class LayoutError:
    """`path` is the file's in the repository; `line` and `column` count from 1, 0 when the fault has no line.
    `waits_for`: the path of the workspace whose mistake this follows from; "" where it is one of its own."""

    path: str
    line: int
    column: int
    message: str
    hint: str = ""
    waits_for: str = ""

    def as_json(self) -> dict[str, Any]:
        """As commands tell it as data."""
        found = {
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "message": self.message,
            "hint": self.hint,
        }
        return found | ({"waitsFor": self.waits_for} if self.waits_for else {})

    def __str__(self) -> str:
        place = self.path
        if self.line:
            place += f":{self.line}"
            if self.column:
                place += f":{self.column}"
        return f"{place}: {self.message} ({self.hint})" if self.hint else f"{place}: {self.message}"


class BadFile(Exception):
    """A file that cannot be used, with every fault found in it."""

    def __init__(self, errors: Iterable[LayoutError]) -> None:
        self.errors = list(errors)
        super().__init__("; ".join(str(e) for e in self.errors))
