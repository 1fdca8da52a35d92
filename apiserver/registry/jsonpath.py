"""Kubernetes' JSONPath, as far as printer columns, scale and selectable fields use it.

`.a.b`, `['a']` or `["a"]`, `\\.` in a name, `[0]`, `[-1]`, `[0:2]`, `[*]` and `.*`, `[?(@.type=="Ready")]` (also
`!=`, `<`, `<=`, `>`, `>=` and bare existence), `..name`, unions `[0,2]`; with or without surrounding braces and `$`.

Path and object are a tenant's, and a few characters can ask for everything below everything: what one search may look
at is limited, and one that goes beyond finds nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

LONGEST = 1_000
"""Characters of a path."""
_MOST = 100_000
"""Values that one search looks at."""

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


class _Spent(Exception):
    """A search has looked at as much as it may."""


class _Budget:
    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _MOST

    def spend(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise _Spent


Step = Callable[[Any, _Budget], Iterable[Any]]


class Path:
    """A compiled path. `find` gives all matches in order, [] for none."""

    __slots__ = ("_steps", "text")

    def __init__(self, text: str, steps: list[Step]) -> None:
        self.text = text
        self._steps = steps

    def find(self, value: Any) -> list[Any]:
        try:
            return self.reached(value, _Budget())
        except _Spent:
            return []

    def reached(self, value: Any, budget: _Budget) -> list[Any]:
        """As part of another search."""
        found = [value]
        for step in self._steps:
            before, found = found, []
            for outer in before:
                for inner in step(outer, budget):
                    budget.spend()
                    found.append(inner)
        return found

    def first(self, value: Any) -> Any:
        """The first match, None for none."""
        found = self.find(value)
        return found[0] if found else None


@lru_cache(4096)
def compile_path(text: str) -> Path:
    """Raises ValueError for what is no path of this dialect."""
    if len(text) > LONGEST:
        raise ValueError(f"a JSONPath has at most {LONGEST} characters")
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
    return parts[0] if len(parts) == 1 else lambda value, b: (found for part in parts for found in part(value, b))


def _selector(part: str, text: str) -> Step:
    if part[:1] in "'\"" and len(part) > 1 and part[-1] == part[0]:
        return _field(_unescaped(part[1:-1]))
    if re.fullmatch(r"-?\d+", part):
        return _index(int(part))
    if re.fullmatch(r"(-?\d+)?:(-?\d+)?(:-?\d+)?", part):
        bounds = [int(p) if p else None for p in part.split(":")]
        return lambda value, _: value[slice(*bounds)] if isinstance(value, list) else ()
    raise ValueError(f"cannot read [{part}] in JSONPath {text!r}")


def _unescaped(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _field(name: str) -> Step:
    return lambda value, _: (value[name],) if isinstance(value, dict) and name in value else ()


def _index(at: int) -> Step:
    return lambda value, _: (value[at],) if isinstance(value, list) and -len(value) <= at < len(value) else ()


def _everything(value: Any, _: _Budget) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _descendants(name: str) -> Step:
    def walk(value: Any, budget: _Budget) -> Iterable[Any]:
        budget.spend()
        if isinstance(value, dict) and name in value:
            yield value[name]
        for inner in _everything(value, budget):
            yield from walk(inner, budget)

    return walk


def _filter(condition: str, text: str) -> Step:
    match = _FILTER.fullmatch(condition)
    if match is None:
        raise ValueError(f"cannot read the filter {condition!r} in JSONPath {text!r}")
    left, sign, literal = match.groups()
    path = compile_path(left or ".")
    wanted: Any = _literal(literal.strip(), text) if sign is not None else None

    def keep(item: Any, budget: _Budget) -> bool:
        budget.spend()
        found = path.reached(item, budget)
        if sign is None or not found:
            return bool(found)
        try:
            return bool(_COMPARE[sign](found[0], wanted))
        except TypeError:
            return False

    return lambda value, budget: (item for item in _everything(value, budget) if keep(item, budget))


def _literal(literal: str, text: str) -> Any:
    if literal[:1] in "'\"" and len(literal) > 1 and literal[-1] == literal[0]:
        return literal[1:-1]
    if literal in ("true", "false"):
        return literal == "true"
    try:
        return float(literal) if re.search(r"[.eE]", literal) else int(literal)
    except ValueError:
        raise ValueError(f"cannot read {literal!r} in JSONPath {text!r}") from None
