"""What keeps an APIResourceSchema that goes, for the workspaces that are served with it until they are not any more.

Called by whoever takes schemas away: deletion here, and the reconciler's commits (loading/keptschemas, removal).
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.model.storagenames import SCHEMAS
from apiserver.registry import indexes
from apiserver.registry.catalog import KEPT_SCHEMAS
from apiserver.storage.protocol import Put, ReadView, Record


def keeping(store: ReadView, records: Iterable[Record | None]) -> list[Put]:
    """The operations that go with the end of these objects."""
    schemas = (record for record in records if record is not None and record.key.resource == SCHEMAS)
    named = (record for record in schemas if is_named(store, record.key.cluster, record.key.name))
    return [Put(record.key._replace(resource=KEPT_SCHEMAS), record.value) for record in named]


def is_named(store: ReadView, cluster: str, name: str) -> bool:
    """Whether any binding is bound with the schema of this name of a provider's logical cluster."""
    return bool(store.indexed(indexes.BOUND, indexes.schema(cluster, name), whole=True, limit=1))
