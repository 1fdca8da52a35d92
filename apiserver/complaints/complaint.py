"""One thing that is wrong now, and all of them as they go from a server to whoever asks.

Made by the modules beside this one (gather is the way in), read by commands/status. Texts are others' to choose (a
commit's errors, what a remote answers): they are cut here, and made harmless where they are shown.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from apiserver.model.conditions import Condition

MOST = 20
"""Complaints of a kind that are listed; of more the number is told."""
LONGEST = 600
"""Characters of a text."""


class ComplaintKind(StrEnum):
    """In the order of how bad it is: what keeps more from being served comes first."""

    STOPPED = "stopped"
    """No server runs on the data directory."""
    STORE = "store"
    """It has no store, or one that cannot be read."""
    LOADING = "loading"
    """The first load is not complete."""
    STARTING = "starting"
    """A sync target was not asked yet, since it is new to the process: in a moment it is known."""
    OBSERVER = "observer"
    """Another server holds the fleet."""
    FLEET = "fleet"
    """A commit is held as a whole."""
    DISK = "disk"
    """There is little room for what is written."""
    REMOTE = "remote"
    """The repository does not answer."""
    STATUS_BRANCH = "status-branch"
    """What happens is not recorded in the repository."""
    CERTIFICATE = "certificate"
    """One ended, or is about to."""
    TARGET = "target"
    """A sync target does not answer, or takes nothing."""
    LAG = "lag"
    """A commit was seen and is not served yet."""
    HELD = "held"
    """A workspace is held."""
    PLACEMENT = "placement"
    """Something runs nowhere, or not as it should."""
    SOURCE = "source"
    """A tenant's repository cannot be read, or not be written to."""
    SECRET = "secret"
    """Something encrypted cannot be read."""
    TELLING = "telling"
    """A forge, or who is notified, cannot be told of commits."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """`where`: a workspace, an object in one, a file. `what`: in words. `command`: what goes on, "" where the words say
    it."""

    kind: str
    where: str
    what: str
    command: str = ""


@dataclass(frozen=True, slots=True)
class ComplaintBatch:
    """All of a kind: those that are listed, and how many there are."""

    listed: list[Complaint] = field(default_factory=list)
    number: int = 0

    @staticmethod
    def of(complaints: Iterable[Complaint]) -> ComplaintBatch:
        found = list(complaints)
        return ComplaintBatch(found[:MOST], len(found))


@dataclass(frozen=True, slots=True)
class Complaints:
    """`more`: by kind how many there are besides those that are listed. `unseen`: what was not looked at, and why, in
    words. `workspaces`: how many there are; `commit`: what is served; 0 and "" where that is not the asker's to know.
    """

    listed: tuple[Complaint, ...] = ()
    more: dict[str, int] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()
    workspaces: int = 0
    commit: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "wrong": [
                {"kind": str(c.kind), "where": c.where, "what": c.what, "command": c.command} for c in self.listed
            ],
            "more": dict(self.more),
            "notLookedAt": [*self.unseen],
            "workspaces": self.workspaces,
            "commit": self.commit,
        }

    @staticmethod
    def read(document: dict[str, Any]) -> Complaints:
        """Raises KeyError, TypeError or ValueError for what is no such document."""
        listed = (Complaint(**{n: str(each[n]) for n in ("kind", "where", "what", "command")})
                  for each in document["wrong"])  # fmt: skip
        more = {str(kind): int(number) for kind, number in document["more"].items()}
        unseen = tuple(map(str, document["notLookedAt"]))
        return Complaints(tuple(listed), more, unseen, int(document["workspaces"]), str(document["commit"]))


def together(batches: Sequence[ComplaintBatch]) -> tuple[tuple[Complaint, ...], dict[str, int]]:
    """Worst first; within a kind as they were found. And how many more there are of each."""
    order = {str(kind): number for number, kind in enumerate(ComplaintKind)}
    listed = [each for batch in batches for each in batch.listed]
    numbers: dict[str, int] = {}
    for batch in batches:
        if batch.listed and batch.number > len(batch.listed):
            kind = str(batch.listed[0].kind)
            numbers[kind] = numbers.get(kind, 0) + batch.number - len(batch.listed)
    return tuple(sorted(listed, key=lambda each: order.get(each.kind, len(order)))), numbers


def conditions_of(obj: dict[str, Any]) -> list[Condition]:
    """Those of an object, whatever else its writer put there."""
    status = obj.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    return [each for each in found if isinstance(each, dict) and "type" in each] if isinstance(found, list) else []


def cut(text: str) -> str:
    """On one line, and not too long."""
    line = " ".join(text[: 2 * LONGEST].split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def said(*parts: str) -> str:
    """A command line."""
    return shlex.join(parts)
