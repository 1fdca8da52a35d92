"""Who is known to be behind commits of the served branch, in the store: rows of one table, the newest commits alone.

Noted where commits are taken and made (loading/whopushed, loading/committer), before they are served, so that the
status branch can say it, whichever process writes that. A store that is lost takes it along: what stands on the status
branch by then stays there (pushtrailers), and the rest nobody knows any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future

import orjson

from apiserver.model.tables import Table, row_key
from apiserver.storage.protocol import DeleteRow, PutRow, RowOp, Store, View
from reconciler.plan.pushedby import NOBODY, PushedBy

KEPT = 10_000
"""Commits of which it is known."""
_OF, _NTH, _NEXT = "of", "nth", "next"
_NUMBER = "number"


def of(store: View, commit: str) -> PushedBy:
    """NOBODY where it is not known."""
    row = store.get_row(Table.PUSHERS, row_key(_OF, commit))
    return PushedBy.from_json(orjson.loads(row)) if row is not None else NOBODY


def note(store: Store, said: Mapping[str, PushedBy], kept: int = KEPT) -> None:
    """By commit, oldest first; whatever was known of one before. One thread does this at a time. What is known already
    writes nothing."""
    begun = begin(store, said, kept)
    if begun is not None:
        begun.result()


def begin(store: Store, said: Mapping[str, PushedBy], kept: int = KEPT) -> Future[list[int]] | None:
    """The same, on its way to the disk: it is there with the result. None where nothing is to be written."""
    newest = dict([*said.items()][-kept:])
    rows = store.get_rows(Table.PUSHERS, [row_key(_OF, commit) for commit in newest])
    known = {commit: orjson.loads(row) for commit, row in zip(newest, rows, strict=True) if row is not None}
    if all(commit in known and PushedBy.from_json(known[commit]) == by for commit, by in newest.items()):
        return None
    first = int(store.get_row(Table.PUSHERS, _NEXT) or b"0")
    ops: list[RowOp] = [DeleteRow(Table.PUSHERS, _nth(found[_NUMBER])) for found in known.values()]
    for number, commit in enumerate(newest, first):
        oldest = (store.get_row(Table.PUSHERS, _nth(number - kept)) or b"").decode() if number >= kept else ""
        if oldest and oldest not in newest:
            ops += [DeleteRow(Table.PUSHERS, key) for key in (_nth(number - kept), row_key(_OF, oldest))]
        value = orjson.dumps({**newest[commit].as_json(), _NUMBER: number})
        ops += [
            PutRow(Table.PUSHERS, row_key(_OF, commit), value),
            PutRow(Table.PUSHERS, _nth(number), commit.encode()),
        ]
    return store.write(*ops, PutRow(Table.PUSHERS, _NEXT, b"%d" % (first + len(newest))))


def _nth(number: int) -> str:
    return row_key(_NTH, f"{number:015}")
