"""Who writes the status branch: what a status commit says of that, and what a server makes of another one's commit.

Every status commit names its writer (`<installation>/<start>`, see commands/installation) and an epoch, which grows
when somebody takes the branch over.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from reconciler.repository.chain import goes_on
from reconciler.repository.objects import Repository

WRITER, EPOCH = "Writer", "Epoch"
TAKES_OVER = "Take over from "
"""How the message of a commit begins that says of what another server wrote that it is another's from now on."""
_WRITER = re.compile(r"[0-9A-Za-z-]{1,64}/[0-9]{1,20}")
_EPOCH = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Claim:
    """`writer` "": none is named (an older version, or a person)."""

    writer: str = ""
    epoch: int = 0

    def trailers(self) -> dict[str, str]:
        return {WRITER: self.writer, EPOCH: str(self.epoch)} if self.writer else {}


def claim_of(repo: Repository, commit: str) -> Claim:
    """What a status commit says of its writer."""
    said = repo.trailers(commit)
    writer, epoch = said.get(WRITER, ""), said.get(EPOCH, "")
    if not _WRITER.fullmatch(writer) or not _EPOCH.fullmatch(epoch):
        return Claim()
    return Claim(writer, int(epoch))


class Finding(Enum):
    """What the source's status branch is to a server."""

    OURS = "gone, or behind what we have: it is pushed (again)"
    AHEAD = "our own, beyond what we have: we go on from it"
    NOBODYS = "by nobody in particular: our files go on top"
    ANOTHERS = "another server's"


def find(
    repo: Repository,
    ours: str | None,
    theirs: str | None,
    is_own: Callable[[str], bool],
    is_signed: Callable[[str], bool] = lambda _: True,
) -> Finding:
    """What `theirs`, the source's status commit, is to a server whose own newest is `ours`. `is_own`: whether a writer
    is this server; `is_signed`: whether a commit has this server's signature. Anybody can write who a writer was: where
    ours is signed, what only says so is nobody's."""

    def own(commit: str) -> bool:
        writer = claim_of(repo, commit).writer
        return not writer or is_own(writer)

    if theirs is None:
        return Finding.OURS if ours is None or own(ours) else Finding.ANOTHERS
    # What we only took over to look at is nothing of ours to push.
    if ours is not None and own(ours) and goes_on(repo, theirs, ours):
        return Finding.OURS
    writer = claim_of(repo, theirs).writer
    if writer and not is_own(writer):
        return Finding.ANOTHERS
    if ours is not None and own(ours) and is_signed(ours) and not is_signed(theirs):
        return Finding.NOBODYS
    if writer or ours is None or not own(ours):
        return Finding.AHEAD
    return Finding.NOBODYS
