"""Places of workspaces that left and have gone, at which those that a commit has there are still to be judged.

Written by departure, read by loader and cases. What is known of who may have workspaces there goes with the summary of
the one that leaves (Summary.asked), and no commit tells of it again: so the transaction that ends that one says it, and
the loader takes it back when all there are judged. What a crash leaves it judges at its next start.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from apiserver.model.tables import Table
from apiserver.storage.paging import rows
from apiserver.storage.protocol import DeleteRow, PutRow, Store, View


def vacate(path: str, asked: dict[str, dict[str, Any]]) -> PutRow:
    """Belongs into the transaction that ends the workspace. `asked`: see Summary."""
    return PutRow(Table.VACATED, path, orjson.dumps(asked))


def standing(store: View) -> dict[str, dict[str, dict[str, Any]]]:
    """What is known, by the path of the workspace that has gone. Costs one look where none has."""
    return {row.key: orjson.loads(row.value) for row in rows(store, Table.VACATED)}


def judged(store: Store, paths: Iterable[str]) -> None:
    """All that there is at these places is judged, and on disk."""
    ops = [DeleteRow(Table.VACATED, path) for path in paths]
    if ops:
        store.write(*ops).result()
