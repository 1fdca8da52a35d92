"""What is wrong on the server's machine: room on the disk and in the store, certificates that end.

Certificates of the fleet's own are made anew by `treeplane up` a month before they end, so one that is nearer to its
end tells that this does not happen.
"""

from __future__ import annotations

import base64
import binascii
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from apiserver.auth import pki
from apiserver.auth.givencertificates import GivenCertificates
from apiserver.auth.keys import Keys
from apiserver.complaints.complaint import Complaint, ComplaintBatch, ComplaintKind, said
from apiserver.model import clock
from apiserver.storage.lmdb_environment import StoreSettings
from apiserver.storage.lmdb_library import DATA

_DAY = 86400.0
_SOON = 21 * _DAY
"""Less than the month in which a certificate is made anew."""
_CA_SOON = 180 * _DAY
"""To let everybody have another CA takes longer."""
_SHARE_OF_LIFE = 0.25
"""Of one that was given: of a short one no more of its life than that is told of."""
_GIB = 1 << 30
_LITTLE = 5 * _GIB
_SHARE = 10
"""Room is little where it is less than `_LITTLE`, and less than this part of the whole."""
_STORE_SHARE = 0.9
_EMBEDDED = re.compile(rb"^\s*client-certificate-data:\s*([A-Za-z0-9+/=]+)\s*$", re.MULTILINE)
_GIVEN = {
    "--tls-cert-file": (_SOON, "put the next one there, it is read again"),
    "--client-ca-file": (
        _CA_SOON,
        "whoever has a certificate of this CA is refused from then on; put the next CA beside it, and take out one "
        "that ended",
    ),
    "--external-ca-file": (
        _CA_SOON,
        "clients check by it who answers; put the next one there, and give everybody a new kubeconfig",
    ),
}
"""How long before its end one that was given is told of, and what with."""
_START = said("treeplane", "up")


@dataclass(frozen=True, slots=True)
class MachinePlace:
    """Where a server has its files."""

    data_dir: Path
    keys_dir: Path
    given: GivenCertificates = field(default_factory=GivenCertificates)

    @property
    def store_dir(self) -> Path:
        return self.data_dir / "store"


def of_machine(place: MachinePlace, now: float) -> Iterator[ComplaintBatch]:
    yield ComplaintBatch.of(_disk(place.data_dir))
    yield ComplaintBatch.of(_store(place.store_dir))
    yield ComplaintBatch.of(_certificates(place, now))


def _disk(directory: Path) -> Iterator[Complaint]:
    try:
        found = shutil.disk_usage(directory)
    except OSError:
        return
    if found.free < min(_LITTLE, found.total // _SHARE):
        what = f"{_size(found.free)} of {_size(found.total)} are free: without room nothing is loaded and written"
        yield Complaint(ComplaintKind.DISK, str(directory), what, said("df", "-h", str(directory)))


def _store(directory: Path) -> Iterator[Complaint]:
    try:
        size, most = (directory / DATA).stat().st_size, StoreSettings().map_size
    except OSError:
        return
    if size > most * _STORE_SHARE:
        what = f"the store has {_size(size)}, and may have {_size(most)}: nothing is written beyond that"
        yield Complaint(ComplaintKind.DISK, str(directory), what, said("du", "-h", str(directory)))


def _certificates(place: MachinePlace, now: float) -> Iterator[Complaint]:
    keys = Keys(place.keys_dir)
    yield from _ending(keys.ca, _CA_SOON, now, "all clients trust it; see docs/status.md#certificate")
    for pair in (keys.server, keys.admin, keys.shard_admin, keys.syncer):
        yield from _ending(pair.certificate, _SOON, now)
    yield from _ending(place.data_dir / "admin.kubeconfig", _SOON, now)
    yield from _given(place.given, now)


def _given(given: GivenCertificates, now: float) -> Iterator[Complaint]:
    for option, file, life in given.lives():
        soon, hint = _GIVEN[option]
        soon = min(soon, _SHARE_OF_LIFE * (life.ends - life.begins))
        yield from _told(str(file), life.ends, soon, now, f"{option}: {hint}")


def _ending(file: Path, soon: float, now: float, hint: str = "") -> Iterator[Complaint]:
    """A file that is not there is nobody's."""
    try:
        ends = pki.ends(_pem(file.read_bytes()))
    except (OSError, ValueError):
        return
    yield from _told(str(file), ends, soon, now, hint)


def _told(file: str, ends: float, soon: float, now: float, hint: str) -> Iterator[Complaint]:
    if ends - now > soon:
        return
    when = f"ended at {clock.rfc3339(ends)}" if ends <= now else f"ends at {clock.rfc3339(ends)}"
    what = f"the certificate {when}: {hint or 'a server that starts makes another one'}"
    yield Complaint(ComplaintKind.CERTIFICATE, file, what, "" if hint else _START)


def _pem(content: bytes) -> bytes:
    """Of a certificate's file, or of a kubeconfig that has one in it. Raises ValueError for one that has none."""
    found = _EMBEDDED.search(content)
    if found is None:
        return content
    try:
        return base64.b64decode(found.group(1), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _size(number: int) -> str:
    return f"{number / _GIB:.1f} GiB"
