"""Packs what accumulates in a repository of our own: many small objects into one pack, many packs into few.

Called by tidying (commands) for the mirror and for the repository that the server hosts, never for a user's. Nothing is
dropped, reachable or not: what a push in its quarantine builds on, a commit that is judged and not yet the branch's, a
status that waits to be pushed need no ref. Readers and writers may be at work: an object that moves into another pack
is found there, and a process that is killed leaves at worst the same object twice. Packs are rolled up geometrically
(each at least twice as big as all smaller ones together), so what is written again follows what is new.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reconciler.repository import packindex
from reconciler.repository.command import git
from reconciler.repository.errors import RepositoryUnreadable

log = logging.getLogger(__name__)

_OBJECT = re.compile(r"[0-9a-f]{38}")
_DIRECTORY = re.compile(r"[0-9a-f]{2}")
_SPECIAL = (".keep", ".promisor", ".mtimes")
"""Beside a pack: leave it alone."""
_ABANDONED_SECONDS = 86_400.0
_GROWTH = 2
_SETTINGS = {"pack.threads": "1", "pack.windowMemory": "64m"}


@dataclass(frozen=True, slots=True)
class Load:
    """How many loose objects and packs a repository has."""

    loose: int
    packs: int


def load(git_dir: Path) -> Load:
    """Counts them: two hundred and fifty directories are listed, nothing is read."""
    return Load(sum(1 for _ in _loose(git_dir / "objects")), len(_packs(git_dir / "objects" / "pack")))


def pack(git_dir: Path) -> None:
    """Leaves no loose object that is there now, and few packs. Objects that the repository borrows stay where they are.
    Raises RepositoryUnreadable; then nothing was removed."""
    objects = git_dir / "objects"
    loose, packs = sorted(_loose(objects)), _packs(objects / "pack")
    chosen = _smallest({path: _count(path) for path in packs}, len(loose))
    if not loose and len(chosen) < 2:
        return
    made = _write(git_dir, loose, chosen)
    for name in loose:
        (objects / name[:2] / name[2:]).unlink(missing_ok=True)
    for path in chosen:
        if path != made:
            _remove(path)
    _clear(objects)


def own(git_dir: Path) -> None:
    """Has git itself leave the packing of a repository to this module, whichever way somebody pushes to it."""
    for name, value in (("gc.auto", "0"), ("receive.autogc", "false"), ("maintenance.auto", "false")):
        answer = git(git_dir, "config", name, value)
        if answer.code != 0:
            raise RepositoryUnreadable(f"{git_dir} cannot be configured ({answer.error})")


def _write(git_dir: Path, loose: Sequence[str], chosen: Sequence[Path]) -> Path:
    """One pack of these objects, on disk; its index."""
    directory = git_dir / "objects" / "pack"
    with tempfile.TemporaryFile(dir=git_dir / "objects") as names:  # there may be millions
        names.writelines(name.hex().encode() + b"\n" for name in packindex.merged(loose, chosen))
        names.seek(0)
        answer = git(git_dir, "pack-objects", "--quiet", str(directory / "pack"), given=names, settings=_SETTINGS)
    if answer.code != 0:
        raise RepositoryUnreadable(f"{git_dir} cannot be packed ({answer.error})")
    made = directory / f"pack-{answer.output.strip()}.idx"
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    if not packindex.holds(made, packindex.merged(loose, chosen)):
        raise RepositoryUnreadable(f"{git_dir} cannot be packed: {made.name} lacks objects")
    return made


def _loose(objects: Path) -> Iterator[str]:
    """The id of each."""
    for directory in objects.iterdir():
        if _DIRECTORY.fullmatch(directory.name):
            with os.scandir(directory) as found:
                yield from (directory.name + each.name for each in found if _OBJECT.fullmatch(each.name))


def _packs(directory: Path) -> list[Path]:
    """The indexes of the packs that are ours to roll up."""
    found = [path for path in directory.glob("pack-*.idx") if path.with_suffix(".pack").exists()]
    return [path for path in found if not any(path.with_suffix(mark).exists() for mark in _SPECIAL)]


def _count(index: Path) -> int:
    """Objects in a pack, by its header."""
    with index.with_suffix(".pack").open("rb") as file:
        return int.from_bytes(file.read(12)[8:], "big")


def _smallest(counts: dict[Path, int], loose: int) -> list[Path]:
    """The packs to roll up with so many loose objects: as many of the smallest as it takes for each bigger one to be at
    least twice what is before it."""
    ordered = sorted(counts, key=lambda path: counts[path])
    sums = [loose]
    for path in ordered:
        sums.append(sums[-1] + counts[path])
    for number in range(len(ordered), 0, -1):
        if counts[ordered[number - 1]] < _GROWTH * sums[number - 1]:
            return ordered[:number]
    return []


def _remove(index: Path) -> None:
    """The index first: without it nobody looks for the pack."""
    for name in ("multi-pack-index", index.name):
        (index.parent / name).unlink(missing_ok=True)
    for path in index.parent.glob(f"{index.stem}.*"):
        path.unlink(missing_ok=True)


def _clear(objects: Path) -> None:
    """What processes that were killed left half written, a day ago and more."""
    before = time.time() - _ABANDONED_SECONDS
    patterns = ("pack/tmp_*", "pack/.tmp-*", "tmp_objdir-*", "??/tmp_obj_*")
    for path in (found for pattern in patterns for found in objects.glob(pattern)):
        try:
            if path.stat().st_mtime < before:
                log.info("removing %s, which a process that was killed left", path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        except FileNotFoundError:
            continue
