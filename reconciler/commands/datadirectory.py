"""All that is wrong now, as a server's data directory says it: for `treeplane status --data-dir`, whether or not a
server runs on it. Where none does, that comes first, with as much of why as can be known.

A module of its own, since who asks a server needs nothing of what reads a store.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from dataclasses import fields
from pathlib import Path
from urllib.parse import urlsplit

from apiserver.auth.givencertificates import GivenCertificates
from apiserver.complaints.complaint import Complaint, ComplaintBatch, ComplaintKind, Complaints, cut, said, together
from apiserver.complaints.gather import gather
from apiserver.complaints.machine import MachinePlace, of_machine
from apiserver.storage.lmdb_library import DATA
from apiserver.storage.lmdb_looking import UNREADABLE
from apiserver.stores import looking_at
from reconciler.commands.ports import holder
from reconciler.commands.servedat import ServedAt

_TAIL = 8192
"""Bytes of the log that are looked through for its last line."""
_SERVER = re.compile(rb"^\s*server:\s*(\S+)", re.MULTILINE)


def of_data_directory(data_dir: Path, keys_dir: Path) -> Complaints:
    """As its files say it. Nothing in it is changed, and a server that runs is not disturbed."""
    place, found = MachinePlace(data_dir, keys_dir, _given(data_dir)), Complaints()
    batches = [ComplaintBatch.of([] if _runs(data_dir) else [_stopped(data_dir)])]
    if not (place.store_dir / DATA).exists():
        what = "there is no store: no server has loaded anything here yet"
        batches += [_wrong_store(place, what), *of_machine(place, time.time())]
    else:
        try:
            with looking_at(place.store_dir) as view:
                found = gather(view, place)
        except UNREADABLE as error:
            batches += [_wrong_store(place, f"the store cannot be read: {error}"), *of_machine(place, time.time())]
    listed, more = together(batches)
    unseen = found.unseen if found.workspaces else ("what stands in the store",)
    return Complaints(listed + found.listed, {**found.more, **more}, unseen, found.workspaces, found.commit)


def _given(data_dir: Path) -> GivenCertificates:
    """Certificates that the server was given last, which stand elsewhere."""
    served = ServedAt.read(data_dir)
    if served is None or not isinstance(served.given, dict):
        return GivenCertificates()
    found = {each.name: served.given.get(each.name) for each in fields(GivenCertificates)}
    return GivenCertificates(**{name: Path(file) for name, file in found.items() if isinstance(file, str)})


def _wrong_store(place: MachinePlace, what: str) -> ComplaintBatch:
    return ComplaintBatch.of([Complaint(ComplaintKind.STORE, str(place.store_dir), cut(what))])


def _runs(data_dir: Path) -> bool:
    """Whether a `treeplane up` has the lock of the directory. It is asked for as one of many who may have it together,
    for a moment, so that nobody who asks at the same time is in anybody's way but a server's that starts just then."""
    try:
        handle = os.open(data_dir / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _stopped(data_dir: Path) -> Complaint:
    """As far as it can be known why."""
    parts = ["no server runs on it: nobody has its lock, and what follows is how it stood last"]
    port = _port(data_dir)
    by = holder(port) if port else None
    if by:
        parts.append(f"its port {port} is taken by {by}")
    served = ServedAt.read(data_dir)
    if served is not None and served.log and (last := _last_line(Path(served.log))):
        parts.append(f"the last line of {served.log}: {last}")
    command = said("treeplane", "up", "--data-dir", str(data_dir))
    return Complaint(ComplaintKind.STOPPED, str(data_dir), cut("; ".join(parts)), command)


def _port(data_dir: Path) -> int:
    """Where it listened last, as its kubeconfig says; 0 where that is not known."""
    try:
        found = _SERVER.search((data_dir / "admin.kubeconfig").read_bytes())
        return urlsplit(found.group(1).decode()).port or 0 if found is not None else 0
    except (OSError, ValueError):
        return 0


def _last_line(file: Path) -> str:
    try:
        with file.open("rb") as log:
            log.seek(max(0, file.stat().st_size - _TAIL))
            lines = log.read(_TAIL).decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""
