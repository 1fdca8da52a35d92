"""Definitions that no file declares and that are served all the same: made through the API, or on their way out.

What a commit takes away of CustomResourceDefinitions and APIBindings waits where objects of its kinds wait for their
finalizers: it is marked, gets a finalizer of its own, and is served, its names held, until the last of them is gone
(controllers/definitionlife, controllers/bindinglife). Called by phases.merging, which marks, and by resolving, which
has to know whose names are taken. A manifest builds on none of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any

import orjson

from apiserver.model import conditions, marks
from apiserver.model.keys import Key, defined
from apiserver.model.kinds import kind_of
from apiserver.model.marks import BINDING_FINALIZER, DEFINITION_FINALIZER
from apiserver.model.storagenames import BINDINGS, CRDS
from apiserver.registry import indexes, keptschemas
from apiserver.registry.claims import claims
from apiserver.registry.kinds import (
    KindTable,
    ServedKind,
    kinds_of_crd,
    kinds_of_schema,
    overlay,
    storage_of,
    workspace_builtins,
)
from apiserver.registry.tree import WorkspaceRecord, placed, put_workspace, summary
from apiserver.storage.protocol import Op, View
from reconciler.loading.consumers import is_stored
from reconciler.plan.apis import Undeclared, binding_named, definition_named
from reconciler.plan.exports import Bound, Export

Object = dict[str, Any]

ReadExport = Callable[[str, Bound], Export | None]
"""An export (`<path>:<name>`) as a binding is bound to it, None where its schemas are lost."""

FINALIZERS = {CRDS: DEFINITION_FINALIZER, BINDINGS: BINDING_FINALIZER}
"""By resource, what a definition of it has while objects of its kinds have to go first."""

DEFINITION, BINDING = "CustomResourceDefinition/", "APIBinding/"
"""Before the names of definitions in a summary."""


def label(key: Key) -> str:
    """A definition as a summary names it."""
    return f"{DEFINITION if key.resource == CRDS else BINDING}{key.name}"


def labels_of(store: View, labels: Iterable[str], cluster: str) -> list[str]:
    """What is left of those that a summary names."""
    return [label(key) for key in still_there(store, labels, cluster)]


def told_anew(store: View, record: WorkspaceRecord) -> list[Op]:
    """What takes out of a workspace's summary the definitions that have gone: that may be judged no more, where its own
    removal waits to be allowed."""
    said = summary(store, record.path)
    left = labels_of(store, said.get("ending") or (), record.cluster)
    if left == (said.get("ending") or []):
        return []
    without = {name: value for name, value in said.items() if name != "ending"}
    return [placed(record), put_workspace(record, {**without, "ending": left} if left else without)]


def still_there(store: View, labels: Iterable[str], cluster: str) -> Iterator[Key]:
    """Which of the definitions that a summary names are on their way out still."""
    for each in labels:
        prefix, slash, name = each.partition("/")
        key = Key(CRDS if prefix + slash == DEFINITION else BINDINGS, cluster, "", name)
        record = store.get(key)
        if record is not None and is_leaving(orjson.loads(record.value)):
            yield key


def reading(store: View) -> ReadExport:
    """Exports as they are bound, of a store that has all workspaces."""

    def read(named: str, bound: Bound) -> Export | None:
        path, _, name = named.rpartition(":")
        found = keptschemas.find(store, bound.refs())
        schemas = tuple(orjson.loads(each.value) for each in found if each is not None)
        return Export(path, name, bound.cluster, bound.identity, schemas) if len(schemas) == len(found) else None

    return read


def is_waiting(store: View, storage: str, cluster: str) -> bool:
    """Whether objects of a resource (as keys have it) have finalizers, so that they do not go at once."""
    return bool(store.indexed(indexes.FINALIZERS, indexes.waiting(cluster, storage), whole=True, limit=1))


def storages(resource: str, name: str, obj: Object) -> set[str]:
    """The store's names of the resources that a definition brings, as it is stored."""
    if resource == CRDS:
        return {defined(name)}
    bound: Iterable[Object] = (obj.get("status") or {}).get("boundResources") or ()
    return {storage_of(b.get("group", ""), b["resource"], b["schema"].get("identityHash", "")) for b in bound}


def is_leaving(obj: Object) -> bool:
    """Whether a commit took it away, and it waits."""
    metadata = obj["metadata"]
    mark = (metadata.get("annotations") or {}).get(marks.ORIGIN)
    return bool(metadata.get("deletionTimestamp")) and mark == marks.REMOVED


def undeclared(
    store: View, cluster: str, path: str, declared: Collection[Key], read: ReadExport
) -> Iterator[Undeclared]:
    """What holds its names in the workspace at `path`, of what is stored, when `declared` alone is declared."""
    for resource in (CRDS, BINDINGS):
        for record in store.scan(resource, cluster).records:
            if record.key not in declared:
                for found in brought(record.key, orjson.loads(record.value), path, read):
                    if not found.ends or is_waiting(store, found.storage, cluster):
                        yield found


class LeftBehind:
    """What the status branch has of a workspace's objects that wait for their end, definitions among them."""

    def __init__(self, endings: Iterable[Object], cluster: str, path: str, read: ReadExport) -> None:
        self._endings, self._path, self._read = list(endings), path, read
        self._cluster = cluster

    def objects(self, kinds: KindTable) -> dict[Key, Object]:
        """By key. `kinds`: those that are declared. Of a kind that nobody brings any more nothing can be shown."""
        found: dict[Key, Object] = {}
        brought = list(self._kinds())
        table = overlay(kinds, brought) if brought else kinds
        for obj in self._endings:
            kind = table.by_kind(*kind_of(obj))
            if kind is not None:
                found[self._key(kind, obj)] = obj
        return found

    def undeclared(self) -> list[Undeclared]:
        """What holds its names."""
        objects = self.objects(workspace_builtins())
        waiting = {key.resource for key, obj in objects.items() if obj["metadata"].get("finalizers")}
        definitions = ((key, obj) for key, obj in objects.items() if key.resource in FINALIZERS)
        found = chain.from_iterable(brought(key, obj, self._path, self._read) for key, obj in definitions)
        return [each for each in found if each.storage in waiting]

    def _kinds(self) -> Iterator[ServedKind]:
        for obj in self._endings:
            if kind_of(obj)[2] == "CustomResourceDefinition":
                yield from kinds_of_crd(obj)
            elif kind_of(obj)[2] == "APIBinding":
                export = _export(obj, self._path, self._read)
                if export is not None:
                    for schema in export.schemas:
                        yield from kinds_of_schema(schema, export.identity)

    def _key(self, kind: ServedKind, obj: Object) -> Key:
        metadata = obj["metadata"]
        return Key(kind.storage, self._cluster, metadata.get("namespace", ""), metadata["name"])


def brought(key: Key, obj: Object, path: str, read: ReadExport) -> Iterator[Undeclared]:
    """What a definition brings that no file declares; nothing, where it is not served."""
    if key.resource == CRDS:
        if conditions.is_true((obj.get("status") or {}).get("conditions"), "NamesAccepted"):
            names = claims(obj["spec"])
            yield Undeclared(definition_named(key.name), defined(key.name), names, ends=not is_stored(obj))
        return
    export = _export(obj, path, read)
    if export is not None:
        for schema in export.schemas:
            names = claims(schema["spec"])
            yield Undeclared(binding_named(key.name), export.storage(schema), names, ends=not is_stored(obj))


def _export(binding: Object, path: str, read: ReadExport) -> Export | None:
    """What a binding is bound to."""
    bound = Bound.of(binding.get("status") or {})
    reference = ((binding.get("spec") or {}).get("reference") or {}).get("export") or {}
    return read(f"{reference.get('path') or path}:{reference.get('name', '')}", bound) if bound is not None else None
