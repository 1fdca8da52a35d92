"""Faults on the way from bytes to values: a mark of libyaml's and a message."""

from __future__ import annotations

from typing import Any

import yaml

from apiserver.model.nesting import DEPTH

_TOO_DEEP = "exceeded maximum nesting depth"
"""What libyaml says of far more levels than are taken here; older ones say nothing."""


class Fault(Exception):
    """`mark` is libyaml's (line and column from 0), None when the place is unknown."""

    def __init__(self, mark: Any, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.mark, self.message, self.hint = mark, message, hint

    @property
    def line(self) -> int:
        """From 1; 0 when the place is unknown."""
        return self.mark.line + 1 if self.mark is not None else 0


class Twice(Fault):
    """A key that its mapping has already. The value is that of the last."""

    def __init__(self, mark: Any, key: str) -> None:
        super().__init__(mark, f"the key {key!r} is given twice", "keep one of the two")
        self.key = key


def too_deep(mark: Any) -> Fault:
    return Fault(mark, f"nested more than {DEPTH} levels deep")


def syntax(error: yaml.YAMLError, data: bytes) -> Fault:
    """What libyaml says, with its place and advice for the usual slips."""
    if isinstance(error, yaml.MarkedYAMLError):
        message = str(error.problem)
        if message == _TOO_DEEP:
            return too_deep(error.problem_mark)
        if error.context and error.context_mark is not None:
            message = f"{error.context} (begun in line {error.context_mark.line + 1}), {message}"
        return Fault(error.problem_mark or error.context_mark, f"YAML: {message}", _advice(message))
    position = getattr(error, "position", None)
    reason = getattr(error, "reason", str(error))
    if isinstance(position, int):
        line = data.count(b"\n", 0, position)
        column = position - data.rfind(b"\n", 0, position) - 1
        return Fault(yaml.Mark("", position, line, column, None, 0), f"YAML: {reason}")
    return Fault(None, f"YAML: {reason}")


def _advice(message: str) -> str:
    if "cannot start any token" in message:
        return "YAML is indented with spaces, not tabs, and a text that begins with @ or ` is quoted"
    if "mapping values are not allowed" in message:
        return "check the indentation, or quote a text that contains ': '"
    return ""
