"""How many objects there are, of a resource and of each resource in a workspace, and when the workspace's marked ones
last changed. Kept, so that nobody has to count or to read the log.

Written by a group's transaction (lmdb_group.py) beside the objects it changes, read by lmdb_reader.py. The update of
an object that is not marked costs nothing here; else a transaction costs one row for each workspace and each resource.

    = resource id             → number (8 bytes)
    + logical cluster         → marked revision (8), then for each resource it has objects of, by id:
                                resource id (4) · number (4)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from apiserver.storage import lmdb_layout as layout
from apiserver.storage.lmdb_environment import LmdbEnvironment
from apiserver.storage.lmdb_library import Transaction

_EACH: Final = struct.Struct(">4sI")
_UNMARKED: Final = layout.U64.pack(0)


class Counted:
    """What one transaction creates, deletes and marks. Tell it of each object, then `write` once."""

    def __init__(self) -> None:
        self._clusters: dict[bytes, dict[bytes, int]] = {}
        self._marked: dict[bytes, int] = {}
        self._totals: dict[bytes, int] = {}
        """By resource, of what is counted in its workspaces already."""

    def number(self, full: bytes, more: int) -> None:
        """`full`: the object's whole key as stored; `more`: 1 where it is created, -1 where it is deleted."""
        cluster = self._clusters.setdefault(_cluster_of(full), {})
        cluster[full[:4]] = cluster.get(full[:4], 0) + more

    def several(self, full: bytes, more: int, marked: int | None) -> None:
        """The same of so many objects of one workspace and one resource, of which one has this key. `marked`: the
        revision of the last of them, where the resource is marked."""
        self.number(full, more)
        if marked is not None:
            self.mark(full, marked)

    def has_any(self, clusters: Iterable[bytes]) -> bool:
        """Whether it was told of any of these workspaces."""
        return not self._clusters.keys().isdisjoint(clusters)

    def came(
        self,
        env: LmdbEnvironment,
        txn: Transaction,
        clusters: Sequence[bytes],
        resources: Sequence[bytes],
        marked: Sequence[bytes] | None,
    ) -> None:
        """Workspaces that had nothing have one object each of the same resources; written at once. `marked`: the
        revision of each one's marked object, as bytes."""
        if not resources:
            return
        rest = b"".join(_EACH.pack(resource, 1) for resource in sorted(resources))
        heads = marked or [_UNMARKED] * len(clusters)
        found = [(_cluster(name), head + rest) for name, head in zip(clusters, heads, strict=True)]
        txn.cursor(db=env.counts).putmulti(sorted(found))
        for resource in resources:
            self._totals[resource] = self._totals.get(resource, 0) + len(clusters)

    def gone(self, cluster: str, resource: bytes, count: int) -> None:
        """So many objects of one resource (its id) of a workspace are deleted."""
        numbers = self._clusters.setdefault(cluster.encode(), {})
        numbers[resource] = numbers.get(resource, 0) - count

    def mark(self, full: bytes, revision: int) -> None:
        cluster = _cluster_of(full)
        self._clusters.setdefault(cluster, {})
        self._marked[cluster] = revision

    def write(self, env: LmdbEnvironment, txn: Transaction) -> None:
        totals = self._totals
        for cluster, changed in self._clusters.items():
            marked, numbers = _read(env, txn, cluster)
            for resource, more in changed.items():
                numbers[resource] = numbers.get(resource, 0) + more
                totals[resource] = totals.get(resource, 0) + more
            rest = b"".join(_EACH.pack(*each) for each in sorted(numbers.items()) if each[1])
            if rest:
                marked = self._marked.get(cluster, marked)
                txn.put(_cluster(cluster), layout.U64.pack(marked) + rest, db=env.counts)
            else:
                txn.delete(_cluster(cluster), db=env.counts)
        for resource, more in totals.items():
            txn.put(_resource(resource), layout.U64.pack(of_resource(env, txn, resource) + more), db=env.counts)

    def total(self, env: LmdbEnvironment, txn: Transaction, cluster: str, besides: frozenset[str]) -> int:
        """As `number_of`, with what this transaction did so far."""
        return _sum(env, txn, self.of_cluster(env, txn, cluster), besides)

    def of_cluster(self, env: LmdbEnvironment, txn: Transaction, cluster: str) -> dict[bytes, int]:
        """As the function of that name, with what this transaction did so far; 0 of what it took all of."""
        name = cluster.encode()
        numbers = _read(env, txn, name)[1]
        for resource, more in self._clusters.get(name, {}).items():
            numbers[resource] = numbers.get(resource, 0) + more
        return numbers


def counts(name: str, besides: frozenset[str]) -> bool:
    """Whether objects of a resource count for their workspace's number."""
    return not name.startswith("~") and name.partition(":")[0] not in besides


def number_of(env: LmdbEnvironment, txn: Transaction, cluster: str, besides: frozenset[str]) -> int:
    """See protocol.ReadView."""
    return _sum(env, txn, of_cluster(env, txn, cluster), besides)


def _sum(env: LmdbEnvironment, txn: Transaction, numbers: dict[bytes, int], besides: frozenset[str]) -> int:
    return sum(number for each, number in numbers.items() if counts(env.resource_name(txn, each), besides))


def of_resource(env: LmdbEnvironment, txn: Transaction, resource: bytes) -> int:
    """How many objects of the resource with this id there are."""
    return int.from_bytes(txn.get(_resource(resource), db=env.counts) or b"", "big")


def of_cluster(env: LmdbEnvironment, txn: Transaction, cluster: str) -> dict[bytes, int]:
    """How many objects of each resource (by id) there are in a workspace; none of what it has none of."""
    return _read(env, txn, cluster.encode())[1]


def marked_of(env: LmdbEnvironment, txn: Transaction, cluster: str) -> int:
    """The revision of the last change to a marked object of a workspace that has objects; else 0."""
    return int.from_bytes((txn.get(_cluster(cluster.encode()), db=env.counts) or b"")[:8], "big")


def any_of(env: LmdbEnvironment, txn: Transaction, clusters: Iterable[bytes]) -> bool:
    """Whether any of these workspaces has objects."""
    return bool(txn.cursor(db=env.counts).getmulti([_cluster(each) for each in clusters]))


def _read(env: LmdbEnvironment, txn: Transaction, cluster: bytes) -> tuple[int, dict[bytes, int]]:
    row = txn.get(_cluster(cluster), db=env.counts)
    return (int.from_bytes(row[:8], "big"), dict(_EACH.iter_unpack(row[8:]))) if row else (0, {})


def _cluster_of(full: bytes) -> bytes:
    return full[4 : full.index(0, 4)]


def _resource(number: bytes) -> bytes:
    return b"=" + number


def _cluster(name: bytes) -> bytes:
    return b"+" + name
