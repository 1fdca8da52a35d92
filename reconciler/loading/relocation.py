"""A workspace that moves, with all below it, as the store has it: in one transaction, so that it is in one place at any
time.

Called by steps, before anybody is judged. Logical clusters stay, and with them every key but that of the uppermost
Workspace, which is its parent's. Rows go from path to path. The two objects that stand for a workspace say where it is;
what its files declare is written when it is judged in its new place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from apiserver.model import marks, paths
from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.model.storagenames import SCHEMAS, WORKSPACES
from apiserver.model.tables import Table
from apiserver.registry import codec, tree
from apiserver.registry.keptschemas import keeping
from apiserver.registry.tree import WorkspaceRecord, placed, put_workspace
from apiserver.storage.protocol import NEVER, Conflict, Delete, DeleteRow, Op, Put, Store
from reconciler.loading import consumers
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.clusterobject import cluster_key
from reconciler.loading.followers import Followers, OfTypes
from reconciler.loading.movable import Move
from reconciler.loading.step import Carry
from reconciler.loading.world import World

Object = dict[str, Any]

_RETRIES = 20


class Relocation(NamedTuple):
    """`at`: the commit that has them in their new places; `directory`: finds where one stands there; `of_types`: the
    workspaces of types."""

    store: Store
    at: CommitRef
    directory: Callable[[str], str]
    of_types: OfTypes
    carry: Carry

    def take(self, moves: Iterable[Move], world: World, done: ChangeSet) -> dict[str, str]:
        """What moved, by old path the new one; `done` says so. The world of the step knows of it."""
        found: dict[str, str] = {}
        for move in moves:
            places = self._take(move)
            world.refresh()
            done.moves[move.old] = move.new
            for old, new in places.items():
                world.gone(old)
                done.moved(new)
            found |= places
        return found

    def _take(self, move: Move) -> dict[str, str]:
        moved = {path: move.of(path) for path in (move.old, *tree.below(self.store, move.old))}
        self.carry(moved)
        for _ in range(_RETRIES):
            try:
                self.store.write(*self._ops(move, moved)).result()
                return moved
            except Conflict:
                continue
        raise RuntimeError(f"workspace {move.old} is written to so often that it cannot be moved")

    def _ops(self, move: Move, moved: Mapping[str, str]) -> Iterator[Op]:
        followers = Followers.of(self.store, moved, self.of_types)
        yield from followers.ops()
        for old, new in moved.items():
            before = tree.workspace_at(self.store, old)
            if before is not None:
                after = self._record(before, new)
                yield from self._rows(before, after, followers)
                yield from self._logical_cluster(move, after)
                yield from self._kept_schemas(before)
                yield placed(after)
        yield from self._workspace(move)

    def _record(self, before: WorkspaceRecord, new: str) -> WorkspaceRecord:
        after = replace(before, path=new, parent=paths.parent(new) or "")
        return after if before.stored else replace(after, directory=self.directory(new), head=self.at)

    def _rows(self, before: WorkspaceRecord, after: WorkspaceRecord, followers: Followers) -> Iterator[Op]:
        known = tree.summary(self.store, before.path)
        if not before.stored:
            known |= followers.said(before, known)
            first = known.pop("first", before.path)
            known |= {"first": first} if first != after.path else {}
        yield DeleteRow(Table.WORKSPACES, before.path)
        yield put_workspace(after, known)
        yield from tree.relisted(before, after)
        if before.stored:
            yield tree.untyped(before)
            yield tree.typed(after)
        # It takes from itself where it is; from others it takes what it names, wherever they are by now.
        taken = consumers.taken(self.store, before.path)
        yield from consumers.listing(self.store, before.path, ())
        mine = {(after.path if path == before.path else path, name) for path, name in taken}
        yield from consumers.listing(self.store, after.path, mine)

    def _kept_schemas(self, before: WorkspaceRecord) -> Iterator[Op]:
        """Who is bound to an export by its path is served as if that had gone."""
        if self.store.count(SCHEMAS, before.cluster):
            yield from keeping(self.store, self.store.scan(SCHEMAS, before.cluster).records)

    def _logical_cluster(self, move: Move, after: WorkspaceRecord) -> Iterator[Op]:
        found = self.store.get(cluster_key(after))
        if found is None:
            return
        obj: Object = orjson.loads(found.value)
        annotations = {**(obj["metadata"].get("annotations") or {}), marks.PATH: after.path}
        obj["metadata"] = {**obj["metadata"], "annotations": annotations}
        owner = (obj.get("spec") or {}).get("owner")
        if owner is not None and after.path == move.new:
            said = {"name": paths.base(move.new), "cluster": self._parent(move.new).cluster}
            obj["spec"] = {**obj["spec"], "owner": {**owner, **said}}
        yield Put(found.key, codec.encode(obj), found.revision, found.stamp)

    def _workspace(self, move: Move) -> Iterator[Op]:
        """The one object that stands elsewhere then, as it is."""
        old = Key(WORKSPACES, self._parent(move.old).cluster, "", paths.base(move.old))
        found = self.store.get(old)
        if found is None:
            return
        above = self._parent(move.new).cluster
        new = Key(WORKSPACES, above, "", paths.base(move.new))
        obj: Object = orjson.loads(found.value)
        annotations = {**(obj["metadata"].get("annotations") or {}), marks.CLUSTER: above}
        obj["metadata"] = {**obj["metadata"], "name": new.name, "annotations": annotations}
        yield Delete(old, found.revision)
        yield Put(new, codec.encode(obj), NEVER, found.stamp)

    def _parent(self, path: str) -> WorkspaceRecord:
        found = tree.workspace_at(self.store, paths.parent(path) or "")
        assert found is not None
        return found
