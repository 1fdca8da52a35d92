"""Deleting objects through the API: preconditions, finalizers, namespaces with their content.

Called by the endpoints. An object with finalizers is marked (deletionTimestamp) and goes when the last finalizer does,
which rest.py's updates notice; a namespace takes its content along and goes when that is gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from apiserver.model import clock
from apiserver.model.errors import conflict, forbidden, not_found
from apiserver.model.keys import Key, storage_name
from apiserver.registry import codec
from apiserver.registry.conversion import convert, stored
from apiserver.registry.rest import CRDS
from apiserver.registry.rest_checks import finished
from apiserver.registry.rest_options import Collection, DeleteOptions, Object, Outcome
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Conflict, Delete, Put, Record, Store

_ATTEMPTS = 20
_PAGE = 500
_PROTECTED = frozenset({"default", "kube-system", "kube-public"})


def delete(at: Collection, namespace: str, name: str, options: DeleteOptions) -> Outcome:
    """Raises StatusError: 403, 404, 409 for a precondition that does not hold."""
    kind = at.kind
    key = Key(kind.storage, at.cluster, namespace if kind.namespaced else "", name)
    for _ in range(_ATTEMPTS):
        record = at.store.get(key)
        if record is None:
            raise not_found(kind.resource, kind.group, name)
        live = convert(codec.decode(record.value, record.revision), kind)
        if not options.dry_run:
            at.admit("delete", name, live)
        _check(kind, live, options)
        try:
            return _delete(at, record, live, options)
        except Conflict:
            continue
    raise conflict(kind.resource, kind.group, name)


def _delete(at: Collection, record: Record, live: Object, options: DeleteOptions) -> Outcome:
    marked = _marked(at.kind, live)
    if _is_namespace(at.kind) and not options.dry_run:
        return _delete_namespace(at, record, marked)
    if finished(marked):
        if not options.dry_run:
            _delete_instances(at, live)
            at.store.write(Delete(record.key, record.revision)).result()
        return Outcome(live, removed=True)
    if live["metadata"].get("deletionTimestamp"):
        return Outcome(live)
    if options.dry_run:
        return Outcome(marked)
    return Outcome(_put(at, record, marked))


def _delete_instances(at: Collection, definition: Object) -> None:
    """The custom resources of a CustomResourceDefinition go with it, finalizers or not: nobody serves them any more."""
    if at.kind.qualified != CRDS:
        return
    spec = definition["spec"]
    for record in _records(at.store, storage_name(spec["group"], spec["names"]["plural"]), at.cluster, None):
        at.store.write(Delete(record.key)).result()


def _put(at: Collection, record: Record, obj: Object) -> Object:
    value = codec.encode(stored(obj, at.storage_kind))
    [revision] = at.store.write(Put(record.key, value, record.revision)).result()
    obj["metadata"]["resourceVersion"] = str(revision)
    return obj


def _marked(kind: ServedKind, live: Object) -> Object:
    """As it is while its finalizers are waited for."""
    metadata = dict(live["metadata"])
    if not metadata.get("deletionTimestamp"):
        metadata["deletionTimestamp"] = clock.now()
        metadata["deletionGracePeriodSeconds"] = 0
        if kind.generation:
            metadata["generation"] = int(metadata.get("generation") or 0) + 1
    return {**live, "metadata": metadata}


def _check(kind: ServedKind, live: Object, options: DeleteOptions) -> None:
    metadata = live["metadata"]
    name = metadata["name"]
    if _is_namespace(kind) and name in _PROTECTED:
        raise forbidden(kind.resource, kind.group, name, "this namespace may not be deleted")
    for what, field, asked in (("UID", "uid", options.uid), ("ResourceVersion", "resourceVersion", options.revision)):
        found = metadata.get(field, "")
        if asked and asked != found:
            why = (
                f"the {what} in the precondition ({asked}) does not match the {what} in record ({found}). "
                "The object might have been deleted and then recreated"
            )
            raise conflict(kind.kind, kind.group, name, why)


def _is_namespace(kind: ServedKind) -> bool:
    return kind.resource == "namespaces" and not kind.group


def _delete_namespace(at: Collection, record: Record, marked: Object) -> Outcome:
    """Marks the namespace, deletes what is in it, and removes it if nothing waits for a finalizer."""
    marked["status"] = {**(marked.get("status") or {}), "phase": "Terminating"}
    if record.value != codec.encode(marked):
        marked = _put(at, record, marked)
    sweep(at.store, at.kinds.all(), at.cluster, record.key.name)
    if at.store.get(record.key) is None:
        return Outcome(marked, removed=True)
    return Outcome(marked)


def sweep(store: Store, kinds: Iterable[ServedKind], cluster: str, namespace: str) -> bool:
    """Deletes the content of a terminating namespace, then the namespace; whether it is gone.

    Level-triggered: objects with finalizers are marked and stay, and so does the namespace until a later call finds it
    empty.
    """
    key = Key("namespaces", cluster, "", namespace)
    left = False
    for kind in {k.storage: k for k in kinds if k.namespaced and k.storage}.values():
        for record in _records(store, kind.storage, cluster, namespace):
            left |= not _remove(store, kind, record.key)
    if left:
        return False
    found = store.get(key)
    if found is None:
        return True
    obj = codec.decode(found.value, found.revision)
    if not obj["metadata"].get("deletionTimestamp") or obj["metadata"].get("finalizers"):
        return False
    store.write(Delete(key, found.revision)).result()
    return True


def _records(store: Store, resource: str, cluster: str, namespace: str | None) -> Iterator[Record]:
    after: Key | None = None
    while True:
        page = store.scan(resource, cluster, namespace, after=after, limit=_PAGE)
        yield from page.records
        if page.more is None:
            return
        after = page.more


def _remove(store: Store, kind: ServedKind, key: Key) -> bool:
    """Whether the object is gone; else it is marked."""
    for _ in range(_ATTEMPTS):
        record = store.get(key)
        if record is None:
            return True
        live = codec.decode(record.value, record.revision)
        marked = _marked(kind, live)
        try:
            if not marked["metadata"].get("finalizers"):
                store.write(Delete(key, record.revision)).result()
                return True
            if marked != live:
                store.write(Put(key, codec.encode(marked), record.revision)).result()
        except Conflict:
            continue
        return False
    return False
