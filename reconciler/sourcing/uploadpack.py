"""What git's servers are asked over HTTP: where a branch stands, and the pack of what is new.

Called by visit.py; receivepack.py reads lists of refs as it does. This is git's protocol in its version 2, and in the
first one for servers that know no other, as far as it takes for one branch. It is spoken here rather than by git's
program, which would look names up and connect by itself, want credentials in its environment or in files, and take some
sixteen times the CPU for a look. What comes is not believed: see taking.py.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence

from reconciler.sourcing.connection import SourceAnswer, SourceConnection, SourceRequest
from reconciler.sourcing.faults import NotGiven, SourceFault, damaged
from reconciler.sourcing.packets import DELIMITER, FLUSH, Packets, line
from reconciler.sourcing.settings import SourceBounds

_REFS = SourceRequest("/info/refs?service=git-upload-pack", "application/x-git-upload-pack-advertisement")
_RESULT = "application/x-git-upload-pack-result"
_LONGEST_LIST = 32 * 1024 * 1024
"""Bytes of what a server says of its refs: of version 1 all of them, two hundred thousand perhaps."""
_ID = re.compile(rb"[0-9a-f]{40}")
_NOWHERE = b"0" * 40
_OPTIONS = (b"side-band-64k", b"thin-pack", b"no-progress", b"ofs-delta")
"""What is asked for of a pack, where a server of version 1 can it; of version 2 all can, and the first goes without
saying."""
_DATA, _TOLD = 1, 2


class UploadPack:
    """Of one source, through one connection. `second`: whether the server is known to speak version 2, which saves a
    question; found out otherwise. Methods raise SourceFault and VisitGivenUp."""

    def __init__(self, connection: SourceConnection, branch: str, bounds: SourceBounds, second: bool = False) -> None:
        self._connection, self.bounds = connection, bounds
        self._ref = f"refs/heads/{branch}"
        self.second = second
        self._abilities = set[bytes]()

    def head(self) -> str | None:
        """The id at which the branch stands; None where there is no such branch."""
        until = time.monotonic() + self.bounds.look
        if not self.second:
            answer = self._connection.ask(_REFS, until)
            packets = Packets(answer.read, _LONGEST_LIST)
            first = first_said(packets)
            if first != b"version 2":
                return self._listed(answer, packets, first)
            _require(set(packets.section()))
            answer.end()
            self.second = True
        body = line("command=ls-refs") + DELIMITER + line(f"ref-prefix {self._ref}") + FLUSH
        answer = self._connection.ask(SourceRequest("/git-upload-pack", _RESULT, body), until)
        found = None
        for each in Packets(answer.read, _LONGEST_LIST).section():
            name, said = of_ref(each)
            if said == self._ref.encode():
                found = id_of(name)
        answer.end()
        return found

    def fetch(self, wanted: str, held: Sequence[str], write: Callable[[bytes], object], most: int) -> None:
        """The pack with all that `wanted` has and those that are `held` lack, of at most `most` bytes, is written."""
        haves = b"".join(line(f"have {each}") for each in held)
        if self.second:
            options = b"".join(line(each.decode()) for each in _OPTIONS[1:])
            body = line("command=fetch") + DELIMITER + options + line(f"want {wanted}") + haves + line("done") + FLUSH
        else:
            options = b" ".join(each for each in _OPTIONS if each in self._abilities)
            body = line(f"want {wanted} {options.decode()}") + FLUSH + haves + line("done")
        answer = self._connection.ask(SourceRequest("/git-upload-pack", _RESULT, body), float("inf"))
        # A packet has four digits and a byte besides what is of the pack.
        packets = Packets(answer.read, most + most // 8 + 65536)
        pieces = self._pieces(packets)
        size, begun = 0, b""
        for piece in pieces:
            size += len(piece)
            if size > most:
                raise _too_large(self.bounds)
            if len(begun) < 12:
                begun = (begun + piece)[:12]
                self._check(begun)
            write(piece)
        if len(begun) < 12:
            raise damaged("no pack")
        answer.end()

    def _pieces(self, packets: Packets) -> Iterator[bytes]:
        """Of the pack, as they come."""
        first = packets.next()
        if self.second:
            if first is None or first.rstrip(b"\n") != b"packfile":
                raise _refused(first)
            first = packets.next()
        else:
            while first is not None and first.startswith((b"ACK ", b"NAK")):
                first = packets.next()
        while first is not None:
            channel, piece = first[:1], first[1:]
            if channel == bytes([_DATA]):
                yield piece
            elif channel != bytes([_TOLD]):
                raise _refused(first)
            first = packets.next()

    def _check(self, begun: bytes) -> None:
        """The first bytes of a pack, before git makes room for what they announce."""
        if not b"PACK\0\0\0\2".startswith(begun[:8]):
            raise damaged("no pack")
        if len(begun) == 12 and int.from_bytes(begun[8:], "big") > self.bounds.objects:
            what = f"what is new in the repository is more than {self.bounds.objects} objects"
            raise SourceFault("TooLarge", what, "follow a smaller repository, or one with a shorter history")

    def _listed(self, answer: SourceAnswer, packets: Packets, first: bytes) -> str | None:
        """Where the branch stands by the list of all refs, as version 1 has it."""
        if not first:
            answer.end()
            return None
        entry, _, abilities = first.partition(b"\0")
        self._abilities = set(abilities.split())
        if b"side-band-64k" not in self._abilities or b"object-format=sha256" in self._abilities:
            raise _unfit(self._abilities)
        found = None
        for each in (entry, *packets.section()):
            if each.startswith(b"shallow "):
                raise _shallow()
            name, said = of_ref(each)
            if said == self._ref.encode():
                found = id_of(name)
        answer.end()
        return found


def _too_large(bounds: SourceBounds) -> SourceFault:
    what = f"the repository needs more than {bounds.disk // (1024 * 1024)} MiB here"
    return SourceFault("TooLarge", what, "an administrator allows more with `treeplane up --source-mib`")


def first_said(packets: Packets) -> bytes:
    """What a server says first about its refs; nothing, of the first version's that has none."""
    first = packets.next()
    if first is not None and first.startswith(b"# service="):
        if packets.next() is not None:
            raise damaged("no list of refs")
        first = packets.next()
    if first is not None and first.rstrip(b"\n") == b"version 1":
        first = packets.next()
    if first is not None and first.startswith(b"ERR "):
        raise _refused(first)
    return (first or b"").rstrip(b"\n")


def _require(abilities: set[bytes]) -> None:
    names = {each.strip().partition(b"=")[0] for each in abilities}
    if not {b"ls-refs", b"fetch"} <= names or b"object-format=sha256" in {each.strip() for each in abilities}:
        raise _unfit({each.strip() for each in abilities})


def of_ref(packet: bytes) -> tuple[bytes, bytes]:
    """(id, ref) of one line."""
    parts = packet.rstrip(b"\n").split(b" ")
    if len(parts) < 2:
        raise _refused(packet)
    return parts[0], parts[1]


def id_of(name: bytes) -> str:
    if not _ID.fullmatch(name) or name == _NOWHERE:
        raise damaged("a branch without the id of a commit")
    return name.decode("ascii")


def _unfit(abilities: set[bytes]) -> SourceFault:
    if b"object-format=sha256" in abilities:
        return SourceFault("NotARepository", "repositories with SHA-256 ids are not supported", "use one with SHA-1")
    return SourceFault("NotARepository", "the repository's host cannot what following takes (side-band-64k)")


def _shallow() -> SourceFault:
    return SourceFault("Unusable", "the repository is a shallow clone", "complete it with: git fetch --unshallow")


def _refused(packet: bytes | None) -> SourceFault:
    if packet is not None and packet.rstrip(b"\n") == b"shallow-info":
        return _shallow()
    if packet is not None and packet.startswith((b"ERR ", b"\3")):
        return NotGiven("Failing", "the repository's host refuses to give what it said it has")
    return damaged("another answer than git's")
