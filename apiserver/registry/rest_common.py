"""What creating and changing an object have in common: where it stands, how it is read and how it is stored.

Called by rest_create and rest_replace, and by rest for what it looks up.
"""

from __future__ import annotations

from apiserver.model import clock
from apiserver.model.keys import Key
from apiserver.model.storagenames import CRDS
from apiserver.registry import allocation, codec, strategy
from apiserver.registry.claims import claims, held, refused
from apiserver.registry.conversion import completed, convert, stored
from apiserver.registry.rest_options import Collection, Object
from apiserver.registry.served import ServedKind
from apiserver.registry.sinks import Written
from apiserver.schema.defaults import copy_json
from apiserver.storage.protocol import Op

ATTEMPTS = 20
"""How often a write is tried while other writers come first."""


def key_of(at: Collection, namespace: str, name: str) -> Key:
    """Where an object stands; cluster-scoped kinds have no namespace, whatever is asked."""
    return Key(at.kind.storage, at.cluster, namespace if at.kind.namespaced else "", name)


def live_of(kind: ServedKind, value: bytes, revision: int) -> Object:
    """A stored object in the version that is asked for, with its resourceVersion and a custom resource's defaults."""
    obj = codec.decode(value, revision)
    if kind.custom and kind.schema.has_defaults and obj.get("apiVersion") == kind.api_version:
        return completed(obj, kind)
    return convert(obj, kind)


def value_of(at: Collection, obj: Object) -> bytes:
    """An object as it is stored, in its kind's storage version."""
    return codec.encode(stored(obj, at.storage_kind))


def as_written(kind: ServedKind, obj: Object, written: Written, value: bytes | None) -> Object:
    """The object as it is stored now. `obj`: as it was to be; `value`: what it came to in its storage version. Of what
    was not stored, as it would be."""
    if not written.stored:
        return obj
    if written.value is not None:
        return live_of(kind, written.value, written.revision)
    if value is not None and kind.conversion is not None and not kind.storage_version:
        return live_of(kind, value, written.revision)  # a webhook need not give back what it was given
    obj["metadata"]["resourceVersion"] = str(written.revision)
    return obj


def allocated(at: Collection, key: Key, live: Object | None, obj: Object) -> tuple[Object, list[Op]]:
    """The object with what its cluster allocates, and the operations that go with its write."""
    if not allocation.allocates(at.kinds, at.kind.storage):
        return obj, []
    made = copy_json(obj)
    return made, allocation.settle(at.store, key, live, made)


def establish(at: Collection, obj: Object) -> None:
    """A CustomResourceDefinition is judged in the same write, so that it is served as soon as it is answered."""
    if at.kind.qualified != CRDS:
        return
    now, before = clock.now(), (obj.get("status") or {}).get("conditions")
    obj["status"] = strategy.crd_status(obj, now)
    # Other definitions are the controllers' to look at; what is bound must not be taken over even for a moment.
    taken = held(at.kinds)
    clashes = [claim for claim in claims(obj["spec"]) if claim in taken]
    if clashes:
        obj["status"] = refused(obj["status"], clashes, before, now)


def reset(kind: ServedKind, subresource: str) -> tuple[str, ...]:
    """Fields that an endpoint leaves to the status subresource."""
    return ("status",) if "status" in kind.subresources and subresource not in ("approval", "status") else ()
