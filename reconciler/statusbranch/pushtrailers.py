"""Who pushed, in the messages of status commits, and read back from there.

Each status commit says of the commits of the served branch that are new with it who is known to be behind them: a
trailer `Pushed-By: <commit> <how> <user>` for each; of several users' writes in one commit how many they are, and some
of their names, `<commit> several 7 ann bob`. Written by the writer; read where there is no server, or none that knows.
A user's name is a stranger's text, so it is one line, and no status commit says it in words that mean anything else. Of
what nobody knows nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from urllib.parse import quote, unquote

from apiserver.storage.protocol import View
from reconciler.plan.pushedby import HOW, NOBODY, SEVERAL, PushedBy
from reconciler.repository.chain import brought
from reconciler.repository.errors import RepositoryError
from reconciler.repository.messages import one_line
from reconciler.repository.objects import Repository
from reconciler.statusbranch import pushers
from reconciler.statusbranch.chronicle import status_commits

PUSHED_BY = "Pushed-By"
MOST = 200
"""Commits that one status commit tells of; a push of more is told of the newest."""
_USER = 400
"""Characters of a name. Those of ServiceAccounts have up to 339."""
_PLAIN = "".join(chr(each) for each in range(0x21, 0x7F) if chr(each) != "%")
"""What stands in a word as it is."""
_FAR = 20_000
"""Status commits that are looked through."""
_LINE = re.compile(rf"{PUSHED_BY}: ([0-9a-f]{{40,64}}) ({'|'.join(HOW)}) (.+)")


def lines(repo: Repository, store: View, before: str | None, served: str) -> list[str]:
    """The trailer's values for a status commit that names `served`, after one that named `before`."""
    try:
        commits, more = brought(repo, before, served, MOST)
    except RepositoryError:
        return []
    known = {commit: by for commit in commits if (by := pushers.of(store, commit))}
    said = [f"{commit} {by.how} {_whose(by)}" for commit, by in known.items()]
    return [*([f"and {more} more before these"] if more and said else []), *said]


def pushed_by(repo: Repository, head: str, commits: Iterable[str]) -> Mapping[str, PushedBy]:
    """Of those that the status branch, whose newest commit is `head`, says it of. A name is shortened where it is long,
    and has blanks for what ends lines. Raises RepositoryUnreadable."""
    found: dict[str, PushedBy] = {}
    asked = dict.fromkeys(commits)
    left, seen = [*asked], ""
    for info in islice(status_commits(repo, head), _FAR):
        source = info.parents[-1]
        # Of what is not in this commit no earlier one tells. One that is in it is enough to go on.
        while left and (left[-1] in found or (source != seen and not repo.is_ancestor(left[-1], source))):
            left.pop()
        seen = source
        if not left:
            break
        found |= {commit: by for commit, by in _said(info.message) if commit in asked and commit not in found}
    return found


def _said(message: str) -> Iterator[tuple[str, PushedBy]]:
    """Of the last paragraph alone, as git reads trailers."""
    for line in message.rstrip("\n").rpartition("\n\n")[2].split("\n"):
        found = _LINE.fullmatch(line)
        if found is not None:
            commit, how, whose = found.groups()
            by = _several(whose) if how == SEVERAL else PushedBy(whose, how)
            if by:
                yield commit, by


def _whose(by: PushedBy) -> str:
    if by.how == SEVERAL:
        return " ".join([str(len(by.users) + by.more), *map(_word, by.users)])
    return one_line(by.user, _USER) or "?"


def _word(user: str) -> str:
    """A name as one word of a line."""
    return quote(one_line(user, _USER), safe=_PLAIN) or "?"


def _several(whose: str) -> PushedBy:
    """NOBODY where the line says nothing of the kind."""
    number, *users = whose.split(" ")
    if not number.isascii() or not number.isdigit() or int(number) < len(users):
        return NOBODY
    return PushedBy("", SEVERAL, users=tuple(map(unquote, users)), more=int(number) - len(users))
