"""What somebody may have meant who mistyped a name. Called where a name that was typed is none of those there are."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

_SHOWN, _ALIKE = 3, 0.6
_MOST = 10_000
"""Of all names so many are looked at."""


def near(asked: str, names: Iterable[str]) -> list[str]:
    """The nearest first. Capitals make no difference."""
    by_lower = {name.lower(): name for name in islice(names, _MOST)}
    return [by_lower[each] for each in difflib.get_close_matches(asked.lower(), by_lower, _SHOWN, _ALIKE)]


def question(asked: str, names: Iterable[str]) -> str:
    """What to do, as a sentence of its own; "" where nothing is near."""
    found = near(asked, names)
    return f"did you mean {' or '.join(found)}?" if found else ""


def meant(asked: str, names: Iterable[str]) -> str:
    """To be put behind `there is no such …`; "" where nothing is near."""
    found = question(asked, names)
    return f"; {found}" if found else ""
