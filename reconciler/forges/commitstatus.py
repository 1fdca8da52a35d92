"""A commit status: what a forge shows of a commit beside it, one for each context.

Made by controllers/commitstatuses, said by the dialects (github.py, gitlab.py, gitea.py). Context and description hold
what others wrote, so both become one line that shows what it is, of a length that every forge takes.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple, Protocol

SUMMARY = "treeplane"
"""The context of the status that is about a commit as a whole."""

LONGEST_CONTEXT = 255
LONGEST_DESCRIPTION = 140
"""Characters. GitHub takes that many, others more."""
_DIGITS = 16
_CUT = "~"
"""Before the digest of what was cut. No path of a workspace has it, so nothing that is cut is called as what is not."""
_HIGHEST = 0xFFFF
"""Beyond that GitHub refuses characters of a description."""


class CommitStatus(NamedTuple):
    """`url`: where it leads, "" for nowhere."""

    context: str
    good: bool
    description: str
    url: str = ""


class StatusForge(Protocol):
    """One repository on it."""

    def state(self, commit: str, status: CommitStatus) -> None:
        """Raises ForgeError. Twice the same is as good as once."""
        ...


def context_of(path: str) -> str:
    """Of the workspace at `path`. Each path has its own."""
    whole = f"{SUMMARY}/{path}"
    if len(whole) <= LONGEST_CONTEXT:
        return whole
    digest = hashlib.sha256(path.encode()).hexdigest()[:_DIGITS]
    return f"{whole[: LONGEST_CONTEXT - _DIGITS - len(_CUT)]}{_CUT}{digest}"


def described(text: str) -> str:
    """On one line, without what cannot be seen, and cut."""
    seen = "".join(each if each.isprintable() else " " for each in text)
    plain = " ".join("".join(each if ord(each) <= _HIGHEST else "\ufffd" for each in seen).split())
    return plain if len(plain) <= LONGEST_DESCRIPTION else f"{plain[: LONGEST_DESCRIPTION - 1]}…"


def said(status: CommitStatus, good: str, bad: str) -> dict[str, Any]:
    """The body that all forges take. `good`, `bad`: their words for the state."""
    body = {"state": good if status.good else bad, "context": status.context, "description": status.description}
    return {**body, "target_url": status.url} if status.url else body
