"""Who is known to be behind a commit of the served branch. Its author is anybody's text and says nothing of that.

Made where a commit is taken (loading/vouching) or written (loading/committer), kept in the store and told on the
status branch (statusbranch/pushers, pushtrailers), shown beside the author. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

PUSH: Final = "push"
"""The user whom the server authenticated, that hosts the repository."""
SIGNATURE: Final = "signature"
"""The user whom the signers' file gives to the key of a signature that holds."""
SERVER: Final = "server"
"""The user whose writes through the API the server made a commit of."""
SEVERAL: Final = "several"
"""The server itself, that made one commit of several users' writes through the API: no one user is behind it."""
OPERATOR: Final = "operator"
"""Who runs the server, and had it make the repository."""
HOW: Final = (PUSH, SIGNATURE, SERVER, SEVERAL, OPERATOR)
NAMED: Final = 3
"""Of several users so many are named. Who wrote what, the commit says by itself."""

_WORDS = {SIGNATURE: "signed", SERVER: "through the API", OPERATOR: "who runs the server"}


@dataclass(frozen=True, slots=True)
class PushedBy:
    """`user`: a name of the API's users. `how`: one of HOW, "" where nobody is known. `key`: of a signature, for
    people. Of several there is no `user`, but `users`, the first of them, and `more`, how many there are besides."""

    user: str = ""
    how: str = ""
    key: str = ""
    users: tuple[str, ...] = ()
    more: int = 0

    @staticmethod
    def server(users: Iterable[str], key: str = "") -> PushedBy:
        """Of a commit that the server made of these users' writes."""
        every = [*dict.fromkeys(users)]
        if len(every) == 1:
            return PushedBy(every[0], SERVER, key)
        return PushedBy("", SEVERAL, key, tuple(every[:NAMED]), len(every[NAMED:]))

    def __bool__(self) -> bool:
        return bool(self.how)

    def __str__(self) -> str:
        """For people: `alice`, `alice (signed)`, `treeplane for ann, bob, eve and 4 more`. What the name holds is a
        stranger's text."""
        if not self:
            return "nobody known"
        if self.how == SEVERAL:
            return f"treeplane for {_listed(self.users, self.more)}"
        return f"{self.user} ({_WORDS[self.how]})" if self.how in _WORDS else self.user

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {name: said for name in ("user", "how", "key") if (said := getattr(self, name))}
        return {**found, "users": [*self.users], "more": self.more} if self.how == SEVERAL else found

    @staticmethod
    def from_json(found: Any) -> PushedBy:
        """Raises ValueError for what says nothing of the kind."""
        if not isinstance(found, dict) or found.get("how", "") not in ("", *HOW):
            raise ValueError("that is not who pushed")
        user, how, key = (found.get(name, "") for name in ("user", "how", "key"))
        users, more = found.get("users", []), found.get("more", 0)
        if not isinstance(users, list) or not all(isinstance(each, str) for each in (user, how, key, *users)):
            raise ValueError("that is not who pushed")
        if type(more) is not int or more < 0:
            raise ValueError("that is not who pushed")
        return PushedBy(user, how, key, tuple(users), more)


NOBODY = PushedBy()


def _listed(users: tuple[str, ...], more: int) -> str:
    if not users:
        return "several users"
    last = f"{more} more" if more else users[-1]
    first = users if more else users[:-1]
    return f"{', '.join(first)} and {last}" if first else last
