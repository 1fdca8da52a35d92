"""Drills of a fleet, as the command makes them, and what somebody may have done to a status branch before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from support.loadedfleet import LoadedFleet
from support.statusfiles import BRANCH

from reconciler.commands.drill import drill
from reconciler.drilling.freshclone import CloneAsked
from reconciler.drilling.rehearsal import KeptAside
from reconciler.drilling.result import Drill
from reconciler.repository.write import commit_tree, edit_tree, move_ref
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import RecordedFleet


def drilled(fleet: LoadedFleet, keys: Path | None = None, *, beside: KeptAside | None = None) -> Drill:
    """Of the repository that the fleet is served from; `beside`: with more than the keys."""
    return drill(CloneAsked(str(fleet.repo.path), fleet.repo.branch), beside or KeptAside(keys))


def wrong(found: Drill) -> list[tuple[str, str, tuple[str, ...]]]:
    """What came back otherwise: file, what, fields."""
    assert found.found.lost == {}
    return [(each.file, each.what, each.fields) for each in found.found.differences]


def rewritten(fleet: LoadedFleet, files: Mapping[str, bytes | None]) -> str:
    """The newest status commit with other files, as somebody makes it who edits the branch by hand."""
    repo = fleet.repo.repo
    head = repo.ref(BRANCH)
    assert head is not None
    info = repo.commit(head)
    made = commit_tree(repo, edit_tree(repo, info.tree, files), info.parents, info.message)
    move_ref(repo, BRANCH, made, head)
    return made


def recorded_files(fleet: LoadedFleet) -> dict[str, bytes]:
    """All files of the status branch, by path."""
    repo = fleet.repo.repo
    head = repo.ref(BRANCH)
    assert head is not None
    tree = repo.commit(head).tree
    found = {path: repo.entry_at(tree, path) for path in RecordedFleet(repo, head).paths()}
    return {path: repo.blob(entry.id) for path, entry in found.items() if entry is not None}


def saying(data: bytes, /, **more: object) -> bytes:
    """A file of the status branch that says something else, in the form in which it is written."""
    return format.dump({**format.load(data), **more})
