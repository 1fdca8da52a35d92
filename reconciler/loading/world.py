"""The rest of the fleet as one workspace's judgement sees it: other workspaces' records, exports and types.

Answers are those of the commit that is being stepped to. A workspace that waits to be judged in the same step is judged
first: who asks for it is put off (Waits). Where two ask for each other, or a parent for its child, one of them has to
be judged before the other is: what the other offers is read from its manifests then (offers), and who relied on that
is judged again once it is settled.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import orjson

from apiserver.model import marks, paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, EXPORTS, SCHEMAS, SHARDS, TYPES
from apiserver.model.tables import Table
from apiserver.registry import keptschemas, shards, tree
from apiserver.registry import workspacetypes as types
from apiserver.registry.boundresources import SchemaRef
from apiserver.registry.codec import dump
from apiserver.registry.exportspec import offered_schemas
from apiserver.registry.objects import Objects
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Store
from reconciler.loading import consumers
from reconciler.loading.offers import Offers
from reconciler.plan import system, widening
from reconciler.plan.exports import Bound, Export, Turn

PROVIDED = frozenset({EXPORTS, SCHEMAS, TYPES, SHARDS})
"""A change to one of these concerns other workspaces."""


FindSchema = Callable[[str], dict[str, Any] | None]
"""An APIResourceSchema by its name."""


class Waits(Exception):
    """The workspace at `path` has to be judged before the one that asked for it."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class PutOff(Exception):
    """The workspace at `path` waits for its turn, and who asks for it has to wait with it (overtaking)."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class TakesTurns(Protocol):
    """Whose turn it is to be judged."""

    def settled(self, path: str) -> bool:
        """Whether what the workspace provides is what the store says. False: it is being judged itself, so its
        manifests have to tell. Raises Waits where it is to be judged first, PutOff where that is not done now."""

    def offers(self, path: str) -> Offers:
        """What it provides as its manifests say."""


class World:
    """What is read of the store is remembered for one step. `empty`: the store holds no workspace when it begins.

    `builds_on_files`: what was made through the API alone provides nothing, since a clone would not have it.
    """

    builds_on_files = True

    def __init__(self, store: Store, turns: TakesTurns, *, empty: bool = False) -> None:
        self.store = store
        self._empty = empty
        self._objects = Objects(store)
        self._turns = turns
        self._judged: set[str] = set()
        self._again: set[str] = set()
        """Of which the store may have something from this step."""
        self._records: dict[str, WorkspaceRecord | bytes | None] = {}
        """Of those that are judged and whose record the store does not say yet, or that are gone; of some as the row
        that says it."""
        self._before: dict[str, WorkspaceRecord] = {}
        self._read: dict[str, WorkspaceRecord | None] = {}
        self._exports: dict[tuple[str, str], Export | None] = {}
        self._former: dict[tuple[str, str, Bound], Export | None] = {}
        self._alike: dict[tuple[str, str, Bound, Bound], bool] = {}
        self._types: dict[tuple[str, str], dict[str, Any] | None] = {}
        self._resolved: dict[tuple[Any, ...], types.ResolvedType] = {}
        self._shards: list[dict[str, Any]] | None = None
        self._chosen: dict[bytes, str] = {}

    def record(self, path: str) -> WorkspaceRecord | None:
        if path in self._records:
            found = self._records[path]
            if isinstance(found, bytes):
                found = self._records[path] = WorkspaceRecord.decode(path, found)
            return found
        if path not in self._read:
            self._read[path] = tree.workspace_at(self.store, path)
        return self._read[path]

    def standing(self, path: str) -> WorkspaceRecord | None:
        """The record of a workspace whose turn it is. Nobody else's: who asks for those shall read of them, also where
        there is nothing to read (`inpart` listens)."""
        if self._empty and path not in self._judged and path not in self._again:
            return None
        return self.record(path)

    def moved(self, record: WorkspaceRecord) -> None:
        """Note what the current step made of a workspace, before the store shows it."""
        before = self._read.pop(record.path, None)
        if before is not None:
            self._before.setdefault(record.path, before)
        self._records[record.path] = record
        self._judged.add(record.path)

    def appeared(self, rows: Sequence[tuple[str, bytes]]) -> None:
        """The same of workspaces that are new, by the rows that are written."""
        self._records.update(rows)
        for path, _ in rows:
            self._read.pop(path, None)
            self._judged.add(path)

    def written(self, path: str) -> None:
        """The store has what the step made of the workspace: whoever asks reads it there."""
        self._records.pop(path, None)

    def before(self, path: str) -> WorkspaceRecord | None:
        """A workspace as it was when the current step began."""
        return self._before.get(path) or self.record(path)

    def is_judged(self, path: str) -> bool:
        """Whether the current step is past this workspace."""
        return path in self._judged

    def forget(self, path: str) -> None:
        """Read the workspace's record from the store again."""
        self._records.pop(path, None)
        self._read.pop(path, None)
        self._judged.discard(path)
        self._again.add(path)

    def refresh(self) -> None:
        """Read again what the store says: another step wrote to it."""
        self._objects = Objects(self.store)
        for known in (self._read, self._exports, self._former, self._alike, self._types, self._resolved):
            known.clear()
        self._forget_shards()

    def gone(self, path: str) -> None:
        self._records[path] = None
        self._judged.add(path)

    def provides_anew(self, path: str) -> None:
        """Forget what was read of a workspace whose exports, schemas or types changed."""
        self._exports = {k: v for k, v in self._exports.items() if k[0] != path}
        self._former = {k: v for k, v in self._former.items() if k[0] != path}
        self._alike = {k: v for k, v in self._alike.items() if k[0] != path}
        self._types = {k: v for k, v in self._types.items() if k[0] != path}
        self._resolved.clear()
        if path == paths.ROOT:
            self._forget_shards()

    def _forget_shards(self) -> None:
        self._shards = None
        self._chosen.clear()

    def type_of(
        self, workspace: dict[str, Any] | None, path: str, former: types.TypeRef | None = None
    ) -> types.ResolvedType:
        """The type of the workspace at `path`, whose manifest says `workspace`; `former`: that it has already. Siblings
        that say the same have the same."""
        parent = paths.parent(path)
        above = self.record(parent) if parent is not None else None
        at = (parent, above.type if above is not None else "", types.wanted(workspace), former)
        found = self._resolved.get(at)
        if found is None:
            ref = types.TypeRef.parse(above.type) if above is not None else None
            found = types.resolve(workspace, path, ref, self.find_type, former)
            if not found.error and parent is not None:  # nobody stands above `root`, which would ask for itself
                found = types.with_programs(found, self.find_type, self.cluster_of)
            self._resolved[at] = found
        return found

    def files_of(self, path: str) -> Offers:
        """What a workspace provides as its manifests say, whatever became of them."""
        return self._turns.offers(path)

    def cluster_of(self, path: str) -> str:
        """A workspace's logical cluster name; "" where there is none."""
        record = self.record(path)
        return record.cluster if record is not None else ""

    def find_type(self, path: str, name: str) -> dict[str, Any] | None:
        """A WorkspaceType. Those that ship are there whatever the workspace root holds."""
        if not self._turns.settled(path):
            return self._turns.offers(path).type(name) or system.workspace_type(path, name)
        at = (path, name)
        if at not in self._types:
            self._types[at] = self._stored_type(path, name)
        return self._types[at]

    def _stored_type(self, path: str, name: str) -> dict[str, Any] | None:
        return self._object(path, TYPES, name) or system.workspace_type(path, name)

    def shard_of(self, workspace: dict[str, Any] | None) -> str:
        """The Shard that a new workspace is on, whose manifest says `workspace`; shards.NONE if none takes it."""
        selector = shards.selector_of(workspace)
        at = dump(selector) if selector is not None else b""  # as most say nothing
        found = self._chosen.get(at)
        if found is not None:
            return found
        if not self._turns.settled(paths.ROOT):
            return shards.chosen(selector, self._turns.offers(paths.ROOT).shards())
        if self._shards is None:
            self._shards = self._read_shards()
        found = self._chosen[at] = shards.chosen(selector, self._shards)
        return found

    def _read_shards(self) -> list[dict[str, Any]]:
        """Those that ship are there whatever the workspace root holds."""
        root = self.record(paths.ROOT)
        if root is None or not root.served:
            return [system.shard()]
        found = [orjson.loads(record.value) for record in self.store.scan(SHARDS, root.cluster).records]
        return [_as_it_ships(shard) for shard in found] if self.builds_on_files else found

    def find_export(self, path: str, name: str) -> Export | None:
        """An APIExport with its schemas, at its provider's served commit."""
        if not self._turns.settled(path):
            return self._turns.offers(path).export(name)
        at = (path, name)
        if at not in self._exports:
            self._exports[at] = self._read_export(path, name)
        return self._exports[at]

    def former_export(self, path: str, name: str, bound: Bound, own: FindSchema | None = None) -> Export | None:
        """An APIExport as a binding is served with it, whatever became of it; None where its schemas are lost. `own`:
        finds schemas of the workspace that is being judged, if that is the provider."""
        if own is not None or not self._turns.settled(path):
            return self._read_former(path, name, bound, own or self._turns.offers(path).schema)
        at = (path, name, bound)
        if at not in self._former:
            self._former[at] = self._read_former(path, name, bound, lambda _: None)
        return self._former[at]

    def _read_former(self, path: str, name: str, bound: Bound, otherwise: FindSchema) -> Export | None:
        found = [self._as_recorded(ref) or _if_meant(ref, otherwise(ref.name)) for ref in bound.refs()]
        schemas = tuple(schema for schema in found if schema is not None)
        return Export(path, name, bound.cluster, bound.identity, schemas) if len(schemas) == len(found) else None

    def leaves_alone(self, turn: Turn) -> bool:
        """Whether a binding's turn makes no difference to objects (plan/widening). Many consumers turn alike."""
        at = (turn.export.path, turn.export.name, Bound.to(turn.former), Bound.to(turn.export))
        if at not in self._alike:
            self._alike[at] = widening.leaves_alone(turn)
        return self._alike[at]

    def consumers(self, path: str) -> list[str]:
        """The workspaces with a binding to an export of the workspace at `path`."""
        return consumers.of(self.store, path)

    def sources(self, path: str) -> set[str]:
        """The other workspaces from which that at `path` has its type or takes an API, as all are stored."""
        record = self.record(path)
        if record is None:
            return set()
        found = types.sources(types.TypeRef.parse(record.type), lambda at, name: self._object(at, TYPES, name))
        for binding in self.store.scan(BINDINGS, record.cluster).records:
            found.add(orjson.loads(binding.value)["spec"]["reference"]["export"].get("path") or path)
        return found - {path}

    def of_types(self, changed: Collection[tuple[str, str]]) -> list[str]:
        """The workspaces that follow from one of these types. Reads all records."""
        follows = self.follows_types(changed)
        records = (WorkspaceRecord.decode(*row) for row in rows(self.store, Table.WORKSPACES))
        return [record.path for record in records if follows(record)]

    def follows_types(self, changed: Collection[tuple[str, str]]) -> Callable[[WorkspaceRecord], bool]:
        """Whether a workspace has one of these types (path, name), or one that extends it, or has errors, since then it
        may wait for one. Types are taken as they are stored: one that is to be judged yet has its followers looked at
        when it is written."""
        concerned: dict[str, bool] = {}

        def follows(record: WorkspaceRecord) -> bool:
            if record.type not in concerned:
                ref = types.TypeRef.parse(record.type)
                concerned[record.type] = any(types.extends(ref, each, self._stored_type) for each in changed)
            return bool(record.errors) or concerned[record.type]

        return follows

    def _object(self, path: str, resource: str, name: str) -> dict[str, Any] | None:
        record = self.record(path)
        if record is None or not record.served or (record.stored and self.builds_on_files):
            return None
        found = self._objects.get(Key(resource, record.cluster, "", name))
        return None if found is not None and self.builds_on_files and consumers.is_stored(found) else found

    def _read_export(self, path: str, name: str) -> Export | None:
        export = self._object(path, EXPORTS, name)
        record = self.record(path)
        if export is None or record is None:
            return None
        identity = (export.get("status") or {}).get("identityHash", "")
        found = {each: self._object(path, SCHEMAS, each) for each in offered_schemas(export)}
        return Export.of(path, record.cluster, export, identity, found)

    def _as_recorded(self, ref: SchemaRef) -> dict[str, Any] | None:
        [found] = keptschemas.find(self.store, [ref])
        return orjson.loads(found.value) if found is not None else None


def _if_meant(ref: SchemaRef, schema: dict[str, Any] | None) -> dict[str, Any] | None:
    return schema if schema is not None and ref.is_of(schema) else None


def _as_it_ships(shard: dict[str, Any]) -> dict[str, Any]:
    """The Shard that ships without what was said of it through the API, which no clone has."""
    ships = (shard["metadata"].get("annotations") or {}).get(marks.ORIGIN) == marks.SYSTEM
    return system.shard() if ships else shard
