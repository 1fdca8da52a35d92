"""Quantities (`500m`, `1Gi`): what they amount to, and their canonical form, in which they are stored."""

from __future__ import annotations

import re
from decimal import ROUND_UP, Decimal
from functools import lru_cache

_SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    "k": Decimal("1e3"),
    "M": Decimal("1e6"),
    "G": Decimal("1e9"),
    "T": Decimal("1e12"),
    "P": Decimal("1e15"),
    "E": Decimal("1e18"),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
    "Pi": Decimal(2**50),
    "Ei": Decimal(2**60),
}
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_EXPONENTS = ("e-9", "e-6", "e-3", "", "e3", "e6", "e9", "e12", "e15", "e18")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_FORM = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?", re.ASCII)
_LONGEST = 100
"""Characters. Nobody has so much of anything, and numbers get slow."""
_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse(text: str | float) -> Decimal:
    """The number that a quantity stands for. Raises ValueError."""
    written = str(text)
    match = _FORM.fullmatch(written) if len(written) <= _LONGEST else None
    if match is None:
        raise ValueError(_TEXT)
    number, suffix, exponent = match.groups()
    return Decimal(number) * (Decimal(10) ** int(exponent) if exponent else _SUFFIXES[suffix or ""])


@lru_cache(8192)
def canonical(text: str, *, milli: bool = False) -> str:
    """As Kubernetes writes the same amount: `0.1` → `100m`, `1024Mi` → `1Gi`, `1000` → `1k`, `12e5` → `1200e3`.

    In powers of 1024 only if it was given so, is 1024 at least and a whole number. What is below a thousandth of a
    millionth, with `milli` below a thousandth, is rounded up. Raises ValueError.
    """
    number = parse(text)
    match = _FORM.fullmatch(text)
    assert match is not None
    if (match[2] or "").endswith("i") and abs(number) >= 1024 and number == number.to_integral_value():
        return _scaled(int(number), 1024, _BINARY)
    suffixes = _EXPONENTS if match[3] else _DECIMAL
    if milli:
        return _scaled(int((number / _SUFFIXES["m"]).to_integral_value(ROUND_UP)), 1000, suffixes[2:])
    return _scaled(int((number / _SUFFIXES["n"]).to_integral_value(ROUND_UP)), 1000, suffixes)


def _scaled(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    """With the largest suffix that leaves a whole number."""
    if not number:
        return "0"
    for suffix in suffixes[:-1]:
        if number % base:
            return f"{number}{suffix}"
        number //= base
    return f"{number}{suffixes[-1]}"
