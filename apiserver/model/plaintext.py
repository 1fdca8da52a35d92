"""Strangers' text on one line of a terminal, where nothing acts on it. Called by whatever prints some; what other
places need besides (Markdown, a forge's log) is reconciler/review/telling/harmless.
"""

from __future__ import annotations

import re

COMMAND = re.compile(r"##(?=\[|vso\[)", re.IGNORECASE)
"""What forges' runners take for a command wherever it stands in a line."""
_FIRST = re.compile(r"^\s*::")
"""What they take for one where a line begins."""


def plain(text: str, most: int = 2_000) -> str:
    """On one line, without anything that a terminal or a runner acts on, cut to so many characters."""
    cut = text if len(text) <= most else f"{text[:most]}… ({len(text) - most} more)"
    shown = "".join(c if c.isprintable() else _escaped(c) for c in cut)
    return _FIRST.sub(": :", COMMAND.sub("## ", shown))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")
