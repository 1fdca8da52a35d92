"""How many objects there are: of a resource, and of each resource in a workspace. Kept, so that nobody has to count.

Written by a group's transaction (lmdb_writer.py) beside the objects it changes, read by lmdb_reader.py. An update
changes no number and costs nothing here; what a transaction creates and deletes costs one row for each workspace and
each resource that it does so in.

    = resource id             → number (8 bytes)
    + logical cluster         → (resource id · number (4 bytes)) for each resource it has objects of, by id
"""

from __future__ import annotations

import struct
from typing import Final

import lmdb

from apiserver.storage import lmdb_layout as layout
from apiserver.storage.lmdb_environment import LmdbEnvironment

_EACH: Final = struct.Struct(">4sI")


class Counted:
    """What one transaction creates and deletes. `note` each object of it, then `write` once."""

    def __init__(self) -> None:
        self._clusters: dict[bytes, dict[bytes, int]] = {}

    def note(self, full: bytes, more: int) -> None:
        """`full`: the object's whole key as stored; `more`: 1 where it is created, -1 where it is deleted."""
        cluster = self._clusters.setdefault(full[4 : full.index(0, 4)], {})
        cluster[full[:4]] = cluster.get(full[:4], 0) + more

    def write(self, env: LmdbEnvironment, txn: lmdb.Transaction[bytes]) -> None:
        totals: dict[bytes, int] = {}
        for cluster, changed in self._clusters.items():
            numbers = of_cluster(env, txn, cluster)
            for resource, more in changed.items():
                numbers[resource] = numbers.get(resource, 0) + more
                totals[resource] = totals.get(resource, 0) + more
            row = b"".join(_EACH.pack(*each) for each in sorted(numbers.items()) if each[1])
            if row:
                txn.put(_cluster(cluster), row, db=env.counts)
            else:
                txn.delete(_cluster(cluster), db=env.counts)
        for resource, more in totals.items():
            txn.put(_resource(resource), layout.U64.pack(of_resource(env, txn, resource) + more), db=env.counts)


def of_resource(env: LmdbEnvironment, txn: lmdb.Transaction[bytes], resource: bytes) -> int:
    """How many objects of the resource with this id there are."""
    return int.from_bytes(txn.get(_resource(resource), db=env.counts) or b"", "big")


def of_cluster(env: LmdbEnvironment, txn: lmdb.Transaction[bytes], cluster: bytes) -> dict[bytes, int]:
    """How many objects of each resource (by id) there are in a workspace; none of what it has none of."""
    return dict(_EACH.iter_unpack(txn.get(_cluster(cluster), db=env.counts) or b""))


def _resource(number: bytes) -> bytes:
    return b"=" + number


def _cluster(name: bytes) -> bytes:
    return layout.short(b"+" + name)
