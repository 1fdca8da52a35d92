"""How the loops delete: as the API does, and never behind git's back.

Called by garbage, namespacelife, definitionlife, bindinglife and expiry. What a commit declared goes as the difference
of two commits, never because an owner, a namespace or a definition went: that would be absence taken for deletion, and
the next commit would bring it back. So it is left alone, or, where the workspace's writes are commits, its end is asked
for as one.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

import orjson

from apiserver.admission.writes import COMMIT
from apiserver.model import marks, origins
from apiserver.model.keys import Key
from apiserver.registry import codec, deletion, tree
from apiserver.registry.intents import Intent
from apiserver.registry.rest_checks import finished
from apiserver.registry.rest_options import BACKGROUND, DeleteOptions
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Conflict, Delete, Op, Put, Record, Store

Object = dict[str, Any]

_DYING = b'"deletionTimestamp"'
_MENTION = f'"{marks.SOURCE_PATH}"'.encode()
_RUNTIME = marks.as_stored(marks.RUNTIME)
IN_BACKGROUND = DeleteOptions(policy=BACKGROUND)


_AUTHOR = "treeplane"


def declared(store: Store, value: bytes) -> str:
    """The file for whose sake the object with this value stays; "" for none."""
    if _MENTION not in value:
        return ""
    return declared_by(store, orjson.loads(value))


def leftover(value: bytes) -> bool:
    """Whether the object is of runtime alone: made through the API or by a controller, and no file's or program's."""
    if _RUNTIME not in value or _MENTION in value:
        return False
    annotations = orjson.loads(value)["metadata"].get("annotations") or {}
    return annotations.get(marks.ORIGIN) == marks.RUNTIME


def anything(value: bytes) -> bool:  # noqa: ARG001
    """The `leftover` of a store that git has nothing in."""
    return True


def declared_by(store: Store, obj: Object) -> str:
    """As `declared`. What is being deleted is declared no more: a commit took it away, and it waits for finalizers."""
    if obj["metadata"].get("deletionTimestamp"):
        return ""
    annotations = obj["metadata"].get("annotations") or {}
    path = origins.path_in(annotations)
    return "" if path and committing(store, annotations.get(marks.CLUSTER, "")) else path


def committing(store: Store, cluster: str) -> bool:
    """Whether writes of this workspace are commits."""
    workspace = tree.workspace_of(store, cluster)
    return workspace is not None and (workspace.writes or tree.fleet(store).writes) == COMMIT


def write(store: Store, op: Op) -> Future[list[int]]:
    """Writes an operation of a loop. The end of an object that stands in git, or a change of it, is asked for instead:
    it comes later."""
    return store.write(*_settled(store, op))


def _settled(store: Store, op: Op) -> tuple[Op, ...]:
    if not isinstance(op, Delete | Put) or not op.expect:
        return (op,)
    value = op.value if isinstance(op, Put) else None
    record = store.get(op.key)
    if record is None or _MENTION not in record.value or (value is not None and _DYING in value):
        return (op,)
    if not committing(store, op.key.cluster):
        return (op,)
    return Intent(op.key, _AUTHOR, value, op.expect).ops()


def delete_all(store: Store, kind: ServedKind, records: Iterable[Record]) -> int:
    """Deletes what git does not declare, dependents in the background; how many objects changed.

    In one transaction; where another writer comes between, one by one, and what changed meanwhile is left for the next
    look.
    """
    ops = [deletion.operation(kind, r, IN_BACKGROUND) for r in records if not declared(store, r.value)]
    return write_all(store, [op for op in ops if op is not None])


def write_all(store: Store, ops: list[Op]) -> int:
    """Together if possible, else each for itself; how many were written."""
    if not ops:
        return 0
    try:
        store.write(*(each for op in ops for each in _settled(store, op))).result()
    except Conflict:
        return sum(_written(store, op) for op in ops)
    return len(ops)


def _written(store: Store, op: Op) -> bool:
    try:
        write(store, op).result()
    except Conflict:
        return False
    return True


def replaced(record: Record, obj: Object) -> Op:
    """The write of a changed object, or its end if its deletion waited for no more than this."""
    if finished(obj):
        return Delete(record.key, record.revision)
    return Put(record.key, codec.encode(obj), record.revision, record.stamp)


def release(store: Store, key: Key, finalizer: str) -> None:
    """Takes a finalizer away, and the object with its last one. Raises the store's Conflict."""
    record = store.get(key)
    if record is None:
        return
    obj = codec.decode(record.value, record.revision)
    found = obj["metadata"].get("finalizers") or []
    if finalizer not in found:
        return
    write(store, replaced(record, without_finalizer(obj, finalizer))).result()


def without_finalizer(obj: Object, finalizer: str) -> Object:
    kept = [f for f in obj["metadata"].get("finalizers") or () if f != finalizer]
    metadata = {k: v for k, v in obj["metadata"].items() if k != "finalizers"}
    return {**obj, "metadata": {**metadata, "finalizers": kept} if kept else metadata}
