"""What the server knows of its looks at repositories, as rows of one table: since when the fleet's does not answer,
what was seen there and is not served yet, and what was found when somebody asked to have one looked at.

Written by the reconciler's process (commands/looking, commands/sourcing), read by whoever says what is wrong
(complaints) and by who asked (endpoints/reconciling). A repository in which nothing happens has nothing written.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import orjson

from apiserver.model.tables import Table
from apiserver.storage.protocol import DeleteRow, PutRow, View

_AWAY, _WAITING, _FLEET = "~away", "~waiting", "~fleet"
"""Beside the names of logical clusters, which have no tilde."""


@dataclass(frozen=True, slots=True)
class Away:
    """The fleet's repository does not answer: `since` when, and when it is asked again (`again`), in seconds since
    1970."""

    since: float
    again: float


@dataclass(frozen=True, slots=True)
class WaitingHead:
    """A head that was seen at that time, and is not served yet."""

    head: str
    since: float


@dataclass(frozen=True, slots=True)
class Looked:
    """A look that somebody asked for. `began`: when, in seconds since 1970. `head`: of the branch, "" where it is not
    known; `served`: the commit that is served now; `wrong`: why that is another one, or why nobody could look, ""
    where all is served."""

    began: float
    head: str = ""
    served: str = ""
    wrong: str = ""


def away(store: View) -> Away | None:
    row = store.get_row(Table.LOOKS, _AWAY)
    return Away(**orjson.loads(row)) if row is not None else None


def put_away(found: Away | None) -> PutRow | DeleteRow:
    """None: it answers."""
    return _put(_AWAY, found)


def waiting(store: View) -> WaitingHead | None:
    row = store.get_row(Table.LOOKS, _WAITING)
    return WaitingHead(**orjson.loads(row)) if row is not None else None


def put_waiting(found: WaitingHead | None) -> PutRow | DeleteRow:
    """None: what was seen is served."""
    return _put(_WAITING, found)


def looked(store: View, cluster: str = "") -> Looked | None:
    """The last look that was asked for, of the fleet's repository or of the source of a workspace."""
    row = store.get_row(Table.LOOKS, cluster or _FLEET)
    return Looked(**orjson.loads(row)) if row is not None else None


def put_looked(found: Looked, cluster: str = "") -> PutRow:
    return PutRow(Table.LOOKS, cluster or _FLEET, orjson.dumps(asdict(found)))


def forgotten(cluster: str) -> DeleteRow:
    """Of a workspace that goes."""
    return DeleteRow(Table.LOOKS, cluster)


def _put(row: str, found: Away | WaitingHead | None) -> PutRow | DeleteRow:
    return PutRow(Table.LOOKS, row, orjson.dumps(asdict(found))) if found is not None else DeleteRow(Table.LOOKS, row)
