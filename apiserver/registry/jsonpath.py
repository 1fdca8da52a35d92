"""Kubernetes' JSONPath, as far as printer columns, scale and selectable fields use it.

`.a.b`, `['a']` or `["a"]`, `\\.` in a name, `[0]`, `[-1]`, `[0:2]`, `[*]` and `.*`, `[?(@.type=="Ready")]` (also
`!=`, `<`, `<=`, `>`, `>=` and bare existence), `..name`, unions `[0,2]`; with or without surrounding braces and `$`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterable[Any]]

_NAME = re.compile(r"(?:\\.|[^.\[\]\\])+")
_FILTER = re.compile(r"@((?:\.(?:\\.|[\w/-])+|\[[^\]]*\])*)\s*(?:(==|!=|<=|>=|<|>)\s*(.+))?")
_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Path:
    """A compiled path. `find` gives all matches in order, [] for none."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str, steps: list[Step]) -> None:
        self.text = text
        self._steps = steps

    def find(self, value: Any) -> list[Any]:
        found = [value]
        for step in self._steps:
            found = [inner for outer in found for inner in step(outer)]
        return found

    def first(self, value: Any) -> Any:
        """The first match, None for none."""
        found = self.find(value)
        return found[0] if found else None


@lru_cache(4096)
def compile_path(text: str) -> Path:
    """Raises ValueError for what is no path of this dialect."""
    rest = text.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1]
    rest = rest.removeprefix("$")
    steps: list[Step] = []
    while rest:
        step, rest = _next(rest, text, first=not steps)
        if step is not None:
            steps.append(step)
    return Path(text, steps)


def _next(rest: str, text: str, first: bool) -> tuple[Step | None, str]:
    if rest.startswith("["):
        end = _closing(rest, text)
        return _bracket(rest[1:end].strip(), text), rest[end + 1 :]
    if rest.startswith(".."):
        match = _NAME.match(rest, 2)
        if match is None:
            raise ValueError(f"no name after .. in JSONPath {text!r}")
        return _descendants(_unescaped(match[0])), rest[match.end() :]
    if rest == "." and first:
        return None, ""
    if not rest.startswith(".") and not first:
        raise ValueError(f"unexpected {rest!r} in JSONPath {text!r}")
    start = int(rest.startswith("."))
    if rest[start : start + 1] == "[":
        return None, rest[start:]
    match = _NAME.match(rest, start)
    if match is None:
        raise ValueError(f"no name after . in JSONPath {text!r}")
    name = _unescaped(match[0])
    return (_everything if name == "*" else _field(name)), rest[match.end() :]


def _closing(rest: str, text: str) -> int:
    """The index of the bracket that closes the one at 0; those within quotes or parentheses do not count."""
    depth, quote = 0, ""
    for index, char in enumerate(rest):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[(":
            depth += 1
        elif char in "])":
            depth -= 1
            if depth == 0:
                return index
    raise ValueError(f"unterminated [ in JSONPath {text!r}")


def _bracket(inner: str, text: str) -> Step:
    if inner == "*":
        return _everything
    if inner.startswith("?(") and inner.endswith(")"):
        return _filter(inner[2:-1].strip(), text)
    parts = [_selector(p.strip(), text) for p in re.findall(r"'[^']*'|\"[^\"]*\"|[^,]+", inner)]
    if not parts:
        raise ValueError(f"empty brackets in JSONPath {text!r}")
    return parts[0] if len(parts) == 1 else lambda value: [found for part in parts for found in part(value)]


def _selector(part: str, text: str) -> Step:
    if part[:1] in "'\"" and len(part) > 1 and part[-1] == part[0]:
        return _field(_unescaped(part[1:-1]))
    if re.fullmatch(r"-?\d+", part):
        return _index(int(part))
    if re.fullmatch(r"(-?\d+)?:(-?\d+)?(:-?\d+)?", part):
        bounds = [int(p) if p else None for p in part.split(":")]
        return lambda value: value[slice(*bounds)] if isinstance(value, list) else ()
    raise ValueError(f"cannot read [{part}] in JSONPath {text!r}")


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _field(name: str) -> Step:
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _index(at: int) -> Step:
    return lambda value: (value[at],) if isinstance(value, list) and -len(value) <= at < len(value) else ()


def _everything(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _descendants(name: str) -> Step:
    def walk(value: Any) -> Iterable[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]
        for inner in _everything(value):
            yield from walk(inner)

    return walk


def _filter(condition: str, text: str) -> Step:
    match = _FILTER.fullmatch(condition)
    if match is None:
        raise ValueError(f"cannot read the filter {condition!r} in JSONPath {text!r}")
    left, sign, literal = match.groups()
    path = compile_path(left or ".")
    if sign is None:
        return lambda value: [item for item in _everything(value) if path.find(item)]
    wanted, compare = _literal(literal.strip(), text), _COMPARE[sign]

    def keep(item: Any) -> bool:
        found = path.find(item)
        try:
            return bool(found) and bool(compare(found[0], wanted))
        except TypeError:
            return False

    return lambda value: [item for item in _everything(value) if keep(item)]


def _literal(literal: str, text: str) -> Any:
    if literal[:1] in "'\"" and len(literal) > 1 and literal[-1] == literal[0]:
        return literal[1:-1]
    if literal in ("true", "false"):
        return literal == "true"
    try:
        return float(literal) if re.search(r"[.eE]", literal) else int(literal)
    except ValueError:
        raise ValueError(f"cannot read {literal!r} in JSONPath {text!r}") from None
