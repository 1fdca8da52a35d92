"""How many commits of the branch a workspace is behind that is held: a row that the reconciler counts
(loading/lagging), read whenever such a Workspace is.

The row says it of commits, since which workspaces are held: of those there are few, however many workspaces they hold,
and no workspace is written to because others go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import orjson

from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import DeleteRow, Op, PutRow, View

MOST = 1000
"""Commits that are counted: more are shown as so many."""
_LAGS = "lags"


def since(store: View, record: WorkspaceRecord) -> str:
    """The commit since which a workspace is held, "" of one that is not, or whose content another repository has: the
    branch's commits say nothing of how far it is behind there."""
    if not record.errors or record.source or record.follows:
        return ""
    said: dict[str, Any] = tree.summary(store, record.path)
    return str(said.get("held", ""))


def lag(store: View, record: WorkspaceRecord) -> int | None:
    """Of a workspace; None where it is not behind, or nobody has counted yet."""
    held = since(store, record)
    return counted(store).get(held) if held else None


def counted(store: View) -> Mapping[str, int]:
    """By commit since which something is held."""
    row = store.get_row(Table.FLEET, _LAGS)
    return _read(row) if row is not None else {}


def put(found: Mapping[str, int]) -> Op:
    """Writes them; nothing is held: none."""
    return PutRow(Table.FLEET, _LAGS, orjson.dumps(dict(found))) if found else DeleteRow(Table.FLEET, _LAGS)


@lru_cache(4)
def _read(row: bytes) -> Mapping[str, int]:
    found: dict[str, int] = orjson.loads(row)
    return found
