"""As whom a server holds its fleet, for its processes: a row that stands while one loads and others may do the rest.

Put by the process that loads (apart.py) once its store is filled and it is the holder; read by the other (rest.py),
which does nothing without it, and nothing once it is another's.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

from apiserver.model.tables import Table
from apiserver.storage.protocol import DeleteRow, PutRow, View

_TENURE, _BEGUN = "tenure", "begun"
BEGUN, LOST = b"begun", b"lost"


@dataclass(frozen=True, slots=True)
class Tenure:
    """`writer`, `epoch`: see statusbranch/claim. `ended`: see syncing/lease.Contender. `anew`: the
    fleet began with new identities. `away`: the source did not answer. `status_branch`: its name, and
    `status_repository` the repository that it has of its own. `loading`: what the
    process that loads wrote into the lock of its role."""

    writer: str
    epoch: int = 1
    ended: str = ""
    anew: bool = False
    away: bool = False
    status_branch: str = ""
    status_repository: str = ""
    loading: str = ""

    def put(self) -> list[PutRow | DeleteRow]:
        """It begins: what was said of an earlier one goes."""
        return [DeleteRow(Table.TENURE, _BEGUN), PutRow(Table.TENURE, _TENURE, orjson.dumps(asdict(self)))]


def ended() -> DeleteRow:
    return DeleteRow(Table.TENURE, _TENURE)


def tenure_of(view: View) -> Tenure | None:
    row = view.get_row(Table.TENURE, _TENURE)
    return Tenure(**orjson.loads(row)) if row is not None else None


def said(view: View) -> bytes | None:
    """BEGUN: what the status branch lacked is recorded there, as far as the source answers. LOST: another server holds
    the fleet. None: neither is known yet."""
    return view.get_row(Table.TENURE, _BEGUN)


def say(word: bytes) -> PutRow:
    return PutRow(Table.TENURE, _BEGUN, word)
