"""What goes into a backup of a data directory: all of its keys, of its store what neither git nor the status branch
knows, of its mirror what the repository does not have, and the repository itself where the server hosts it. Nothing in
it is changed, whether or not a server runs.

Called by `treeplane backup`. Which server this is (`installation`) is left out: what a backup is brought to life as is
another one.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from apiserver.auth.files import locked
from apiserver.auth.keys import KeysError
from apiserver.model import clock
from apiserver.registry import tree
from apiserver.storage.lmdb_library import DATA
from apiserver.storage.protocol import View
from apiserver.stores import looking_at
from reconciler.loading.unrecorded import Unrecorded
from reconciler.saving import hosted, unpushed
from reconciler.saving.archive import FACTS, KEYS, MIRROR, REPOSITORY, STORE, VERSION, ArchiveEntry
from reconciler.saving.lines import pieces

_PIECE = 32 << 20
"""Bytes of a file."""


@dataclass(slots=True)
class Saved:
    """What a backup has by now. `bare`: there is no store yet. `unpushed`: bytes of what the repository lacks;
    `repository`: of the repository itself. `hosts`: whether the server is the place of it."""

    keys: list[str] = field(default_factory=list)
    pieces: int = 0
    unpushed: int = 0
    repository: int = 0
    hosts: bool = False
    commit: str = ""
    bare: bool = False


def entries(
    data_dir: Path, keys_dir: Path, now: float, saved: Saved, *, repository: bool = True
) -> Iterator[ArchiveEntry]:
    """`repository`: whether with the one that is hosted. Raises OSError and one of lmdb_looking.UNREADABLE; KeysError
    where there are no keys; RepositoryUnreadable."""
    if not (keys_dir / "ca.key").exists():
        raise KeysError(f"{keys_dir} has no ca.key: it is not the keys of a server")
    store = data_dir / "store"
    if (store / DATA).exists():
        with looking_at(store) as view:
            yield from _all(view, keys_dir, now, saved)
        yield from _unpushed(data_dir, now, saved)  # after the store, so that no record is older than what was in it
    else:
        saved.bare = True
        yield _facts("", "", now)
        yield from _keys(keys_dir, saved)
    git_dir = hosted.hosted(data_dir)
    saved.hosts = git_dir is not None
    if git_dir is not None and repository:  # last: it has what all of the above goes on from
        yield from _repository(git_dir, saved)


def _all(view: View, keys_dir: Path, now: float, saved: Saved) -> Iterator[ArchiveEntry]:
    fleet = tree.fleet(view)
    saved.commit = fleet.commit.id
    yield _facts(fleet.fleet, fleet.commit.id, now)
    yield from _keys(keys_dir, saved)
    for content in pieces(Unrecorded(view).everything()):
        saved.pieces += 1
        yield ArchiveEntry(f"{STORE}/{saved.pieces:06}.jsonl", content)


def _unpushed(data_dir: Path, now: float, saved: Saved) -> Iterator[ArchiveEntry]:
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        file = Path(scratch) / unpushed.UNPUSHED
        if unpushed.saved(data_dir, now, file):
            saved.unpushed = file.stat().st_size
            yield from _in_pieces(file, MIRROR)


def _repository(git_dir: Path, saved: Saved) -> Iterator[ArchiveEntry]:
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        file = Path(scratch) / hosted.BUNDLE
        if hosted.saved(git_dir, file):
            saved.repository = file.stat().st_size
            yield from _in_pieces(file, REPOSITORY)


def _in_pieces(file: Path, where: str) -> Iterator[ArchiveEntry]:
    with file.open("rb") as source:
        for number, piece in enumerate(iter(lambda: source.read(_PIECE), b""), 1):
            yield ArchiveEntry(f"{where}/{number:06}", piece)


def _facts(fleet: str, commit: str, now: float) -> ArchiveEntry:
    found = {"version": VERSION, "made": clock.rfc3339(now), "fleet": fleet, "served": commit}
    return ArchiveEntry(FACTS, orjson.dumps(found))


def _keys(keys_dir: Path, saved: Saved) -> Iterator[ArchiveEntry]:
    """All as it is at one moment, as far as the server makes them; of what somebody else puts there just now, what was
    there."""
    with locked(keys_dir):
        found = [*_files(keys_dir)]
    for name, content in found:
        saved.keys.append(name)
        yield ArchiveEntry(f"{KEYS}/{name}", content)


def _files(keys_dir: Path) -> Iterator[tuple[str, bytes]]:
    for at, folders, names in os.walk(keys_dir):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            file = Path(at, name)
            if name.startswith(".") or name.endswith(".new") or not file.is_file():
                continue
            try:
                content = file.read_bytes()
            except FileNotFoundError:  # taken away just now
                continue
            yield file.relative_to(keys_dir).as_posix(), content
