"""What judging a commit's signature comes to: who signed it, or why nobody did.

For other rooms these stand in verifier.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True)
class Signer:
    """`user`: by the name that `signers/` gives to the key. `key`: for people, like `SSH SHA256:…` or `OpenPGP …`.
    `ours`: this server's own key, which is no user's."""

    user: str
    key: str
    ours: bool = False


class Unverified(Enum):
    """Of a commit that nobody vouches for: what is the matter with its signature."""

    NONE = "none"
    """There is none."""
    UNKNOWN = "unknown"
    """It is by a key that is nobody's, or this program cannot judge it."""
    LAPSED = "lapsed"
    """It is by somebody's key, which is not valid at present: it ended, or was revoked."""
    BAD = "bad"


class NotVerified(Exception):
    """Nobody vouches for a commit. `why`: in plain words, of the commit: "it is not signed"."""

    def __init__(self, why: str, how: Unverified = Unverified.BAD) -> None:
        super().__init__(why)
        self.why, self.how = why, how
