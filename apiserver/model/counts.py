"""How many of something there are, in words, and which. Called by whoever tells people so. Pure functions on text."""

from __future__ import annotations

import re
from collections.abc import Sequence

_Y = re.compile(r"(?<![aeou])y$")


def counted(number: int, one: str, many: str = "") -> str:
    """`one`, `many`: what there is, perhaps with its verb; without `many`, the noun's plural. Worked examples:

    1, "workspace"                         → 1 workspace
    12000, "more copy"                     → 12,000 more copies
    0, "workspace is", "workspaces are"    → 0 workspaces are
    """
    return f"{number:,} {one if number == 1 else many or _plural(one)}"


def some_of(names: Sequence[str], most: int, between: str = ", ") -> str:
    """The first `most` of them, and how many more there are: `a, b, c and 12 more`."""
    more = len(names) - most
    return between.join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def _plural(noun: str) -> str:
    return _Y.sub("ies", noun) if _Y.search(noun) else f"{noun}s"
