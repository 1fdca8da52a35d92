"""Which commit somebody means who names a revision: an id, a branch, a tag, a pull request. Never an expression.

Called by viewer and line. A name is a stranger's text: what is none is refused before anybody looks, and looked for are
the places below alone, so neither the server's own refs nor those of others that keep something can be read by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from apiserver.model.errors import StatusError

_ID = re.compile(r"[0-9a-f]{7,40}")
_WHOLE_ID = re.compile(r"[0-9a-f]{40}")
_NAME = re.compile(r"[^\x00-\x20\x7f~^:?*\[\\]+")
_NO_NAME = re.compile(r"\.\.|//|@\{|(?:^|/)[.-]|\.lock(?:/|$)|[./]$|^/|^@$")
"""What git takes in no ref, and what would read as an option."""
_PULL = re.compile(r"(?:refs/)?(pull|merge-requests)/([0-9]{1,12})(?:/(head|merge))?")
_WHOLE = ("refs/heads/", "refs/tags/")
LONGEST = 250
"""Characters of a name."""


def is_whole_id(rev: str) -> bool:
    """Whether it can be nothing but the id of a commit: what passes here goes to git as it is."""
    return _WHOLE_ID.fullmatch(rev) is not None


def places(rev: str) -> list[str]:
    """The full names of refs that may be meant. Raises StatusError 400 for what can be no revision."""
    if len(rev) > LONGEST or _NAME.fullmatch(rev) is None or _NO_NAME.search(rev):
        text = f'"{rev[:LONGEST]}" is no id, branch, tag or pull request: an expression is not looked up'
        raise StatusError(400, "BadRequest", text)
    pull = _PULL.fullmatch(rev)
    if pull is not None:
        return [f"refs/{pull[1]}/{pull[2]}/{pull[3] or 'head'}"]
    if rev.startswith("refs/"):
        return [rev] if rev.startswith(_WHOLE) else []
    return [f"{place}{rev}" for place in _WHOLE]


def commit_of(rev: str, find: Callable[[Iterable[str]], dict[str, str]], ids: Callable[[str], list[str]]) -> str:
    """The commit's id. `find`: which of some refs are there, and their commits; `ids`: the commits whose ids begin so.
    Raises StatusError: 404 where nothing is called so, 400 where it may mean several."""
    named = find(places(rev))
    meant = {*named.values()} | {*(ids(rev) if _ID.fullmatch(rev) else ())}
    if len(meant) > 1:
        called = ", ".join([*named, *(f"commit {each:.12}" for each in sorted(meant - {*named.values()}))])
        raise StatusError(400, "BadRequest", f'"{rev}" may mean each of {called}: give the whole name, or the id')
    if not meant:
        raise StatusError(404, "NotFound", f'no commit, branch, tag or pull request is called "{rev}"')
    return meant.pop()
