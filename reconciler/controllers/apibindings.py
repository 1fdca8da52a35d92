"""APIBindings that are made through the API where writes go to the store, and all of workspaces that are made so: what
they are bound to.

A controller of the main store. It decides as a commit's judgement does (plan/apis), from all definitions of a
workspace: what files declare keeps what it has, and what was made here gets what is left. Looked at when a binding
changes, and when what its provider offers does, which goes or moves with its workspace; and, where it keeps what it has
for objects that are there, when one of these goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import orjson

from apiserver.model import clock, conditions, marks
from apiserver.model.keys import Internal
from apiserver.model.storagenames import BINDINGS, CRDS, EXPORTS, SCHEMAS
from apiserver.registry import codec, indexes, tree
from apiserver.registry.kinds import builtins_of
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import Op, Put, Record, Store
from reconciler.controllers.controller import EVERYTHING, Controller
from reconciler.controllers.entry import Entry
from reconciler.loading import consumers
from reconciler.loading.consumers import listing, named_by_stored
from reconciler.loading.settled import SettledWorld
from reconciler.loading.statuses import complete
from reconciler.plan import apis
from reconciler.plan.apis import Apis, ServedSoFar
from reconciler.plan.bindings import BindingInShort
from reconciler.plan.exports import Bound, Export, Turn
from reconciler.plan.lessening import taken_back

Object = dict[str, Any]

_RUNTIME = marks.as_stored(marks.RUNTIME)
_STATUS = b'"status":{'


class Concerned(NamedTuple):
    """The workspace with this logical cluster name; or, `takers`, all that take something of it, or of what is or was
    at a path."""

    cluster: str
    takers: bool = False
    path: str = ""


class APIBindings(Controller[Concerned]):
    name = "apibindings"
    version = "2"
    resources = EVERYTHING | {Internal.WORKSPACE}
    shown = frozenset({BINDINGS})
    beyond = frozenset({EXPORTS, SCHEMAS})

    def __init__(self, store: Store) -> None:
        self._store = store
        self._against: dict[str, set[str]] = {}
        """By cluster the resources whose objects stand against what bindings would take."""

    def begin(self) -> None:
        """Who keeps something is looked at, which notes what stands against it."""
        self._against.clear()
        for found in self._store.indexed(indexes.KEEPING):
            self.queue.add(Concerned(found.key.cluster))

    def keys_of(self, entry: Entry) -> Iterable[Concerned]:
        cluster, resource = entry.key.cluster, entry.key.resource
        if resource == Internal.WORKSPACE:
            left = tree.places_left(entry.value, entry.previous)
            yield from (Concerned("", True, path) for path in left if self._is_looked_for(path))
            if entry.value is None and cluster in self._against:
                yield Concerned(cluster)
        elif resource in (EXPORTS, SCHEMAS):
            yield Concerned(cluster, takers=True)
        elif resource not in (BINDINGS, CRDS):
            if entry.value is None and resource in self._against.get(cluster, ()):
                yield Concerned(cluster)
        elif any(value is not None and _RUNTIME in value for value in (entry.value, entry.previous)) or _is_news(entry):
            yield Concerned(cluster)

    def _is_looked_for(self, path: str) -> bool:
        """Whether any workspace takes, or could take, what the one at a path offers. Who comes to do so later looks
        itself."""
        return tree.workspace_at(self._store, path) is not None or bool(consumers.of(self._store, path))

    def reconcile(self, key: Concerned) -> Future[list[int]] | None:
        there, record = tree.check_there(self._store, key.cluster), tree.workspace_of(self._store, key.cluster)
        if key.takers:
            for cluster in self._takers(record.path if record is not None else key.path):
                self.queue.add(Concerned(cluster))
            return None
        if record is None or record.leaves:
            self._against.pop(key.cluster, None)
            return None
        against = self._against[key.cluster] = set()
        ops = [*_Bindings(self._store, record, against).ops()]
        if not against:
            del self._against[key.cluster]
        return self._store.write(*ops, there) if ops else None

    def _takers(self, provider: str) -> Iterator[str]:
        """Of the workspace at a path, itself among them: a binding may name an export of its own workspace."""
        for path in {provider, *consumers.of(self._store, provider)} - {""}:
            found = tree.workspace_at(self._store, path)
            if found is not None:
                yield found.cluster


def _is_news(entry: Entry) -> bool:
    """Whether a binding that a type brings says something new, or nothing yet of what it is bound to: loading says that
    of one that it makes."""
    if entry.key.resource != BINDINGS or entry.value is None:
        return False
    if _STATUS not in entry.value:
        return True
    return entry.previous is not None and bool(entry.obj["spec"] != entry.before["spec"])


class _Bindings:
    """Those of one workspace, as they are stored now. `against`: gets the resources whose objects stand against what
    is offered."""

    def __init__(self, store: Store, record: WorkspaceRecord, against: set[str]) -> None:
        self._store, self._record, self._world, self._against = store, record, SettledWorld(store), against
        records = store.scan(BINDINGS, record.cluster).records
        self._found: dict[str, tuple[Record, Object]] = {r.key.name: (r, orjson.loads(r.value)) for r in records}

    def ops(self) -> Iterator[Op]:
        """What those that no file declares say by now, and whom the workspace takes from."""
        stored = [each for each in self._found.values() if self._is_ours(each[1])]
        if stored:
            statuses = self._resolved().bindings
            for record, binding in stored:
                if not binding["metadata"].get("deletionTimestamp"):
                    yield from _told(record, binding, statuses[record.key.name])
        yield from listing(self._store, self._record.path, self._listed())

    def _is_ours(self, binding: Object) -> bool:
        """Whether no commit says what it is bound to."""
        return self._record.stored or consumers.is_stored(binding)

    def _listed(self) -> frozenset[tuple[str, str]]:
        """What files declare is listed as it is: that is the loader's to say."""
        path = self._record.path
        if self._record.stored:
            said = (consumers.named(binding, path) for _, binding in self._found.values())
            return frozenset((tree.path_named(self._store, where) or where, name) for where, name in said)
        by_files = {consumers.named(b, path) for _, b in self._found.values() if not consumers.is_stored(b)}
        kept = consumers.taken(self._store, path) & by_files
        return frozenset(kept | named_by_stored(self._store, self._record.cluster, path))

    @cached_property
    def _definitions(self) -> list[Object]:
        return [orjson.loads(r.value) for r in self._store.scan(CRDS, self._record.cluster).records]

    def _resolved(self) -> Apis:
        past, keep = self._past(), dict[str, str]()
        while True:
            found = self._resolve(replace(past, keep=frozenset(keep), why=keep))
            behind = {n: why for n, turn in found.turned.items() if (why := self._wrong_with(turn)) is not None}
            if behind.keys() <= keep.keys():
                return found
            keep |= behind

    def _wrong_with(self, turn: Turn) -> str | None:
        """Why it is not taken, in words ("": the usual ones), None if it is: what is there of a kind that is offered no
        more, or that takes less, stays served as it is."""
        found = {**dict.fromkeys(turn.dropped(), ""), **dict(taken_back(turn))}
        return next((why for storage, why in found.items() if self._has_objects(storage)), None)

    def _resolve(self, past: ServedSoFar) -> Apis:
        record = self._record
        bindings = [b for _, b in self._found.values()]
        table, find, now = builtins_of(record.builtins, record.path), self._world.find_export, clock.now()
        return apis.resolve(table, self._definitions, bindings, find, record.path, now, past)

    def _past(self) -> ServedSoFar:
        statuses: Mapping[str, Object] = {name: b.get("status") or {} for name, (_, b) in self._found.items()}
        bound = {name: found for name, status in statuses.items() if (found := Bound.of(status)) is not None}
        said = {
            name: BindingInShort.of(statuses[name])
            for name, (_, b) in self._found.items()
            if not self._is_ours(b) or b["metadata"].get("deletionTimestamp")
        }
        definitions = frozenset(
            crd["metadata"]["name"]
            for crd in self._definitions
            if conditions.is_true((crd.get("status") or {}).get("conditions"), "NamesAccepted")
        )
        return ServedSoFar(definitions, bound=bound, read=self._read, said=said)

    def _read(self, named: str, bound: Bound) -> Export | None:
        path, _, name = named.rpartition(":")
        return self._world.former_export(path, name, bound)

    def _has_objects(self, storage: str) -> bool:
        """Noted before one looks, so that the end of one that is seen is not missed."""
        self._against.add(storage)
        found = bool(self._store.scan(storage, self._record.cluster, limit=1, count=False).records)
        if not found:
            self._against.discard(storage)
        return found


def _told(record: Record, binding: Object, status: Object) -> Iterator[Put]:
    """A binding with what it is by now, if that is something else."""
    status = complete(status, BINDINGS, binding, clock.now())
    before = (binding.get("status") or {}).get("conditions")
    told = {**status, "conditions": conditions.merged(before, status["conditions"])}
    value = codec.encode({**binding, "status": told})
    if value != record.value:
        yield Put(record.key, value, record.revision, record.stamp)
