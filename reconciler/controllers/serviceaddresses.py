"""Addresses and node ports of Services, put right: given to those that came without (from git, or from before), taken
back from those that are gone.

Writes through the API allocate in their own transaction and take over what nobody claims, so nothing waits for this
loop; without it a deleted Service's address would only stand there for clients to see.
"""

from __future__ import annotations

import orjson

from apiserver.model.errors import StatusError
from apiserver.model.keys import Internal, Key
from apiserver.registry import allocation, codec
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Change, Delete, Put
from reconciler.controllers.runtime import Expected, Informer, Loop, WorkQueue
from reconciler.controllers.served import Serves, records


class ServiceAddresses:
    """Work items are keys: of a Service that may lack something, or of an address or port that may be abandoned."""

    def __init__(self, objects: Objects, informer: Informer, serves: Serves) -> None:
        self._store, self._serves = objects.store, serves
        self._queue: WorkQueue[Key] = WorkQueue()
        self._loop = Loop("serviceaddresses", self._queue, self._reconcile)
        informer.on(frozenset({allocation.SERVICES}), self._service_changed)
        informer.on_gap(self.load)

    def load(self) -> None:
        for resource in (allocation.SERVICES, allocation.ADDRESSES, Internal.NODE_PORTS):
            for record in records(self._store, resource, self._serves):
                self._queue.add(record.key)

    def start(self) -> None:
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def _service_changed(self, change: Change) -> None:
        if not self._serves(change.key.cluster):
            return
        before, after = _spec(change.previous), _spec(change.value)
        cluster = change.key.cluster
        for key in allocation.held_by(cluster, before) - allocation.held_by(cluster, after):
            self._queue.add(key)
        if change.value is not None and _lacks(after):
            self._queue.add(change.key)

    def _reconcile(self, key: Key) -> None:
        record = self._store.get(key)
        if record is None:
            return
        if key.resource != allocation.SERVICES:
            if allocation.abandoned(self._store, record):
                self._store.write(Delete(key, record.revision)).result()
            return
        service = codec.decode(record.value, record.revision)
        if not _lacks(service.get("spec") or {}) or service["metadata"].get("deletionTimestamp"):
            return
        made = codec.decode(record.value, record.revision)
        try:
            also = allocation.settle(self._store, key, service, made)
        except StatusError as error:
            raise Expected(error.message) from None
        self._store.write(Put(key, codec.encode(made), record.revision), *also).result()


def _spec(value: bytes | None) -> dict[str, object]:
    found: dict[str, object] = (orjson.loads(value).get("spec") or {}) if value is not None else {}
    return found


def _lacks(spec: dict[str, object]) -> bool:
    """Whether a Service that should have an address has none."""
    return bool(spec) and spec.get("type") != "ExternalName" and not spec.get("clusterIP")
