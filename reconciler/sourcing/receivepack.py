"""What git's servers are asked over HTTP by who writes: where a branch stands, and to move it with what is new.

Called by excerptpush.py. As uploadpack.py, for the other direction, of which git's protocol has one version. The branch
is moved from where it was found and from nowhere else, so nothing that somebody else wrote meanwhile is lost. What the
server says about it is looked at for whether it was taken; none of its words goes on.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator

from reconciler.sourcing.connection import SourceAnswer, SourceConnection, SourceRequest
from reconciler.sourcing.faults import AGAIN, SourceFault, damaged
from reconciler.sourcing.packets import FLUSH, Packets, packet
from reconciler.sourcing.settings import SourceBounds
from reconciler.sourcing.uploadpack import first_said, id_of, of_ref

_REFS = SourceRequest("/info/refs?service=git-receive-pack", "application/x-git-receive-pack-advertisement")
_RESULT = "application/x-git-receive-pack-result"
_LONGEST_LIST, _LONGEST_ANSWER, _LONGEST_REPORT = 32 * 1024 * 1024, 1024 * 1024, 64 * 1024
"""Bytes of the list of refs; of all that a server says of a push, what its hooks print among it; of its report."""
_NOWHERE = "0" * 40
_REPORT, _SIDEBAND = b"report-status", b"side-band-64k"
_DATA, _TOLD = b"\1", b"\2"
_LATER = "it is tried again, ever more seldom; what is served does not depend on it"
_RIGHT = "give the credentials of secretRef the right to push that branch, or take spec.source.status out"


class ReceivePack:
    """Of one branch, through one connection. Methods raise SourceFault and VisitGivenUp; `head` comes first."""

    def __init__(self, connection: SourceConnection, branch: str, bounds: SourceBounds) -> None:
        self._connection, self._bounds = connection, bounds
        self._branch, self._ref = branch, f"refs/heads/{branch}".encode()
        self._abilities = frozenset[bytes]()

    def head(self) -> str:
        """The id at which the branch stands; "" where there is no such branch."""
        answer = self._asked(_REFS, time.monotonic() + self._bounds.look)
        packets = Packets(answer.read, _LONGEST_LIST)
        first, _, abilities = first_said(packets).partition(b"\0")
        self._abilities = frozenset(abilities.split())
        if b"object-format=sha256" in self._abilities or _REPORT not in self._abilities:
            what = "the repository's host cannot what writing takes (report-status, SHA-1)"
            raise SourceFault("NotARepository", what, _LATER)
        found = ""
        for each in (first, *packets.section()):
            name, said = of_ref(each)
            if said == self._ref and name != b"shallow":
                found = id_of(name)
        answer.end()
        return found

    def push(self, before: str, commit: str, pack: bytes) -> None:
        """Moves the branch from `before` ("": there is none) to `commit`, with a pack of what the server lacks. A fault
        does not tell whether the server did: an answer may be lost."""
        wanted = [_REPORT, *([_SIDEBAND] if _SIDEBAND in self._abilities else [])]
        command = b"%b %b %b\0 %b" % ((before or _NOWHERE).encode(), commit.encode(), self._ref, b" ".join(wanted))
        body = packet(command) + FLUSH + pack
        answer = self._asked(SourceRequest("/git-receive-pack", _RESULT, body), float("inf"))
        packets = Packets(answer.read, _LONGEST_ANSWER)
        if len(wanted) > 1:
            report = b"".join(_pieces(packets))
            packets = Packets(io.BytesIO(report).read, len(report))
        unpacked, *said = [each.rstrip(b"\n") for each in packets.section()] or [b""]
        if unpacked != b"unpack ok":
            raise self._refused("takes nothing of what is written to it") if unpacked.startswith(b"unpack ") else _odd()
        if b"ok " + self._ref not in said:
            raise self._refused("does not take it") if _is_refused(said, self._ref) else _odd()
        answer.end()

    def _asked(self, request: SourceRequest, until: float) -> SourceAnswer:
        """With words about writing, where it is refused."""
        try:
            return self._connection.ask(request, until)
        except SourceFault as fault:
            hint = _RIGHT if fault.reason in ("Unauthorized", "NotFound") else fault.hint
            raise SourceFault(fault.reason, fault.what, _LATER if hint == AGAIN else hint or _LATER) from None

    def _refused(self, how: str) -> SourceFault:
        what = f"the repository {how} (the branch {self._branch} is protected, or a hook is against it)"
        return SourceFault("Refused", what, "allow the user of secretRef to push that branch; it is tried again")


def _pieces(packets: Packets) -> Iterator[bytes]:
    """Of the report, among what hooks print, which is nobody's to see here."""
    size = 0
    for each in packets.section():
        channel, piece = each[:1], each[1:]
        if channel == _DATA:
            size += len(piece)
            if size > _LONGEST_REPORT:
                raise _odd()
            yield piece
        elif channel != _TOLD:
            raise SourceFault("Failing", "the repository's host gave up on what was written to it", _LATER)


def _is_refused(said: list[bytes], ref: bytes) -> bool:
    return any(each == b"ng " + ref or each.startswith(b"ng " + ref + b" ") for each in said)


def _odd() -> SourceFault:
    return damaged("another report than git's")
