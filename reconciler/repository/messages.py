"""Commit messages: text that others chose as one line of it, and trailers at the end.

A name may hold line breaks (those of RBAC's kinds may hold nearly anything); in a message it must not begin a line, or
it could say what only we, or only whoever commits, may say.
"""

from __future__ import annotations

import re

_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufeff]+")


def one_line(text: str, most: int = 200) -> str:
    """`text` without line breaks and the like, and cut where it is longer than `most` characters."""
    flat = _UNPRINTABLE.sub(" ", text).strip()
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def with_trailers(subject: str, lines: list[str], trailers: dict[str, str]) -> str:
    """A whole message: git reads trailers from the last paragraph alone."""
    said = "\n".join(f"{name}: {value}" for name, value in trailers.items())
    return "\n\n".join(filter(None, [subject, "\n".join(lines), said])) + "\n"
