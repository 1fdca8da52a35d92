"""Providers that offer something else by now, of which whoever takes it has not heard.

Called by steps. Of a commit it is known by the workspaces' own commits who is past it (FleetRecord.arriving). Where
workspaces are judged again at what is served (a source has news, a pin is over, a key came) that tells nothing: so the
provider's transaction says it, and the step takes it back when all have heard. What a crash leaves is told by the
next step. While a store is filled nobody stands who could be behind, and nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.model.tables import Table
from apiserver.storage.paging import rows
from apiserver.storage.protocol import DeleteRow, PutRow, Store, View


def said(path: str) -> PutRow:
    """Belongs into the transaction that writes what the workspace offers."""
    return PutRow(Table.UNTOLD, path, b"")


def standing(store: View) -> list[str]:
    """The paths of those that a step left."""
    return [row.key for row in rows(store, Table.UNTOLD)]


def told(store: Store, paths: Iterable[str]) -> None:
    """All have heard, and stand where that leads them."""
    ops = [DeleteRow(Table.UNTOLD, path) for path in paths]
    if ops:
        store.write(*ops).result()
