"""Who takes which workspace's exports: two tables that say the same, one by the provider and one by the consumer.

Written with what a workspace's judgement comes to (phases/publishing), and taken away with the workspace (removal). A
consumer is listed for what its newest content asks for, and, as long as that is held, for what it is served with.
"""

from __future__ import annotations

from collections.abc import Collection

import orjson

from apiserver.model.tables import Table, row_key
from apiserver.storage.paging import rows
from apiserver.storage.protocol import ABSENT, DeleteRow, PutRow, RowOp, View

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


def _read(row: bytes | None) -> frozenset[tuple[str, str]]:
    return frozenset((path, name) for path, name in orjson.loads(row)) if row is not None else frozenset()
