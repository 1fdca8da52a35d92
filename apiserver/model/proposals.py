"""Branches of proposals: what a user proposes to change in a workspace stands on one branch, which both name.

    ann, root:shop:web              →  treeplane/proposals/ann/root-shop-web
    Ann@Example.org, root:shop-web  →  treeplane/proposals/=41nn@=45xample.org/root-shop--web

Used by whoever commits proposals (reconciler), and by the hosted repository, which lets a user push to his own. Names
of users and workspaces are strangers' text, so they are spelled: no two names share a spelling, git takes each one, and
so does a file system to which capital and small letters are the same. It is made to be read, never to be read back.
"""

from __future__ import annotations

import hashlib
import re

PROPOSALS = "treeplane/proposals/"
"""What their names begin with. Two parts follow, neither of which has a slash."""
LONGEST = 100
"""Characters of a part: with both, a forge's bound for the name of a branch (244 bytes) is kept."""

_PLAIN = re.compile(r"[a-z0-9]")
_BETWEEN = frozenset(".@_+")
"""What stays where it is between two plain characters: nothing that git refuses can be made of it there."""
_LOCK = ".lock"
_KEPT = 60
"""Characters of what is too long, before its digest."""


def branch_of(user: str, workspace: str) -> str:
    """The branch on which a user proposes something for the workspace with that path."""
    return f"{PROPOSALS}{spelled(user)}/{spelled(workspace)}"


def branches_of(user: str) -> str:
    """What the names of a user's branches begin with, and nobody else's."""
    return f"{PROPOSALS}{spelled(user)}/"


def spelled(name: str) -> str:
    """A name as one part of a branch's. Small letters, digits and what stands between two of them are themselves, a
    colon there is a hyphen, a hyphen two, and everything else its bytes: `=2f`."""
    found = "".join(_piece(name, index) for index in range(len(name))) or "="
    if found.endswith(_LOCK):
        found = f"{found[: -len(_LOCK)]}=2elock"
    if len(found) <= LONGEST:
        return found
    # No spelling has a `=z`, so what is cut is nobody's whole name.
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return f"{found[:_KEPT].rstrip('.')}=z{digest}"


def _piece(name: str, index: int) -> str:
    letter = name[index]
    if _PLAIN.fullmatch(letter):
        return letter
    if letter == "-":
        return "--"
    inside = 0 < index < len(name) - 1
    if inside and _PLAIN.fullmatch(name[index - 1]) and _PLAIN.fullmatch(name[index + 1]):
        if letter == ":":
            return "-"
        if letter in _BETWEEN:
            return letter
    return "".join(f"={byte:02x}" for byte in letter.encode("utf-8", "surrogatepass"))
