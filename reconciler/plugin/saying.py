"""What a plugin prints. Much of it others wrote, in other workspaces: none of it does anything to a terminal."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """At once, since what follows may take its time."""
    print(shown(text), flush=True)  # noqa: T201


def warn(text: str) -> None:
    """Beside the output."""
    print(shown(text), file=sys.stderr)  # noqa: T201


def shown(text: str) -> str:
    """Lines stay lines; what cannot be seen is spelled."""
    return "".join(
        each if each.isprintable() or each == "\n" else each.encode("unicode_escape").decode() for each in text
    )
