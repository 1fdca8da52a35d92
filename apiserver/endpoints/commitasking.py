"""What API workers ask about commits, and what they are answered: one line of JSON each, over a socket in the data
directory. The other side is the reconciler's (viewing), in a process of its own.

Called by commitviews and by whoever answers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.model.errors import StatusError

KEPT = "commits"
"""The directory of the data directory in which the stores are."""
MARK = "used"
"""A file beside each store, touched when it is read: which ones are used, and whether one is there still."""
HEADER = b"treeplane-commit"
"""Of an answer about a commit: its id, whatever it was asked for by."""
LONGEST = 16 * 1024
"""Bytes of a line."""


class CommitQuestion(NamedTuple):
    """`rev`: an id, a branch, a tag, a pull request's ref; `path`: the workspace's; `user`: who asks; `children`:
    whether the workspaces right below it are looked at, too, as objects in it."""

    rev: str
    path: str
    user: str
    children: bool = False

    def line(self) -> bytes:
        return bytes(memoryview(orjson.dumps(self._asdict()))) + b"\n"

    @staticmethod
    def parse(line: bytes) -> CommitQuestion:
        """Raises ValueError."""
        found = orjson.loads(line)
        if not isinstance(found, dict) or not all(isinstance(found.get(name), str) for name in ("rev", "path", "user")):
            raise ValueError("it is no question about a commit")
        return CommitQuestion(found["rev"], found["path"], found["user"], bool(found.get("children")))


@dataclass(frozen=True, slots=True)
class CommitFilled:
    """`commit`: the id; `directory`: the name of the directory that has the store, below KEPT. `recorded`: the commit
    that the status commit names whose statuses are shown, "" where none are known; that is `commit` itself if this
    server served it."""

    commit: str
    directory: str
    recorded: str = ""


def told(found: CommitFilled | StatusError) -> bytes:
    """The line that answers a question."""
    said = asdict(found) if isinstance(found, CommitFilled) else refusal(found)
    return bytes(memoryview(orjson.dumps(said))) + b"\n"


def heard(line: bytes) -> CommitFilled:
    """Raises the StatusError that was answered, and ValueError or KeyError for no answer."""
    found: Any = orjson.loads(line)
    raise_refusal(found)
    return CommitFilled(found["commit"], found["directory"], found["recorded"])


def refusal(error: StatusError) -> dict[str, Any]:
    """An error as it goes from process to process."""
    return {"code": error.code, "reason": error.reason, "message": error.message, "retry_after": error.retry_after}


def raise_refusal(found: dict[str, Any]) -> None:
    """Raises the StatusError that `refusal` made this of, if it did."""
    if "code" in found:
        raise StatusError(found["code"], found["reason"], found["message"], retry_after=found["retry_after"])
