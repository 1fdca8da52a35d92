"""What a plain (unquoted) YAML scalar means to kubectl: null, boolean, number or text.

Called by construct.py and nodes.py. kubectl's rules are YAML 1.1's booleans, Go's integer literals, no dates, no
base-60 numbers, and a trip through JSON, after which a whole number is an integer however it was written.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

Plain = str | int | float | bool | None

_WORDS: dict[str, Plain] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}
_ENDLESS = frozenset(
    (".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF", ".nan", ".NaN", ".NAN")
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES = {"0x": 16, "0X": 16, "0b": 2, "0B": 2, "0o": 8, "0O": 8}
_STARTS = frozenset("0123456789+-.")
_LOW, _HIGH = -(1 << 63), 1 << 63
_TAG = "tag:yaml.org,2002:"


def plain(text: str) -> Plain:
    """The value of an unquoted scalar. Raises ValueError for infinity and not-a-number, which JSON cannot hold."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS:
        return text
    if text in _ENDLESS:
        raise ValueError(f"{text} is not a value that JSON can hold")
    number = _number(text.replace("_", ""))
    return text if number is None else number


def tagged(tag: str, text: str) -> Plain:
    """The value of a scalar with an explicit tag. Raises ValueError when the text is not of that type."""
    kind = tag.removeprefix(_TAG)
    if kind == tag or kind not in ("int", "float", "bool", "null"):
        return text
    value = plain(text)
    fits = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, int | float) and not isinstance(value, bool),
        "bool": isinstance(value, bool),
        "null": value is None,
    }
    if not fits[kind]:
        raise ValueError(f"{text!r} is not of the type !!{kind}")
    return value


def normal(number: int | float) -> int | float:
    """A number as it is after Kubernetes' JSON: 64-bit integers and floats, whole floats as integers."""
    if isinstance(number, int):
        return number if _LOW <= number < _HIGH else float(number)
    if not number.is_integer() or not _LOW <= number < _HIGH:
        return number
    # Go writes the shortest digits that give the float back, and reads those as an integer.
    return int(number) if abs(number) < 1 << 53 else int(Decimal(repr(number)))


def key(value: Any) -> str:
    """A mapping's key as text. Raises ValueError for what cannot be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    raise ValueError("a key must be text")


def _number(text: str) -> int | float | None:
    digits = text[1:] if text[:1] in ("+", "-") else text
    base = _BASES.get(digits[:2])
    try:
        if base is not None:
            value = int(digits[2:], base) if digits[2:].isalnum() else None
        elif not (digits.isdigit() and digits.isascii()):
            return _float(text)
        elif len(digits) > 1 and digits[0] == "0":
            value = int(digits, 8)
        else:
            value = int(digits)
    except ValueError:
        value = None
    if value is not None:
        signed = -value if text[0] == "-" else value
        if _LOW <= signed < 1 << 64:
            return normal(signed)
    return _float(text)


def _float(text: str) -> int | float | None:
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text)
    return None if value in (float("inf"), float("-inf")) else normal(value)
