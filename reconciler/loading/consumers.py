"""Who takes which workspace's exports: two tables that say the same, one by the provider and one by the consumer.

Written with what a workspace's judgement comes to (phases/publishing), by the loop over bindings that were made through
the API (controllers/apibindings), and taken away with the workspace (removal). A consumer is listed for what its newest
content asks for, and, as long as that is held, for what it is served with; and for what was made through the API.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson

from apiserver.model import marks, origins
from apiserver.model.storagenames import BINDINGS
from apiserver.model.tables import Table, row_key
from apiserver.registry.tree import path_named
from apiserver.storage.paging import rows
from apiserver.storage.protocol import ABSENT, DeleteRow, PutRow, RowOp, View

Object = dict[str, Any]

_RUNTIME = marks.as_stored(marks.RUNTIME)

Taken = Collection[tuple[str, str]]
"""Exports, as (provider's path, name)."""


def of(store: View, provider: str) -> list[str]:
    """The workspaces with a binding to an export of the workspace at this path, sorted."""
    found = rows(store, Table.CONSUMERS, row_key(provider, ""))
    return sorted({row.key.rpartition("\0")[2] for row in found})


def taken(store: View, consumer: str) -> frozenset[tuple[str, str]]:
    """What the workspace at this path is listed for."""
    return _read(store.get_row(Table.PROVIDERS, consumer))


def listing(store: View, consumer: str, now: Taken) -> list[RowOp]:
    """The operations by which it is listed for `now` alone. They conflict with others' who list it."""
    row = store.get_row(Table.PROVIDERS, consumer)
    before, wanted = _read(row), frozenset(now)
    if before == wanted:
        return []
    found: list[RowOp] = [PutRow(Table.CONSUMERS, row_key(*each, consumer), b"") for each in sorted(wanted - before)]
    found += [DeleteRow(Table.CONSUMERS, row_key(*each, consumer)) for each in sorted(before - wanted)]
    said = orjson.dumps(sorted(wanted))
    if wanted:
        return [*found, PutRow(Table.PROVIDERS, consumer, said, ABSENT if row is None else row)]
    return [*found, DeleteRow(Table.PROVIDERS, consumer, row)]


def named(binding: Object, consumer: str) -> tuple[str, str]:
    """The export that a binding of the workspace at this path names."""
    export = ((binding.get("spec") or {}).get("reference") or {}).get("export") or {}
    return export.get("path") or consumer, str(export.get("name", ""))


def named_by_stored(store: View, cluster: str, consumer: str) -> frozenset[tuple[str, str]]:
    """What bindings name that were made through the API, in the workspace at this path. They may name a provider by its
    logical cluster name (settled)."""
    found = (record.value for record in store.scan(BINDINGS, cluster).records if _RUNTIME in record.value)
    said = (named(binding, consumer) for binding in map(orjson.loads, found) if is_stored(binding))
    return frozenset((path_named(store, where) or where, name) for where, name in said)


def is_stored(obj: Object) -> bool:
    """Whether an object was made through the API, so that no commit knows of it."""
    annotations = obj["metadata"].get("annotations") or {}
    return annotations.get(marks.ORIGIN) == marks.RUNTIME and not origins.path_in(annotations)


def _read(row: bytes | None) -> frozenset[tuple[str, str]]:
    return frozenset((path, name) for path, name in orjson.loads(row)) if row is not None else frozenset()
