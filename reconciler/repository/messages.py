"""Commit messages: text that others chose as one line of it, and trailers at the end.

A name may hold line breaks (those of RBAC's kinds may hold nearly anything); in a message it must not begin a line, or
it could say what only we, or only whoever commits, may say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029\ufeff]+")


def one_line(text: str, most: int = 200) -> str:
    """`text` without line breaks and the like, and cut where it is longer than `most` characters."""
    flat = _UNPRINTABLE.sub(" ", text).strip()
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def with_trailers(subject: str, lines: list[str], trailers: Mapping[str, str | Sequence[str]]) -> str:
    """A whole message: git reads trailers from the last paragraph alone. One may be said several times."""
    values = {name: [said] if isinstance(said, str) else said for name, said in trailers.items()}
    said = "\n".join(f"{name}: {value}" for name, some in values.items() for value in some)
    return "\n\n".join(filter(None, [subject, "\n".join(lines), said])) + "\n"
