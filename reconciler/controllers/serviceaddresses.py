"""Addresses and node ports of Services, put right: given to those that came without (from git, or from before), taken
back from those that are gone.

Writes through the API allocate in their own transaction and take over what nobody claims, so nothing waits for this
loop; without it a deleted Service's address would only stand there for clients to see.
"""

from __future__ import annotations

from concurrent.futures import Future

import orjson

from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal, Key
from apiserver.registry import allocation, codec
from apiserver.storage.protocol import Change, Check, Delete, Put, Record, Store
from reconciler.controllers.follower import Part
from reconciler.controllers.runtime import Expected
from reconciler.controllers.served import Serves, records

_LOOKED_AT = frozenset({allocation.SERVICES, allocation.ADDRESSES})


class ServiceAddresses(Part):
    """Work items are keys: of a Service that may lack something, or of an address or port that may be abandoned."""

    def __init__(self, store: Store, serves: Serves) -> None:
        self._store, self._serves = store, serves

    def begin(self) -> None:
        for record in records(self._store, Internal.NODE_PORTS, self._serves):
            self.desk.add(record.key)

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
        record = self._store.get(key)
        if record is None:
            return None
        if key.resource != allocation.SERVICES:
            abandoned = allocation.abandoned(self._store, record)
            return self._store.write(Delete(key, record.revision)) if abandoned else None
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
        held = sorted(allocation.held_by(key.cluster, spec))
        return any(record is None for record in self._store.get_many(held))


def _spec(value: bytes | None) -> dict[str, object]:
    found: dict[str, object] = (orjson.loads(value).get("spec") or {}) if value is not None else {}
    return found
