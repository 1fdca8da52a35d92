"""Anybody's text in a few words on one line, with nothing in it that a terminal acts on.

Called wherever a table, an Event or a line of a terminal shows what tenants chose: names, messages about them, what
their clusters answer. Pure functions on text.
"""

from __future__ import annotations

import re

_CUT = "…"
_FOLDERS = re.compile(r"(?:[^\s:/]+/)+(?=[^\s:/]+:)")
"""Before a file's name that a message begins with."""


def brief(text: str, most: int) -> str:
    """At most so many characters; what cannot be printed (control characters, a change of the writing's direction) is a
    space."""
    words = "".join(c if c.isprintable() else " " for c in text[: 4 * most]).split()
    line = " ".join(words)
    return line if len(line) <= most and len(text) <= 4 * most else f"{line[: most - 1].rstrip()}{_CUT}"


def without_folders(text: str) -> str:
    """A message that begins with a file, by the file's name alone. Worked example:

    workspaces/root/shop/web.yaml:3: unknown field   → web.yaml:3: unknown field
    """
    found = _FOLDERS.match(text)
    return text[found.end() :] if found else text
