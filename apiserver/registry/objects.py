"""Objects in the store as dicts, read and written one at a time.

For controllers and for whatever else is not an API request: it knows optimistic concurrency, identity (uid, creation
time) and generation, and nothing of kinds; preparing an object (defaults, validation) is strategy.prepare's.
All calls are synchronous: a write returns when it is on disk.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

from apiserver.model import clock, marks
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.generation import keeps_generation, spec_changed
from apiserver.storage.protocol import NEVER, Check, Conflict, Delete, Put, Store

_PAGE = 1000
_ATTEMPTS = 50

Object = dict[str, Any]


def complete(key: Key, obj: Object, *, runtime: bool = False) -> Object:
    """A copy of `obj` with what every stored object has: name, namespace, uid, creationTimestamp, generation (of kinds
    that keep it), the annotation kcp.io/cluster, and with `runtime` the mark of what came through the API."""
    metadata = dict(obj.get("metadata") or {})
    metadata["name"] = key.name
    if key.namespace:
        metadata["namespace"] = key.namespace
    metadata.setdefault("uid", str(uuid.uuid4()))
    metadata.setdefault("creationTimestamp", clock.now())
    if keeps_generation(key.resource):
        metadata.setdefault("generation", 1)
    annotations = dict(metadata.get("annotations") or {})
    annotations[marks.CLUSTER] = key.cluster
    if runtime:
        annotations.setdefault(marks.ORIGIN, marks.RUNTIME)
    metadata["annotations"] = annotations
    return {**obj, "metadata": metadata}


class Objects:
    """A store seen as objects. Cheap: make one wherever there is a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def get(self, key: Key) -> Object | None:
        record = self.store.get(key)
        return codec.decode(record.value, record.revision) if record else None

    def list(self, resource: str, cluster: str | None = None, namespace: str | None = None) -> Iterator[Object]:
        """In key order. Read in pages, each from a snapshot of its own: an object written meanwhile may be missed or
        seen, none is seen twice."""
        after: Key | None = None
        while True:
            page = self.store.scan(resource, cluster, namespace, after=after, limit=_PAGE)
            for record in page.records:
                yield codec.decode(record.value, record.revision)
            if page.more is None:
                return
            after = page.more

    def create(self, key: Key, obj: Object, *, runtime: bool = False, inside: Check | None = None) -> Object:
        """Write what must not exist yet; returns it as stored. `obj` is not changed. `inside`: what it stands in, which
        may go meanwhile. Raises storage's Conflict."""
        made = complete(key, obj, runtime=runtime)
        also = (inside,) if inside is not None else ()
        revision, *_ = self.store.write(Put(key, codec.encode(made), NEVER), *also).result()
        made["metadata"]["resourceVersion"] = str(revision)
        return made

    def update(self, key: Key, change: Callable[[Object], Object | None], *, generation: bool = False) -> Object | None:
        """Replace the object by what `change` makes of it; returns the object as it is stored then, None if absent.

        `change` gets a fresh dict, which it may alter and return; None means no change. It is called again when another
        writer came first. Equal content writes nothing. `generation`: more than metadata and status may change: count
        that. Raises storage's Conflict after 50 lost races.
        """
        for attempt in range(_ATTEMPTS):
            record = self.store.get(key)
            if record is None:
                return None
            new = change(codec.decode(record.value, record.revision))
            if new is None:
                return codec.decode(record.value, record.revision)
            old = codec.decode(record.value, record.revision)
            new["metadata"]["resourceVersion"] = str(record.revision)
            if new == old:
                return old
            if generation and keeps_generation(key.resource) and spec_changed(old, new):
                new["metadata"]["generation"] = int(old["metadata"].get("generation", 0)) + 1
            try:
                [revision] = self.store.write(Put(key, codec.encode(new), record.revision)).result()
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            new["metadata"]["resourceVersion"] = str(revision)
            return new
        return None

    def delete(self, key: Key, expect: int | None = None) -> bool:
        """Remove at once, finalizers or not; whether there was anything. Raises storage's Conflict for `expect`."""
        [revision] = self.store.write(Delete(key, expect)).result()
        return revision != 0
