"""Addresses and node ports of Services, put right: given to those that came without (from git, or from before), taken
back from those that are gone.

Writes through the API allocate in their own transaction and take over what nobody claims, so nothing waits for this
loop; without it a deleted Service's address would only stand there for clients to see.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from itertools import groupby

from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.registry import allocation, codec
from apiserver.storage.protocol import Check, Put, Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.entry import Entry, Object
from reconciler.controllers.failures import Expected
from reconciler.controllers.served import Serves


class ServiceAddresses(Controller[Key]):
    """Work items are keys: of a Service that may lack something, or of an address or port that may be abandoned."""

    name = "serviceaddresses"
    version = "1"
    resources = frozenset({allocation.SERVICES})
    shown = frozenset({allocation.SERVICES, allocation.ADDRESSES})

    def __init__(self, store: Store, serves: Serves) -> None:
        self._store, self._serves = store, serves

    def complete(self) -> Iterable[Key]:
        for cluster, held in groupby(allocation.ports(self._store), lambda key: key.cluster):
            yield from held if self._serves(cluster) else ()

    def keys_of(self, entry: Entry) -> Iterable[Key]:
        cluster = entry.key.cluster
        if not self._serves(cluster):
            return
        if entry.shown:
            yield entry.key
            return
        after = _spec(entry.obj)
        was, now = allocation.held_by(cluster, _spec(entry.before)), allocation.held_by(cluster, after)
        yield from was - now
        if entry.value is not None and (now - was or allocation.lacks(after)):
            yield entry.key

    def reconcile(self, key: Key) -> Future[list[int]] | None:
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


def _spec(service: Object) -> Object:
    found: Object = service.get("spec") or {}
    return found
