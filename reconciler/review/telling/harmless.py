"""Strangers' text, so that it does nothing where it is shown: in a terminal, in a log that a forge reads for commands,
in Markdown.

Called by every form. What a pull request says (names, values, messages about them) is its author's to choose.
"""

from __future__ import annotations

import re

from apiserver.model.plaintext import COMMAND, plain

__all__ = ["code", "fenced", "plain", "quoted"]

_WIDTH = 300
_TICKS = re.compile(r"`+")


def quoted(document: str, escape: str) -> str:
    """A document of quoted texts in which a character can be written as `escape`, a format of its number."""
    return COMMAND.sub("#" + escape.replace("\\", "\\\\") % ord("#"), document)


def code(text: str, most: int = 2_000) -> str:
    """As code within a line of Markdown: no mention, link, emphasis or tag in it counts."""
    shown = plain(text, most) or " "
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(shown)), default=0))
    return f"{ticks} {shown} {ticks}" if "`" in shown or shown != shown.strip() else f"{ticks}{shown}{ticks}"


def fenced(lines: list[str], language: str) -> list[str]:
    """As a block of Markdown. Each line begins with something of ours, so none begins a command of the forge's."""
    shown = [plain(line, _WIDTH) for line in lines]
    longest = max((len(run) for line in shown for run in _TICKS.findall(line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *shown, fence]
