"""Where controllers stand in the log: a row each, by name and version. The store keeps its log for the slowest.

Read by a feed when it begins, written by it every now and then. A row alone rings nobody, so that writing it down makes
no entry to write down.
"""

from __future__ import annotations

from collections.abc import Collection

from apiserver.model.tables import Table, row_key
from apiserver.storage.protocol import DeleteRow, PutRow, View, checkpoint, checkpoint_of

_WHO = "controller"


def name_of(controller: str, version: str) -> str:
    """What the row of a controller is called."""
    return row_key(_WHO, controller, version)


def reached(store: View, name: str) -> int | None:
    """The revision up to which one has worked off the log; None: it has to see everything, since it is new, or another
    version, or the log does not reach back to where it was."""
    row = store.get_row(Table.CHECKPOINTS, name)
    revision = checkpoint_of(row) if row is not None else -1
    return revision if store.oldest() <= revision <= store.revision() else None


def put(name: str, revision: int) -> PutRow:
    return checkpoint(name, revision)


def others(store: View, names: Collection[str]) -> list[DeleteRow]:
    """Takes away the rows of all controllers but these: the log is kept for nobody who does not come back."""
    found = store.scan_rows(Table.CHECKPOINTS, row_key(_WHO, ""))
    return [DeleteRow(Table.CHECKPOINTS, row.key) for row in found if row.key not in names]
