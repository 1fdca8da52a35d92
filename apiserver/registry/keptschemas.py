"""Which APIResourceSchema a workspace is served with: the one whose UID its binding records, its provider's as long as
that has it, and kept for it from then on.

A schema's spec never changes, so its UID stands for what it says, and another schema of the same name is another one;
but one that a commit puts back is the one that went, and takes no less (phases/effecting, loading/providing).
Called by whoever serves or judges by what a binding records, and by whoever takes schemas away: deletion here, and the
reconciler's commits (loading/removal, phases/merging). What is kept ends with the last binding that names it
(loading/keptschemas, controllers/keptschemas).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.model.storagenames import SCHEMAS
from apiserver.registry import codec, indexes
from apiserver.registry.boundresources import SchemaRef
from apiserver.storage.protocol import Put, ReadView, Record

Object = dict[str, Any]

KEPT_SCHEMAS = "~schemas"
"""Key(KEPT_SCHEMAS, <provider's cluster>, <name>, <UID>): an APIResourceSchema that its provider no longer has, for the
workspaces that are served with it still."""


def kept_key(cluster: str, schema: Object) -> Key:
    """Under which a schema of a provider's logical cluster is kept."""
    metadata = schema["metadata"]
    return Key(KEPT_SCHEMAS, cluster, metadata["name"], metadata["uid"])


def find(view: ReadView, wanted: Sequence[SchemaRef]) -> list[Record | None]:
    """What bindings record, wherever it is; None for what is lost."""
    live = view.get_many([Key(SCHEMAS, each.cluster, "", each.name) for each in wanted]) if wanted else []
    return [
        there if there is not None and ref.is_of(orjson.loads(there.value)) else _kept(view, ref)
        for ref, there in zip(wanted, live, strict=True)
    ]


def _kept(view: ReadView, ref: SchemaRef) -> Record | None:
    if ref.uid:
        return view.get(key_of(ref))
    return next(iter(kept(view, ref.cluster, ref.name)), None)


def kept(view: ReadView, cluster: str, name: str) -> list[Record]:
    """All that are kept of that name."""
    return view.scan(KEPT_SCHEMAS, cluster, name, count=False).records


def keeping(store: ReadView, records: Iterable[Record | None]) -> list[Put]:
    """The operations that go with the end of these objects."""
    schemas = (record for record in records if record is not None and record.key.resource == SCHEMAS)
    return [keep(record) for record in schemas if is_named(store, ref_of(record))]


def keep(record: Record) -> Put:
    """Keeps a schema as it is stored."""
    return Put(kept_key(record.key.cluster, orjson.loads(record.value)), record.value)


def ref_of(record: Record) -> SchemaRef:
    """What a binding with a schema records, by the schema as it is stored."""
    key = record.key
    return SchemaRef(key.cluster, key.name, codec.uid_of(record.value))


def key_of(ref: SchemaRef) -> Key:
    """Where it is kept."""
    return Key(KEPT_SCHEMAS, ref.cluster, ref.name, ref.uid)


def ref_of_kept(key: Key) -> SchemaRef:
    """The same, by the key under which it is kept."""
    return SchemaRef(key.cluster, key.namespace, key.name)


def is_named(store: ReadView, ref: SchemaRef) -> bool:
    """Whether any binding is bound with that schema."""
    return bool(store.indexed(indexes.BOUND, indexes.schema(*ref), whole=True, limit=1))
