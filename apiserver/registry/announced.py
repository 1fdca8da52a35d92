"""What is noted of outcomes (Internal.OUTCOME) and of telling them: rows of one table.

Written by the reconciler (loading/outcomes, controllers/announcements), read by /metrics as well.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import orjson

from apiserver.model.keys import Internal, Key
from apiserver.model.tables import Table, row_key
from apiserver.storage.protocol import DeleteRow, PutRow, View

_NOTED = "noted"
_TOLD, _FAILS = "told", "fails"


def outcome_key(commit: str) -> Key:
    return Key(Internal.OUTCOME, "", "", commit)


def noted(store: View) -> str:
    """The commit up to which outcomes were noted; "" where none was."""
    return (store.get_row(Table.OUTCOMES, _NOTED) or b"").decode()


def put_noted(commit: str) -> PutRow:
    return PutRow(Table.OUTCOMES, _NOTED, commit.encode())


def forgotten() -> DeleteRow:
    """Nothing is noted from here on."""
    return DeleteRow(Table.OUTCOMES, _NOTED)


def told(store: View, who: str, commit: str) -> dict[str, str]:
    """What somebody was told of a commit: by subject the digest of what was said of it last."""
    row = store.get_row(Table.OUTCOMES, row_key(_TOLD, commit, who))
    found: dict[str, str] = orjson.loads(row) if row is not None else {}
    return found


def put_told(who: str, commit: str, said: Mapping[str, str]) -> PutRow:
    return PutRow(Table.OUTCOMES, row_key(_TOLD, commit, who), orjson.dumps(dict(said)))


def untold(store: View, commit: str) -> list[DeleteRow]:
    """Takes away what is noted of telling a commit's outcome."""
    return [DeleteRow(Table.OUTCOMES, row.key) for row in store.scan_rows(Table.OUTCOMES, row_key(_TOLD, commit, ""))]


def put_failing(who: str, text: str) -> PutRow:
    """Why somebody cannot be told just now; "" where he can."""
    return PutRow(Table.OUTCOMES, row_key(_FAILS, who), text.encode())


def not_told(store: View, others: Collection[str]) -> list[DeleteRow]:
    """Takes away what is noted of who is told no more. `others`: who is."""
    return [DeleteRow(Table.OUTCOMES, row_key(_FAILS, who)) for who in failing(store) if who not in others]


def failing(store: View) -> dict[str, str]:
    """By who is told."""
    found = store.scan_rows(Table.OUTCOMES, row_key(_FAILS, ""))
    return {row.key.partition("\0")[2]: row.value.decode() for row in found}
