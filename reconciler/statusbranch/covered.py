"""How far the store is recorded beyond what the status branch says of that: a row of the fleet's table.

Written and read by the writer. Most that happens in a large store leaves no file, such as what comes and goes in
workspaces that were made through the API, so no commit says that it was looked at. It counts together with the very
status commit that it was found with: another one may be another server's.
"""

from __future__ import annotations

from apiserver.model.tables import Table
from apiserver.storage.protocol import PutRow, View

_ROW = "recorded"


def note(head: str, settled: int) -> PutRow:
    """Up to revision `settled` nothing is left to be said that the status commit `head` does not say."""
    return PutRow(Table.FLEET, _ROW, f"{head} {settled}".encode())


def noted(store: View, head: str) -> int:
    """The revision that was noted with a status commit; 0 for none."""
    commit, _, settled = (store.get_row(Table.FLEET, _ROW) or b"").decode().partition(" ")
    return int(settled) if commit == head else 0
