"""Where controllers stand in the log: one row each, by name, with the version of the controller that was so far.

Read by a feed when it begins, written by it every now and then. A row alone rings nobody, so that writing it down makes
no entry to write down.
"""

from __future__ import annotations

import orjson

from apiserver.model.tables import Table
from apiserver.storage.protocol import PutRow, View


def reached(store: View, name: str, version: str) -> int | None:
    """The revision up to which a controller of this version has worked off the log; None: it has to see everything,
    since there is none, or another version's, or the log does not reach back to it."""
    row = store.get_row(Table.CHECKPOINTS, name)
    if row is None:
        return None
    of, revision = orjson.loads(row)
    return int(revision) if of == version and store.oldest() <= revision <= store.revision() else None


def put(name: str, version: str, revision: int) -> PutRow:
    return PutRow(Table.CHECKPOINTS, name, orjson.dumps([version, revision]))
