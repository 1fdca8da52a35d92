"""Who is known to be behind a commit of the served branch. Its author is anybody's text and says nothing of that.

Made where a commit is taken (loading/vouching) or written (loading/committer), kept in the store and told on the
status branch (statusbranch/pushers, pushtrailers), shown beside the author. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

PUSH: Final = "push"
"""The user whom the server authenticated, that hosts the repository."""
SIGNATURE: Final = "signature"
"""The user whom the signers' file gives to the key of a signature that holds."""
SERVER: Final = "server"
"""The user whose writes through the API the server made a commit of."""
OPERATOR: Final = "operator"
"""Who runs the server, and had it make the repository."""
HOW: Final = (PUSH, SIGNATURE, SERVER, OPERATOR)

_WORDS = {SIGNATURE: "signed", SERVER: "through the API", OPERATOR: "who runs the server"}


@dataclass(frozen=True, slots=True)
class PushedBy:
    """`user`: a name of the API's users. `how`: one of HOW, "" where nobody is known. `key`: of a signature, for
    people."""

    user: str = ""
    how: str = ""
    key: str = ""

    def __bool__(self) -> bool:
        return bool(self.how)

    def __str__(self) -> str:
        """For people: `alice`, `alice (signed)`. What the name holds is a stranger's text."""
        if not self:
            return "nobody known"
        return f"{self.user} ({_WORDS[self.how]})" if self.how in _WORDS else self.user

    def as_json(self) -> dict[str, str]:
        return {name: said for name in ("user", "how", "key") if (said := getattr(self, name))}

    @staticmethod
    def from_json(found: Any) -> PushedBy:
        """Raises ValueError for what says nothing of the kind."""
        if not isinstance(found, dict) or found.get("how", "") not in ("", *HOW):
            raise ValueError("that is not who pushed")
        said = [found.get(name, "") for name in ("user", "how", "key")]
        if not all(isinstance(each, str) for each in said):
            raise ValueError("that is not who pushed")
        return PushedBy(*said)


NOBODY = PushedBy()
