"""A write of a LogicalCluster's status: initializers and terminators that are done.

Their names leave LogicalCluster and Workspace in one transaction. Called by the view through which a program works, for
the program itself (lifecycleviews); and by the write path for who administers everything, who may go on without a
program that does not answer. What else the status says follows from that and from what the server knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import orjson

from apiserver.endpoints import bodies
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.patching import patcher
from apiserver.endpoints.write_options import write_options
from apiserver.model import clock, paths
from apiserver.model.errors import Cause, StatusError, conflict, forbidden, invalid, no_such_resource
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import codec
from apiserver.registry.holding import check_holder
from apiserver.registry.lifecycles import LIFECYCLES, Lifecycle, without
from apiserver.registry.tree import WorkspaceRecord, workspace_at
from apiserver.storage.protocol import Conflict, Put, Record, Store

Object = dict[str, Any]
Change = Callable[[Object], Object]
Done = tuple[Lifecycle, str]
Judge = Callable[[Object, Object], list[Done]]
"""(the LogicalCluster, as it is sent) → the programs that are done by that; [] where nothing is said anew. Raises
StatusError."""

NAME = "cluster"
"""That of every LogicalCluster."""
_GROUP, _RESOURCE = "core.kcp.io", "logicalclusters"
_RETRIES = 10


async def finish(asking: Asking, verb: str, judge: Judge) -> None:
    """Answers an update or a patch. Raises StatusError 409, 422, 503, and what `judge` does."""
    store, exchange, record = asking.world.realm.store, asking.exchange, asking.world.record
    assert record is not None
    check_holder(store)
    options = write_options(exchange, verb)
    body, media = await exchange.body(), bodies.media_type(exchange.header(b"content-type"))
    if verb == "patch":
        change = patcher(asking.kind, media, body).change
    else:
        sent = bodies.read_object(body, exchange.header(b"content-type"), asking.kind.kind)

        def change(_live: Object) -> Object:
            return sent

    write = _dry if options.dry_run else _stored
    obj = await asyncio.get_running_loop().run_in_executor(None, _write, store, record, change, judge, write)
    await exchange.answer(200, orjson.dumps(obj))


def removed(live: Object, new: Object) -> list[Done]:
    """What who administers everything says by a status: who of those that the workspace waits for is not waited for any
    more. Raises StatusError 403 and 422."""
    for each in LIFECYCLES:
        grown = [name for name in each.left(new) if name not in each.left(live)]
        if grown:
            raise _invalid(each.field, grown, f"status.{each.field} must not grow")
    done = [(each, name) for each in LIFECYCLES for name in each.left(live) if name not in each.left(new)]
    fields = dict.fromkeys(each.field for each in LIFECYCLES)
    if {**live["status"], **fields} != {**new["status"], **fields} or not all(each.awaits(live, n) for each, n in done):
        why = "its status is computed by the server; only what the workspace waits for now can be taken out of it"
        raise forbidden(_RESOURCE, _GROUP, NAME, why)
    return done


def _check(live: Object, new: Object) -> None:
    """Raises StatusError 409 where `new` was made from another object than `live`, 422 where it is none."""
    metadata, status = new.get("metadata"), new.get("status")
    if not isinstance(metadata, dict) or not isinstance(status, dict):
        raise _invalid("", status, "metadata and status must be objects")
    for each in LIFECYCLES:
        if not isinstance(status.get(each.field) or [], list):
            raise _invalid(each.field, status[each.field], "must be a list")
    if metadata.get("resourceVersion") not in (None, "", live["metadata"]["resourceVersion"]):
        raise conflict(_RESOURCE, _GROUP, NAME)


def _invalid(field: str, value: Any, why: str) -> StatusError:
    text = f"Invalid value: {orjson.dumps(value).decode()}: {why}"
    return invalid("LogicalCluster", _GROUP, NAME, [Cause("FieldValueInvalid", text, f"status.{field}".strip("."))])


def _write(store: Store, workspace: WorkspaceRecord, change: Change, judge: Judge, write: _Write) -> Object:
    """The LogicalCluster as it is then."""
    key = Key(LOGICAL_CLUSTERS, workspace.cluster, "", NAME)
    for _ in range(_RETRIES):
        found = store.get(key)
        if found is None:
            raise no_such_resource()
        live = codec.decode(found.value, found.revision)
        new = change(codec.decode(found.value, found.revision))
        _check(live, new)
        done = judge(live, new)
        if not done:
            return live
        at = clock.now()
        both = [found, *_above(store, workspace)]
        made = [_without(orjson.loads(each.value), done, at) for each in both]
        ops = [Put(r.key, codec.encode(m), r.revision, r.stamp) for r, m in zip(both, made, strict=True)]
        try:
            return codec.decode(codec.encode(made[0]), write(store, ops, found))
        except Conflict:
            continue
    raise conflict(_RESOURCE, _GROUP, NAME)


def _without(obj: Object, done: list[Done], at: str) -> Object:
    for lifecycle, name in done:
        obj = without(obj, lifecycle, name, at)
    return obj


def _above(store: Store, workspace: WorkspaceRecord) -> Iterator[Record]:
    """The Workspace that stands for it; a home has none."""
    parent = workspace_at(store, workspace.parent) if workspace.parent else None
    name = paths.base(workspace.path)
    found = store.get(Key(WORKSPACES, parent.cluster, "", name)) if parent is not None else None
    if found is not None:
        yield found


_Write = Callable[[Store, list[Put], Record], int]
"""Its revision behind a write."""


def _stored(store: Store, ops: list[Put], _found: Record) -> int:
    return store.write(*ops).result()[0]


def _dry(_store: Store, _ops: list[Put], found: Record) -> int:
    return found.revision
