"""Which real clusters a fleet has, by its store: SyncTargets that a kubeconfig is the way to.

Called by the writer: fleet.yaml says so, and who would take the fleet over need not read every manifest to know that
something runs where no store of his can stop it.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from apiserver.model.keys import Key
from apiserver.model.storagenames import SYNC_TARGETS
from apiserver.registry import tree
from apiserver.storage.paging import pages
from apiserver.storage.protocol import View

_FIELD = "kubeconfigSecretRef"


def real_targets(store: View) -> tuple[str, ...]:
    """As `root:infra:eu-west`, sorted. Reads all SyncTargets, and parses those that may be real."""
    return tuple(sorted(_name(store, key) for key in _real(store))) if store.count(SYNC_TARGETS) else ()


def _real(store: View) -> Iterator[Key]:
    for page in pages(store, SYNC_TARGETS):
        for record in page:
            if _FIELD.encode() in record.value:
                spec = orjson.loads(record.value).get("spec") or {}
                if (spec.get("connection") or {}).get(_FIELD):
                    yield record.key


def _name(store: View, key: Key) -> str:
    record = tree.workspace_of(store, key.cluster)
    return f"{record.path if record is not None else key.cluster}:{key.name}"
