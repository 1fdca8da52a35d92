"""What the provider of an APIExport may see of its consumers: the resources that they bind, and the claims they accept.

Asked by the provider's view (endpoints/provider) for each request. Consumers are found by an index, so it costs what
there are of them, and of one consumer what it binds. A binding counts as long as it is there and bound, on its way out
too, since its provider may hold finalizers; and only of the identity that the export has: another export of the same
name is nobody's yet.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, EXPORTS, SCHEMAS
from apiserver.registry import indexes
from apiserver.registry.exportspec import offered
from apiserver.registry.kinds import storage_of
from apiserver.registry.permissionclaims import Claimed, ClaimGrant, grants
from apiserver.storage.protocol import Record, Store, View

Object = dict[str, Any]

DECIDING = frozenset({BINDINGS, EXPORTS})
"""Resources whose objects decide who sees what."""
_PAGE = 1000
_KNOWN = 16


class SharedExport(NamedTuple):
    """An APIExport `obj` of the logical cluster `cluster`, as it is stored at a revision."""

    cluster: str
    obj: Object
    revision: int

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def key(self) -> Key:
        return Key(EXPORTS, self.cluster, "", self.name)

    @property
    def identity(self) -> str:
        return str((self.obj.get("status") or {}).get("identityHash", ""))

    def storages(self) -> frozenset[str]:
        """The store's names of what it offers."""
        return frozenset(storage_of(*each.resource, self.identity) for each in offered(self.obj) if self.identity)


@dataclass(frozen=True, slots=True)
class Consumer:
    """`bindings`: the names of its APIBindings to the export; `bound`: the store's names of what they brought;
    `grants`: what they grant besides."""

    bindings: frozenset[str]
    bound: frozenset[str]
    grants: Mapping[Claimed, ClaimGrant]


def shared_export(store: View, cluster: str, name: str) -> SharedExport | None:
    record = store.get(Key(EXPORTS, cluster, "", name))
    return SharedExport(cluster, orjson.loads(record.value), record.revision) if record is not None else None


def consumer(store: View, export: SharedExport, cluster: str) -> Consumer | None:
    """The workspace with that logical cluster name as the provider may see it; None if it is no consumer."""
    return consumer_by(export, (orjson.loads(r.value) for r in store.scan(BINDINGS, cluster).records))


def consumers(store: View, export: SharedExport) -> dict[str, Consumer]:
    """All of them, by logical cluster name, sorted."""
    found: dict[str, list[Object]] = {}
    after = None
    term = indexes.taken(export.cluster, export.name)
    while True:
        page = store.indexed(indexes.TAKEN, term, whole=True, after=after, limit=_PAGE)
        for record in store.get_many([entry.key for entry in page]):
            if record is not None:
                found.setdefault(record.key.cluster, []).append(orjson.loads(record.value))
        if len(page) < _PAGE:
            break
        after = page[-1]
    known = ((cluster, consumer_by(export, bindings)) for cluster, bindings in sorted(found.items()))
    return {cluster: each for cluster, each in known if each is not None}


class KnownConsumers:
    """Remembers the consumers of the exports that are asked about most, until a binding changes somewhere."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: OrderedDict[Key, tuple[int, int, dict[str, Consumer]]] = OrderedDict()

    def of(self, export: SharedExport) -> dict[str, Consumer]:
        """As `consumers`; the caller's to change."""
        at = self._store.marked(), export.revision
        known = self._found.get(export.key)
        if known is None or known[:2] != at:
            known = self._found[export.key] = (*at, consumers(self._store, export))
        self._found.move_to_end(export.key)
        if len(self._found) > _KNOWN:
            self._found.popitem(last=False)
        return dict(known[2])


def consumer_by(export: SharedExport, bindings: Iterable[Object]) -> Consumer | None:
    """What a workspace with these APIBindings is to the export's provider."""
    ours = [binding for binding in bindings if is_bound(binding, export)]
    if not ours:
        return None
    granted: dict[Claimed, ClaimGrant] = {}
    for binding in ours:
        for grant in grants(export.obj, binding):
            granted.setdefault(grant.claimed, grant)
    bound = frozenset(name for binding in ours for name in _storages(binding))
    return Consumer(frozenset(b["metadata"]["name"] for b in ours), bound, granted)


def is_bound(binding: Object, export: SharedExport) -> bool:
    status, named = binding.get("status") or {}, binding["spec"]["reference"].get("export") or {}
    if status.get("phase") != "Bound" or status.get("apiExportClusterName") != export.cluster:
        return False
    if named.get("name") != export.name:
        return False
    return all(each["schema"].get("identityHash") == export.identity for each in status.get("boundResources") or ())


def _storages(binding: Object) -> Iterable[str]:
    for each in binding["status"].get("boundResources") or ():
        yield storage_of(each["group"], each["resource"], each["schema"]["identityHash"])


def schemas(store: View, export: SharedExport) -> list[Object]:
    """The APIResourceSchemas that it offers, those that are there."""
    keys = [Key(SCHEMAS, export.cluster, "", each.schema) for each in offered(export.obj)]
    found: list[Record | None] = store.get_many(keys) if keys else []
    return [orjson.loads(record.value) for record in found if record is not None]


def exports_by_identity(store: View, identity: str) -> list[SharedExport]:
    """Those that have it: of one owner, who holds its key."""
    entries = store.indexed(indexes.IDENTITIES, identity, whole=True)
    found = (shared_export(store, entry.key.cluster, entry.key.name) for entry in entries)
    return [export for export in found if export is not None]


def schemas_by_identity(store: View, claimed: Claimed) -> list[Object]:
    """The APIResourceSchemas by which exports with the claim's identity offer its resource."""
    return [
        schema
        for export in exports_by_identity(store, claimed.identity)
        for schema in schemas(store, export)
        if (schema["spec"]["group"], schema["spec"]["names"]["plural"]) == (claimed.group, claimed.resource)
    ]
