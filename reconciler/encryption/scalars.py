"""Values as SOPS tells them apart, and the bytes that each counts with in the MAC.

Called by cipher and tree. SOPS reads YAML with Go's library, which is not how kubectl does: what is not encrypted has
to be read as there, or the MAC would be another one.
"""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from reconciler.encryption.faults import DamagedFile


class Scalar(NamedTuple):
    """`type`: SOPS' word: str, int, float, bool, time or comment. `text`: as it counts in the MAC."""

    type: str
    text: str


_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLS = {**dict.fromkeys(("true", "True", "TRUE"), "True"), **dict.fromkeys(("false", "False", "FALSE"), "False")}
_INT = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_TIME = re.compile(
    r"(\d{4})-(\d{1,2})-(\d{1,2})"
    r"(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(\.\d{1,9})?(Z|[-+]\d{2}:\d{2})| (\d{1,2}):(\d{1,2}):(\d{1,2})(\.\d{1,9})?)?"
)
"""The forms that Go's library takes for a time: with a zone behind T, without one behind a blank, or a date alone."""
_LONGEST = 400
"""Characters of a number: what is longer is none."""
_LOW, _HIGH = -(1 << 63), 1 << 63


def said(value: Scalar) -> bytes:
    return value.text.encode()


def typed(kind: str, plain: bytes) -> Scalar:
    """Of what was encrypted. Raises DamagedFile."""
    try:
        text = plain.decode()
    except UnicodeDecodeError:
        raise DamagedFile("it is not text: put it into data, in base64") from None
    if kind in ("str", "bytes"):
        return Scalar("str", text)
    if kind in ("comment", "time"):
        return Scalar(kind, text)
    if kind == "bool" and text in _TRUE + _FALSE:
        return Scalar("bool", "True" if text in _TRUE else "False")
    if kind == "int" and re.fullmatch(r"[-+]?[0-9]{1,19}", text):
        return Scalar("int", str(int(text)))
    if kind == "float" and len(text) <= _LONGEST and _FLOAT.fullmatch(text):
        return _float(text)
    raise DamagedFile("it is of no type that SOPS has")


def plain(text: str, *, json: bool) -> Scalar | None:
    """Of a scalar without quotes. None: nothing, which counts for nothing."""
    if text in _NULLS:
        return None
    if text in _BOOLS:
        return Scalar("bool", _BOOLS[text])
    if len(text) > _LONGEST or text[0] not in "0123456789+-.":
        return Scalar("str", text)
    when = None if json else _time(text)
    if when is not None:
        return when
    bare = text.replace("_", "")
    if _INT.fullmatch(bare) and not json:
        number = _integer(bare)
        if _LOW <= number < _HIGH:
            return Scalar("int", str(number))
    return _float(bare) if _FLOAT.fullmatch(bare) else Scalar("str", text)


def _integer(text: str) -> int:
    sign, digits = (-1 if text[0] == "-" else 1), text.lstrip("+-").lower()
    for mark, base in (("0x", 16), ("0b", 2), ("0o", 8), ("0", 8)):
        if digits.startswith(mark) and len(digits) > len(mark):
            return sign * int(digits[len(mark) :], base)
    return sign * int(digits)


def _float(text: str) -> Scalar:
    """As Go writes it without an exponent: the shortest digits that give it back."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        return Scalar("str", text)
    digits = format(Decimal(repr(number)), "f")
    return Scalar("float", digits.rstrip("0").rstrip(".") if "." in digits else digits)


def _time(text: str) -> Scalar | None:
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    year, month, day, *clock = found.groups()
    hour, minute, second, fraction, zone = clock[:5] if clock[0] is not None else (*clock[5:], None)
    try:
        when = datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0))
    except ValueError:
        return None
    rest = (fraction or "").rstrip("0").rstrip(".")
    return Scalar("time", f"{when.isoformat()}{rest}{'Z' if zone in (None, '+00:00', '-00:00') else zone}")
