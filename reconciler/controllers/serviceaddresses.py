"""Addresses and node ports of Services, put right: given to those that came without (from git, or from before), taken
back from those that are gone.

Writes through the API allocate in their own transaction and take over what nobody claims, so nothing waits for this
loop; without it a deleted Service's address would only stand there for clients to see.
"""

from __future__ import annotations

from concurrent.futures import Future
from itertools import groupby

import orjson

from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.registry import allocation, codec
from apiserver.storage.protocol import Change, Check, Put, Record, Store
from reconciler.controllers.follower import Part
from reconciler.controllers.runtime import Expected
from reconciler.controllers.served import Serves

_LOOKED_AT = frozenset({allocation.SERVICES, allocation.ADDRESSES})


class ServiceAddresses(Part):
    """Work items are keys: of a Service that may lack something, or of an address or port that may be abandoned."""

    def __init__(self, store: Store, serves: Serves) -> None:
        self._store, self._serves = store, serves

    def begin(self) -> None:
        for cluster, held in groupby(allocation.ports(self._store), lambda key: key.cluster):
            for key in held if self._serves(cluster) else ():
                self.desk.add(key)

    def found(self, record: Record) -> None:
        if record.key.resource in _LOOKED_AT and self._serves(record.key.cluster):
            self.desk.add(record.key)

    def changed(self, change: Change) -> None:
        if change.key.resource != allocation.SERVICES or not self._serves(change.key.cluster):
            return
        before, after = _spec(change.previous), _spec(change.value)
        cluster = change.key.cluster
        was, now = allocation.held_by(cluster, before), allocation.held_by(cluster, after)
        for key in was - now:
            self.desk.add(key)
        if change.value is not None and (now - was or allocation.lacks(after)):
            self.desk.add(change.key)

    def handle(self, key: Key) -> Future[list[int]] | None:
        if key.resource != allocation.SERVICES:
            release = allocation.release(self._store, key)
            return self._store.write(release) if release is not None else None
        record = self._store.get(key)
        if record is None:
            return None
        service = codec.decode(record.value, record.revision)
        if not self._wants(key, service.get("spec") or {}) or service["metadata"].get("deletionTimestamp"):
            return None
        made = codec.decode(record.value, record.revision)
        try:
            # As a new one: what it has already is to be taken, too.
            also = allocation.settle(self._store, key, None, made)
        except StatusError as error:
            raise Expected(error.message) from None
        # Waited for, since the next Service's choice depends on it.
        op = Put(key, codec.encode(made), record.revision) if made != service else Check(key, record.revision)
        self._store.write(op, *also).result()
        return None

    def _wants(self, key: Key, spec: dict[str, object]) -> bool:
        """Whether it lacks something, or (after a recovery) claims what nothing says that it holds."""
        if allocation.lacks(spec):
            return True
        return not all(allocation.is_held(self._store, held) for held in allocation.held_by(key.cluster, spec))


def _spec(value: bytes | None) -> dict[str, object]:
    found: dict[str, object] = (orjson.loads(value).get("spec") or {}) if value is not None else {}
    return found
