"""Field errors in Kubernetes' words.

Clients and users match on these texts, so they follow kube-apiserver 1.36 to the letter. Values print as Go prints
them.
"""

from __future__ import annotations

import json
import math
from typing import Any

from apiserver.model.errors import Cause

_ESCAPES = {'"': '\\"', "\\": "\\\\"} | {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})

NO_FIELD = "<nil>"
"""The field of errors that Kubernetes reports without a path."""


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def quote(text: str) -> str:
    """As Go's %q."""
    return '"' + "".join(map(_escape, text)) + '"'


def number(value: float) -> str:
    """As Go's %v: whole floats without a point, exponents from 1e21 on and below 1e-4."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    digits, _, exponent = text.partition("e")
    return f"{digits.removesuffix('.0')}e{exponent[0] if exponent[0] in '+-' else '+'}{exponent.lstrip('+-').zfill(2)}"


def as_json(value: Any) -> str:
    """As Go marshals it: compact, keys sorted, HTML characters escaped."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False).translate(_HTML)


def printed(value: Any) -> str:
    """A value as field errors show it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number(value)
    return quote(value) if isinstance(value, str) else as_json(value)


def go_printed(value: Any) -> str:
    """As Go's %+v prints decoded JSON."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_printed(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_printed, value))}]"
    if value is None:
        return NO_FIELD
    return value if isinstance(value, str) else printed(value)


def _with(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def invalid(field: str, value: Any, detail: str) -> Cause:
    return Cause("FieldValueInvalid", _with(f"Invalid value: {printed(value)}", detail), field)


def type_invalid(field: str, expected: str, found: str) -> Cause:
    """`found` is the name of the type found, or the text that has not the format `expected`."""
    detail = f"{field} in body must be of type {expected}: {quote(found)}"
    return Cause("FieldValueTypeInvalid", f"Invalid value: {quote(found)}: {detail}", field)


def required(field: str, detail: str = "") -> Cause:
    return Cause("FieldValueRequired", _with("Required value", detail), field)


def forbidden(field: str, detail: str) -> Cause:
    return Cause("FieldValueForbidden", _with("Forbidden", detail), field)


def duplicate(field: str, value: Any) -> Cause:
    return Cause("FieldValueDuplicate", f"Duplicate value: {printed(value)}", field)


def unsupported(field: str, value: Any, allowed: list[Any]) -> Cause:
    names = ", ".join(quote(a if isinstance(a, str) else as_json(a)) for a in allowed)
    return Cause("FieldValueNotSupported", f"Unsupported value: {printed(value)}: supported values: {names}", field)


def too_long(field: str, limit: int) -> Cause:
    unit = "byte" if limit == 1 else "bytes"
    return Cause("FieldValueTooLong", f"Too long: may not be more than {limit} {unit}", field)


def too_many(field: str, count: int, limit: int) -> Cause:
    unit = "item" if limit == 1 else "items"
    return Cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} {unit}", field)


def unlocated(text: str) -> Cause:
    """An error that Kubernetes reports without field and value; the text names the path."""
    return Cause("FieldValueInvalid", f'Invalid value: "": {text}', NO_FIELD)
