"""Checks of strings and numbers: length, pattern, format, bounds, multiples. Called by checks.py."""

from __future__ import annotations

from typing import Any

import re2

from apiserver.model.errors import Cause
from apiserver.schema import formats
from apiserver.schema.messages import invalid, number, too_long, type_invalid, unlocated
from apiserver.schema.node import Check, Node, Path, render

Json = dict[str, Any]

_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_QUIET = re2.Options()
_QUIET.log_errors = False


def steps(node: Node, raw: Json) -> list[Check]:
    out: list[Check] = []
    if raw.get("minLength") is not None or raw.get("maxLength") is not None:
        out.append(_length(raw.get("minLength"), raw.get("maxLength")))
    if raw.get("pattern"):
        out.append(_pattern(raw["pattern"]))
    if not node.builtin:
        out += _formats(node)
    if any(raw.get(k) is not None for k in ("multipleOf", "maximum", "minimum")):
        out.append(_bounds(raw))
    return out


def known_format(node: Node) -> str:
    """The node's format if Kubernetes checks it for the node's type, else empty."""
    if node.builtin:
        return ""
    only = node.types[0] if len(node.types) == 1 else ""
    if only in ("", "string"):
        return node.format if formats.checker(node.format) is not None else ""
    allowed = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(only, ())
    return node.format if node.format in allowed else ""


def compile_pattern(pattern: str) -> Any:
    """A linear-time expression with `search`. Raises ValueError."""
    try:
        return re2.compile(pattern, _QUIET)
    except re2.error as error:
        why = error.args[0] if error.args else error
        raise ValueError(why.decode() if isinstance(why, bytes) else str(why)) from None


def _length(low: int | None, high: int | None) -> Check:
    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is not str:
            return
        if high is not None and len(value) > high:
            errors.append(too_long(render(path), high))
        if low is not None and len(value) < low:
            field = render(path)
            errors.append(invalid(field, value, f"{field} in body should be at least {low} chars long"))

    return check


def _pattern(pattern: str) -> Check:
    shown = pattern
    try:
        search = compile_pattern(pattern).search
    except ValueError as error:
        shown = f"{pattern}, but pattern is invalid: {error}"
        search = None

    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is str and (search is None or not search(value)):
            field = render(path)
            errors.append(invalid(field, value, f"{field} in body should match '{shown}'"))

    return check


def _formats(node: Node) -> list[Check]:
    name = known_format(node)
    if not name:
        return []
    if name in ("int32", "int64"):
        return [_range(name)]
    if name in ("float", "double"):
        return []
    valid = formats.checker(name)
    assert valid is not None

    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ is str and not valid(value):
            errors.append(type_invalid(render(path), name, value))

    return [check]


def _range(name: str) -> Check:
    low, high = _RANGES[name]

    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ in (int, float) and not low <= value <= high:
            errors.append(unlocated(f"Checked value must be of type integer with format {name} in {render(path)}"))

    return check


def _bounds(raw: Json) -> Check:
    multiple, low, high = raw.get("multipleOf"), raw.get("minimum"), raw.get("maximum")
    open_low, open_high = bool(raw.get("exclusiveMinimum")), bool(raw.get("exclusiveMaximum"))

    def problem(value: float) -> str:
        if multiple is not None and not _is_multiple(value, multiple):
            return f"should be a multiple of {number(multiple)}"
        if high is not None and (value >= high if open_high else value > high):
            return f"should be less than {'' if open_high else 'or equal to '}{number(high)}"
        if low is not None and (value <= low if open_low else value < low):
            return f"should be greater than {'' if open_low else 'or equal to '}{number(low)}"
        return ""

    def check(value: Any, path: Path, errors: list[Cause]) -> None:
        if value.__class__ in (int, float):
            why = problem(value)
            if why:
                field = render(path)
                errors.append(invalid(field, value, f"{field} in body {why}"))

    return check


def _is_multiple(value: float, factor: float) -> bool:
    if factor <= 0:
        return False
    if isinstance(value, int) and isinstance(factor, int):
        return value % factor == 0
    quotient = 1 / factor * value if factor < 1 else value / factor
    return abs(quotient - round(quotient)) < 1e-9 * max(1.0, abs(quotient))
