"""What is against a workspace's moving to another place, with all below it.

Asked by moves. A move changes nothing else of what moves: so all that is served is in the commit as well, and one that
turns out to be held in its new place is served from there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import orjson

from apiserver.model import paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS, WORKSPACES
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Store
from reconciler.layout.compare import Touched
from reconciler.layout.source import Piece
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.leavers import Leavers
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.sources import Sources
from reconciler.loading.world import World
from reconciler.plan import system
from reconciler.rendering.request import Tool


class Move(NamedTuple):
    """Of the workspace at the path `old`, and all below it."""

    old: str
    new: str

    def of(self, path: str) -> str:
        """Where one of them is then."""
        return self.new + path[len(self.old) :]

    def takes(self, path: str) -> bool:
        return paths.is_within(path, self.old)

    def brings(self, path: str) -> bool:
        return paths.is_within(path, self.new)


class Compared(NamedTuple):
    """What a step compares: what differs, the tree that it goes to, and the uppermost of the workspaces that stay
    though their directories are gone."""

    touched: Touched
    tree: WorkspaceTree
    kept: Collection[str]

    def place(self, path: str) -> WorkspaceDir | None:
        return self.touched.places.get(path) or self.tree.find(path)


class Movable:
    """Of one step."""

    def __init__(self, store: Store, world: World, sources: Sources, served: ServedTrees, leavers: Leavers) -> None:
        self._store, self._world, self._sources = store, world, sources
        self._served, self._leavers = served, leavers

    def against(self, move: Move, at: Compared) -> str:
        """The first reason; "" if there is none. Reads the files' names of all that moves."""
        return self._against_place(move, at) or next(self._against_moving(move, at), "")

    def _against_place(self, move: Move, at: Compared) -> str:
        above = paths.parent(move.new) or ""
        parent = self._world.record(above)
        if parent is None or above in at.touched.removed:
            return f"{above} is not there yet: have it come in a commit before"
        if not parent.served or parent.leaves or parent.mounts:
            return f"nothing can be in {above}, which is not served, or is a mount"
        if self._leavers.in_the_way(move.new):
            return f"another workspace is at {move.new} or above it still"
        if self._store.get(Key(WORKSPACES, parent.cluster, "", paths.base(move.new))) is not None:
            return f"a Workspace {paths.base(move.new)} was asked for through the API in {above}"
        if move.old in system.shipped_workspaces():
            return "it ships with Treeplane"
        place = at.place(move.new)
        return next((str(each) for each in at.tree.problems(place)), "") if place is not None else ""

    def _against_moving(self, move: Move, at: Compared) -> Iterator[str]:
        if any(move.takes(path) for path in at.kept):
            yield "something in it was removed, and waits for that to be allowed"
        for path in (move.old, *tree.below(self._store, move.old)):
            record = self._world.record(path)
            why = self._against_one(record, move, at) if record is not None else ""
            if why:
                yield f"{path} {why}"

    def _against_one(self, record: WorkspaceRecord, move: Move, at: Compared) -> str:
        if record.leaves:
            return "is being deleted"
        if record.pin:
            return "is pinned: take spec.serve out in a commit before (treeplane resume)"
        if record.errors or not record.served:
            return "is held back: put it right where it is, and move it then"
        if any(map(_is_embedded, self._targets(record.cluster))):
            return "has a SyncTarget with connection.embedded, whose cluster stays where it is: delete that first"
        if record.stored:
            return ""
        before, now = self._served.of(record), at.place(move.of(record.path))
        was = self._served.place(before, record) if before is not None else None
        if before is None or was is None or now is None or record.path not in at.touched.removed:
            return "does not come along: a commit that moves a workspace changes nothing else in it"
        if not self._is_same(before, was, at.tree, now, top=record.path == move.old):
            return "is not the same there: a commit that moves a workspace changes nothing else in it"
        return ""

    def _targets(self, cluster: str) -> Iterator[bytes]:
        for resource in self._store.resources(cluster):
            if resource.partition(":")[0] == SYNC_TARGETS:
                yield from (record.value for record in self._store.scan(resource, cluster).records)

    def _is_same(
        self, before: WorkspaceTree, was: WorkspaceDir, here: WorkspaceTree, now: WorkspaceDir, *, top: bool
    ) -> bool:
        """Of the uppermost what workspace.yaml says of its name and UID makes no difference."""
        if _files(before, was) != _files(here, now) or self._made_of(before, was) != self._made_of(here, now):
            return False
        if not top:
            return was.manifest == now.manifest
        return _said(self._sources.workspace(before, was)) == _said(self._sources.workspace(here, now))

    def _made_of(self, here: WorkspaceTree, place: WorkspaceDir) -> set[tuple[str, str, str]]:
        """What its rendered directories are made of, by where that stands in the workspace, or else in the repository;
        and a chart's name, since a release is called so."""
        found: set[tuple[str, str, str]] = set()
        for each in self._sources.rendered(here, place):
            name = each.request.directory.rpartition("/")[2] if each.request.tool is Tool.HELM else ""
            inside = each.path.removeprefix(place.directory)
            found |= {(inside, path.removeprefix(place.directory), entry.id) for path, entry in each.inputs.seen}
            found.add((inside, name, ""))
        return found


def _files(here: WorkspaceTree, place: WorkspaceDir) -> dict[str, tuple[str, str]]:
    return {path.removeprefix(place.directory): (entry.id, entry.kind) for path, entry in here.files(place)}


def _said(piece: Piece | None) -> list[dict[str, Any]]:
    """What a workspace.yaml says but for the name."""
    values = [manifest.value for manifest in piece.manifests] if piece is not None else []
    return [{**value, "metadata": {**value["metadata"], "name": ""}} for value in values]


def _is_embedded(target: bytes) -> bool:
    return "embedded" in ((orjson.loads(target).get("spec") or {}).get("connection") or {})
