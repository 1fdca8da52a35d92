"""How long, as it is typed: 90m, 2h, 3d, 1d12h."""

from __future__ import annotations

import re

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"(?:[0-9]{1,6}[smhdw])+")


def seconds_of(text: str) -> int | None:
    """None for what says no duration."""
    if not _DURATION.fullmatch(text):
        return None
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"([0-9]+)([smhdw])", text))
