"""What every forge has: comments on a pull request, each by somebody, and who the token is.

Spoken by github.py, gitlab.py and gitea.py, each in its forge's dialect; asked by keeping.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from reconciler.forges.errors import ForgeError


class ForgeUser(NamedTuple):
    """Of the forge's users. `id`: 0 where only the name is known."""

    id: int
    name: str

    def is_same(self, other: ForgeUser) -> bool:
        """A name can be given up and taken by somebody else, so numbers count where both are known."""
        if self.id and other.id:
            return self.id == other.id
        return bool(self.name) and self.name.lower() == other.name.lower()


@dataclass(frozen=True, slots=True)
class Comment:
    """`url`: for people; "" where the forge does not say."""

    id: int
    author: ForgeUser
    body: str
    url: str = ""


class Forge(Protocol):
    """One pull request on it. All raise ForgeError."""

    def me(self) -> ForgeUser: ...

    def comments(self) -> Iterator[Comment]:
        """All, the oldest first."""
        ...

    def create(self, body: str) -> Comment: ...

    def update(self, comment: Comment, body: str) -> Comment: ...


def author(value: Any, name: str) -> ForgeUser:
    """Of a user as forges write it. `name`: the field that has it."""
    if not isinstance(value, dict):
        return ForgeUser(0, "")
    return ForgeUser(integer(value.get("id")), text(value.get(name)))


def fields(value: Any) -> dict[str, Any]:
    """An object. Raises ForgeError for what is none."""
    if not isinstance(value, dict):
        raise ForgeError("the forge's answer is not what its API promises", "is the URL a forge's, and of that kind?")
    return value


def integer(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""
