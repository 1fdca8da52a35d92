"""Which kinds a workspace serves: the built-in ones, those of its established CRDs, and those that it binds.

Called for every API request, so it is cheap where nothing changed: one comparison with the revision of marked resources
in the workspace, and in each whose APIs it binds. After a change there its definitions are looked up again when it is
next asked for; the same ones give the same table. Changes elsewhere cost it nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any

import orjson

from apiserver.model import conditions
from apiserver.model.storagenames import BINDINGS, CRDS, SCHEMAS
from apiserver.registry.boundresources import SchemaRef, ending
from apiserver.registry.keptschemas import find
from apiserver.registry.kinds import KindTable, ServedKind, builtins_of, kinds_of_crd, kinds_of_schema, overlay
from apiserver.registry.tree import workspace_of
from apiserver.storage.protocol import Record, Store, View

MARKED = frozenset({CRDS, BINDINGS, SCHEMAS})
"""Resources whose changes a store must count in `marked()` for catalogs to notice them."""

_KEEP = 20_000

Object = dict[str, Any]


Bind = Callable[[ServedKind, str], ServedKind]
"""A kind as the workspace with that logical cluster name serves it."""


def _as_it_is(kind: ServedKind, cluster: str) -> ServedKind:  # noqa: ARG001
    return kind


@dataclass(frozen=True, slots=True)
class _Entry:
    """What was found when these workspaces, itself and its providers, were last `marked` at these revisions; `seen` are
    the revisions of what it was made of."""

    marked: tuple[tuple[str, int], ...]
    seen: tuple[int, ...]
    table: KindTable


class Catalog:
    """Of one store. Safe from every thread; one per process is enough."""

    def __init__(self, store: Store, builtins: KindTable | None = None, bind: Bind = _as_it_is) -> None:
        """`builtins`: what is there without definitions, everywhere in the store (an embedded target's); None: what the
        record of each workspace says. `bind`: gives kinds that webhooks convert their webhook."""
        self._store = store
        self._builtins = builtins
        self._bind = bind
        self._entries: dict[str, _Entry] = {}
        self._lock = Lock()

    def kinds(self, cluster: str) -> KindTable:
        """Of the workspace with this logical cluster name, as of the store's last revision or later."""
        entry = self._entries.get(cluster)
        if entry is not None and all(self._store.marked(each) == marked for each, marked in entry.marked):
            return entry.table
        with self._store.view() as view:
            found = _definitions(view, cluster)
        if entry is not None and entry.seen == found.seen:
            table = entry.table
        else:
            table = overlay(self.builtins(cluster), [self._bind(kind, cluster) for kind in _kinds(found)])
        with self._lock:
            if len(self._entries) >= _KEEP:
                self._entries.clear()
            self._entries[cluster] = _Entry(found.marked, found.seen, table)
        return table

    def builtins(self, cluster: str) -> KindTable:
        """What is there without definitions. A workspace's type, and so this, never changes."""
        if self._builtins is not None:
            return self._builtins
        record = workspace_of(self._store, cluster)
        return builtins_of(record.builtins, record.path) if record is not None else builtins_of("", "")


@dataclass(frozen=True, slots=True)
class _Definitions:
    """What a workspace's own kinds come from: CRDs, and schemas with the identity hash that they are bound with.
    `marked`, `seen`: see _Entry."""

    marked: tuple[tuple[str, int], ...]
    seen: tuple[int, ...]
    crds: list[Record]
    schemas: list[tuple[Record | None, str]]
    ending: frozenset[str]


def _definitions(view: View, cluster: str) -> _Definitions:
    crds, bindings = view.scan(CRDS, cluster).records, view.scan(BINDINGS, cluster).records
    objects = [orjson.loads(record.value) for record in bindings]
    statuses = [binding.get("status") or {} for binding in objects]
    schemas = list(_bound(view, statuses))
    providers = {status.get("apiExportClusterName") or cluster for status in statuses} - {cluster}
    seen = [r.revision for r in crds], [r.revision for r in bindings], [r.revision if r else 0 for r, _ in schemas]
    return _Definitions(
        tuple((each, view.marked(each)) for each in (cluster, *sorted(providers))),
        (*seen[0], 0, *seen[1], 0, *seen[2]),
        crds,
        schemas,
        frozenset(each.storage for each in ending(objects)),
    )


def _kinds(found: _Definitions) -> list[ServedKind]:
    kinds: list[ServedKind] = []
    for record in found.crds:
        crd = orjson.loads(record.value)
        if conditions.is_true((crd.get("status") or {}).get("conditions"), "Established"):
            made = kinds_of_crd(crd)
            kinds += map(_ending, made) if crd["metadata"].get("deletionTimestamp") else made
    for schema, identity in found.schemas:
        if schema is not None:
            made = kinds_of_schema(orjson.loads(schema.value), identity)
            kinds += [_ending(kind) if kind.storage in found.ending else kind for kind in made]
    return kinds


@lru_cache(256)
def _ending(kind: ServedKind) -> ServedKind:
    """Of a definition that is being deleted."""
    return replace(kind, verbs=kind.verbs - {"create"}, ending=True)


def _bound(view: View, bindings: list[Object]) -> Iterator[tuple[Record | None, str]]:
    """The APIResourceSchema of each bound resource, with the identity hash under which its objects are stored.
    `bindings`: their statuses."""
    named: list[SchemaRef] = []
    identities = []
    for status in bindings:
        provider = status.get("apiExportClusterName") or ""
        for resource in status.get("boundResources") or ():
            schema = resource.get("schema") or {}
            named.append(SchemaRef(provider, schema.get("name", ""), schema.get("UID", "")))
            identities.append(schema.get("identityHash", ""))
    return zip(find(view, named), identities, strict=True)
