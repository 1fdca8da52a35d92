"""Whether this server may write at all: one that only observes shows what another one, the holder, records.

Asked by everything that would write on behalf of a client. The reconciler says who the holder is, in the record of the
fleet.
"""

from __future__ import annotations

from functools import lru_cache

from apiserver.model.errors import unavailable
from apiserver.registry.tree import FleetRecord, fleet_row
from apiserver.storage.protocol import Store

_AFTER = 5
"""Seconds after which a client may ask again."""


def check_holder(store: Store) -> None:
    """Raises StatusError 503 with the holder's name where the fleet is another server's."""
    found = fleet_row(store)
    holder = _fleet(found).holder if found is not None else ""
    if holder:
        raise unavailable(f"the fleet is held by another server, {holder}: this one only shows what it records", _AFTER)


@lru_cache(4)
def _fleet(value: bytes) -> FleetRecord:
    return FleetRecord.decode(value)
