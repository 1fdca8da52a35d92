"""What stands in a comment: a first line that nobody sees, by which it is found again, and a text that others wrote.

Called by keeping.py. The text comes out of a job that read a stranger's branch, so it may be anything: nothing in it
may look like the first line of another comment, be a command to the forge, or be longer than a forge takes.
"""

from __future__ import annotations

import re

from reconciler.forges.errors import NotSaid

MOST = 65_000
"""Characters of the text. GitHub takes 65,536 in all."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_LINE_BREAK = re.compile(r"\r\n?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MARKER = re.compile(r"<!--(?=\s*treeplane\b)", re.IGNORECASE)
_COMMAND = re.compile(r"^/", re.MULTILINE)
_CUT = "*This is too long for a comment; what follows is its beginning.*\n\n"


def marker(name: str) -> str:
    """The first line of the comment `name`. Raises NotSaid."""
    if not _NAME.fullmatch(name):
        raise NotSaid(f"{name!r} is no name of a comment", "names are lower case letters, digits, `-` and `.`")
    return f"<!-- treeplane diff {name} -->"


def written(name: str, text: str) -> str:
    """The whole comment. Raises NotSaid where there is nothing to say."""
    first = marker(name)
    said = harmless(text)
    if not said:
        raise NotSaid("there is nothing to say: the text is empty", "did what should have written it fail?")
    if len(said) > MOST:
        said = f"{_CUT}{said[:MOST]}"
    return f"{first}\n{said}"


def harmless(text: str) -> str:
    """Without what surrounds it. A slash at a line's beginning is a command to GitLab (`/merge`), which obeys it in the
    token's name, and so do others' robots elsewhere: whatever else changes the text comes before that."""
    plain = _CONTROL.sub("", _LINE_BREAK.sub("\n", text)).strip()
    return _COMMAND.sub(" /", _MARKER.sub("&lt;!--", plain))


def is_marked(body: str, name: str) -> bool:
    return _LINE_BREAK.sub("\n", body).split("\n", 1)[0].rstrip() == marker(name)


def is_same(one: str, other: str) -> bool:
    """As a reader sees it: forges may end lines in their own way."""
    return _LINE_BREAK.sub("\n", one).strip() == _LINE_BREAK.sub("\n", other).strip()
