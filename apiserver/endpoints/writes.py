"""POST, PUT, PATCH and DELETE: bodies and options in, the registry's outcome out.

The registry's write path waits for the disk, so it runs in a few threads; concurrent writers share one commit there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson

from apiserver.admission import newworkspaces, requester, topology, unenforced
from apiserver.admission.committing import KEPT_FROM_GIT, SECRETS, CommitSink
from apiserver.admission.completion import completing, vetting
from apiserver.admission.marking import Marking
from apiserver.admission.place import Place
from apiserver.admission.proposing import ProposalSink
from apiserver.admission.shardlabels import ShardLabels
from apiserver.admission.writes import COMMIT, IN_GIT, POLICIES, PROPOSE, check_status
from apiserver.auth import reserving
from apiserver.auth.guards import RequestWriter, guard
from apiserver.auth.scopes import full_name, in_scope
from apiserver.endpoints import bodies, bulk, finishing, podactions, reviews, scale, yamlbodies
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.deletes import delete_answer, delete_options
from apiserver.endpoints.exchange import Exchange
from apiserver.endpoints.forms import YAML, as_yaml, form_of
from apiserver.endpoints.lanes import lane_of, lanes
from apiserver.endpoints.negotiation import OBJECT, negotiate
from apiserver.endpoints.patching import patcher, repeated_in_patch
from apiserver.endpoints.paths import Scope
from apiserver.endpoints.realms import fleet
from apiserver.endpoints.sight import PartialSight
from apiserver.endpoints.token_requests import request_token
from apiserver.endpoints.views import labelled
from apiserver.endpoints.write_options import write_options
from apiserver.model import marks
from apiserver.model.errors import (
    StatusError,
    bad_request,
    method_not_allowed,
    no_such_resource,
)
from apiserver.model.origins import Origin, file_of
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import codec, deletion, eviction, podbinding, rest
from apiserver.registry.commits import Commits
from apiserver.registry.holding import check_holder
from apiserver.registry.rest_options import (
    IGNORE,
    STRICT,
    Collection,
    Outcome,
    Vet,
    WriteOptions,
)
from apiserver.registry.room import BESIDES, Room, room_of
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.waiter import Waiter
from apiserver.storage.protocol import Store

Object = dict[str, Any]
T = TypeVar("T")

_THREADS = 16
_LARGE = 64 * 1024
"""Bytes of a body that take too long to read for others to wait."""
_WAITING = 128
"""Threads for writes that wait for a commit: the more there are, the more go into one."""
_ACTIONS = podactions.ACTIONS | {"token"}
"""Subresources that are created and leave nothing of their own behind."""


class Writes:
    """Answers writes. One per process."""

    def __init__(self, store: Store, disabled: Iterable[str] = (), most_objects: int = 0) -> None:
        """`disabled`: admission plugins to do without (admission/completion.py). `most_objects`: that a workspace may
        have of which nobody says it, 0 for any."""
        self._most_objects = most_objects
        self._store = store
        self._disabled = frozenset(disabled)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="write")
        self._waiting = ThreadPoolExecutor(_WAITING, thread_name_prefix="commit")
        self._commits = Commits(store)

    def close(self) -> None:
        for threads in (self._threads, self._waiting):
            threads.shutdown(wait=False, cancel_futures=True)

    async def serve(self, asking: Asking, verb: str) -> None:
        """Raises StatusError."""
        kind, subresource = asking.kind, asking.place.subresource
        if subresource and subresource not in kind.subresources:
            raise no_such_resource()
        if not kind.storage:
            if verb != "create":
                raise method_not_allowed()
            if podactions.is_bindings(kind):
                check_holder(self._store)
                await self._bind(podactions.of_pods(asking))
                return
            await reviews.review(asking.inside())
            return
        if subresource != "token":
            check_holder(self._store)
        if subresource in _ACTIONS:
            if verb != "create" or not asking.place.name:
                raise method_not_allowed()
            await self._act(asking)
            return
        if verb not in kind.verbs and not subresource and not (verb == "create" and kind.ending):
            raise method_not_allowed()
        if subresource and verb not in (("update",) if subresource == "finalize" else ("update", "patch")):
            raise method_not_allowed()
        if bool(asking.place.name) != (verb not in ("create", "deletecollection")):
            raise method_not_allowed()
        if subresource == "status" and asking.world.record is not None:
            if _administers(asking) and asking.place.name == finishing.NAME:
                await finishing.finish(asking, verb, finishing.removed)
                return
            check_status(kind, asking.place.name, administers=reserving.is_privileged(asking.user))
        _check_seen(asking)
        await getattr(self, f"_{verb}")(asking)

    async def run(self, asking: Asking, at: Collection, work: Callable[[], T]) -> T:
        if isinstance(at.sink, CommitSink):
            return await _while_there(asking.exchange, at.sink.waiter, self._run(at, work))
        return await self._run(at, work)

    async def _run(self, at: Collection, work: Callable[[], T]) -> T:
        if at.kind.conversion is not None:
            return await lanes.run(lane_of(at.store, at.cluster, at.kind), work)
        threads = self._threads if at.sink is None else self._waiting
        return await asyncio.get_running_loop().run_in_executor(threads, work)

    async def _act(self, asking: Asking) -> None:
        match asking.place.subresource:
            case "token":
                await request_token(asking)
            case "binding":
                await self._bind(asking)
            case _:
                await self._evict(asking)

    async def _bind(self, asking: Asking) -> None:
        binding, dry = await podactions.read_binding(asking)
        at, namespace = self._collection(asking), namespace_of(asking)
        name = asking.place.name or str((binding.get("metadata") or {}).get("name") or "")
        if asking.place.subresource and topology.PLUGIN not in self._disabled:
            topology.complete_binding(Place(at.store, at.cluster), binding)
        await self.run(asking, at, lambda: podbinding.bind(at, namespace, name, binding, dry_run=dry))
        await asking.exchange.answer(201, podactions.DONE)

    async def _evict(self, asking: Asking) -> None:
        options = await podactions.read_eviction(asking)
        at, namespace, name = self._collection(asking), namespace_of(asking), asking.place.name
        of_budgets = podactions.budgets_of(asking)
        budgets = self._collection(of_budgets) if of_budgets else None
        await self.run(asking, at, lambda: eviction.evict(at, budgets, namespace, name, options))
        await asking.exchange.answer(201, podactions.DONE)

    async def _create(self, asking: Asking) -> None:
        options = write_options(asking.exchange, "create")
        obj, options = await read(asking, options)
        at, namespace = self._collection(asking), namespace_of(asking)
        outcome = await self.run(asking, at, lambda: rest.create(at, namespace, obj, options))
        await answer(asking, outcome)

    async def _update(self, asking: Asking) -> None:
        options = write_options(asking.exchange, "update")
        place, namespace, at = asking.place, namespace_of(asking), self._collection(asking)
        if place.subresource == "scale":
            body = bodies.read_object(await asking.exchange.body(), asking.exchange.header(b"content-type"))
            outcome = await self.run(
                asking, at, lambda: scale.update(at, namespace, place.name, lambda _: body, options)
            )
            await scaled(asking, outcome)
            return
        obj, options = await read(asking, options)
        outcome = await self.run(
            asking, at, lambda: rest.update(at, namespace, place.name, obj, options, place.subresource)
        )
        await answer(asking, outcome)

    async def _patch(self, asking: Asking) -> None:
        exchange, place = asking.exchange, asking.place
        media = bodies.media_type(exchange.header(b"content-type"))
        options = write_options(exchange, "patch", applies=media == bodies.APPLY)
        body = await exchange.body()
        at, namespace = self._collection(asking), namespace_of(asking)
        if media == bodies.APPLY:
            applied = await parsed(body, lambda: read_applied(asking, body, options))
            if place.subresource == "scale":
                outcome = await self.run(asking, at, lambda: scale.apply(at, namespace, place.name, applied, options))
                await scaled(asking, outcome)
                return
            outcome = await self.run(
                asking, at, lambda: rest.apply(at, namespace, place.name, applied, options, place.subresource)
            )
            await answer(asking, outcome)
            return
        patch = patcher(asking.kind, media, body)
        options = with_repeated(options, repeated_in_patch(media, body) if options.validation != IGNORE else [])
        if place.subresource == "scale":
            outcome = await self.run(asking, at, lambda: scale.update(at, namespace, place.name, patch.change, options))
            await scaled(asking, outcome)
            return
        subresource, strategic = place.subresource, patch.strategic
        outcome = await self.run(
            asking, at, lambda: rest.patch(at, namespace, place.name, patch.change, options, subresource, strategic)
        )
        await answer(asking, outcome)

    async def _delete(self, asking: Asking) -> None:
        options = await delete_options(asking.exchange)
        at, namespace, name = self._collection(asking), namespace_of(asking), asking.place.name
        outcome = await self.run(asking, at, lambda: deletion.delete(at, namespace, name, options))
        await delete_answer(asking, outcome, options)

    async def _deletecollection(self, asking: Asking) -> None:
        options = await delete_options(asking.exchange)
        at = self._collection(asking)
        namespace_of(asking)  # kube-apiserver knows no such path across namespaces
        gone = await self.run(asking, at, lambda: deletion.delete_many(at, bulk.matching(asking), options))
        asking.exchange.warnings += deletion.warnings(asking.kind, options)
        await asking.exchange.answer(200, bulk.as_list(asking.kind, gone, at.store.revision()))

    def _collection(self, asking: Asking) -> Collection:
        """What a write is done to, with the write policy of its world."""
        world, store = asking.world, asking.world.realm.store
        cluster = world.cluster or ""
        kinds = world.realm.catalog.kinds(cluster)
        place = Place(store, cluster, asking.place.namespace)
        # Who comes from elsewhere is nobody of this workspace, whatever they are called.
        acting = asking.user if world.view is None else in_scope(asking.bearer, cluster)
        writer = RequestWriter(world.realm.authorizer, store, acting, asking.bearer, cluster, world.path)
        granted = guard(writer, asking.kind, asking.place.subresource)
        seen = granted if asking.sight is None else _settling(asking.sight, granted)
        vet = vetting(asking.kind, place, seen, self._disabled)
        complete = requester.stamping(asking.kind, acting.as_json(), completing(asking.kind, place, self._disabled))
        if world.scope is Scope.TARGET or world.record is None:
            return Collection(store, asking.kind, kinds, cluster, complete=complete, vet=vet)
        writes = writes_of(asking)
        if writes not in POLICIES:
            raise StatusError(501, "NotImplemented", f"writes are {writes} here, which is not supported yet")
        if asking.kind.storage == WORKSPACES:
            user, stored = acting.as_json(), writes not in IN_GIT
            new = newworkspaces.NewWorkspace(store, world.record, asking.kind, user, stored)
            complete, vet = new.completing(complete), new.vetting(vet)
        if _administers(asking):
            marking = Marking(store, world.record, asking.kind)
            return Collection(store, asking.kind, kinds, cluster, admit=marking.admit, vet=marking.vet)
        if ShardLabels.concern(asking.kind, writes):
            labels = ShardLabels(store, world.record, asking.kind)
            return Collection(store, asking.kind, kinds, cluster, admit=labels.admit, vet=labels.vet)
        return Collection(
            store,
            asking.kind,
            kinds,
            cluster,
            marks={marks.CLUSTER: cluster},
            origin={marks.ORIGIN: marks.RUNTIME},
            admit=POLICIES[writes](asking.kind, world.record),
            complete=complete,
            vet=vet,
            sink=self._sink(asking, world.record, writes),
            room=partial(self._room, asking),
        )

    def _sink(self, asking: Asking, record: WorkspaceRecord, writes: str) -> CommitSink | None:
        """Where writes go first, None: to the store."""
        store = asking.world.realm.store
        if writes == COMMIT:
            return CommitSink(store, self._commits, record, asking.user.name)
        if writes == PROPOSE:
            return ProposalSink(store, self._commits, record, full_name(asking.user))
        return None

    def _room(self, asking: Asking) -> Room | None:
        """Looked up only for what is new."""
        world = asking.world
        if asking.kind.storage in BESIDES:
            return None
        return room_of(world.realm.store, world.path, world.cluster or "", self._most_objects)


def _administers(asking: Asking) -> bool:
    """Whether a LogicalCluster is written by who administers everything."""
    return asking.kind.storage == LOGICAL_CLUSTERS and reserving.is_privileged(asking.user)


def _check_seen(asking: Asking) -> None:
    """Before anything is said of the object that a path names: raises StatusError 404 for one that is not seen."""
    record = asking.world.realm.store.get(asking.key()) if asking.place.name and asking.sight is not None else None
    if record is not None and not asking.sees(record):
        raise asking.absent()


def _settling(sight: PartialSight, others: Vet) -> Vet:
    """Nothing is written that whoever writes does not see, before and after."""

    def vet(new: Object, live: Object | None) -> None:
        sight.settle(new, live)
        others(new, live)

    return vet


async def _while_there(exchange: Exchange, waiter: Waiter, work: Awaitable[T]) -> T:
    """`work`; the waiter leaves when its client does, or when the time of the request is over."""
    going = asyncio.ensure_future(exchange.gone())
    going.add_done_callback(lambda task: waiter.leave() if not task.cancelled() else None)
    try:
        return await work
    except asyncio.CancelledError:
        waiter.leave()
        raise
    finally:
        going.cancel()


def writes_of(asking: Asking) -> str:
    """The mode of writes of the request's workspace; "" in other worlds."""
    record = asking.world.record
    return (record.writes or fleet(asking.world.realm).writes) if record is not None else ""


def namespace_of(asking: Asking) -> str:
    """Raises StatusError 405 for a namespaced kind without one."""
    if asking.kind.namespaced and not asking.place.namespace:
        raise method_not_allowed()
    return asking.place.namespace if asking.kind.namespaced else ""


async def read(asking: Asking, options: WriteOptions) -> tuple[Object, WriteOptions]:
    """The body of a POST or PUT, and the options with what stands twice in it."""
    body, content_type = await asking.exchange.body(), asking.exchange.header(b"content-type")
    obj = await parsed(body, lambda: bodies.read_object(body, content_type, asking.kind.kind))
    if options.validation == IGNORE:
        return obj, options
    return obj, with_repeated(options, bodies.repeated(body, content_type))


def read_applied(asking: Asking, body: bytes, options: WriteOptions) -> Object:
    """The body of an apply patch. What stands twice in it is an error or a warning of its own."""
    applied = bodies.read_apply(body)
    text = bodies.repeated_in_apply(body) if options.validation != IGNORE else ""
    if text and options.validation == STRICT:
        raise bad_request(f"error strict decoding YAML: {text}")
    asking.exchange.warnings += yamlbodies.lines(text) if text else []
    return applied


def with_repeated(options: WriteOptions, texts: list[str]) -> WriteOptions:
    return replace(options, repeated=tuple(texts)) if texts else options


async def parsed(body: bytes, read: Callable[[], T]) -> T:
    """What `read` makes of a body: in a thread if it is large, so that other requests are answered meanwhile."""
    if len(body) < _LARGE:
        return read()
    return await asyncio.get_running_loop().run_in_executor(None, read)


async def scaled(asking: Asking, outcome: Outcome) -> None:
    """The Scale of the object that was written."""
    asking.exchange.warnings += outcome.warnings
    await asking.exchange.answer(200, orjson.dumps(outcome.obj))


async def answer(asking: Asking, outcome: Outcome) -> None:
    """The written object, in the form that the client accepts."""
    exchange = asking.exchange
    exchange.warnings += [line for text in outcome.warnings for line in yamlbodies.lines(text)]
    exchange.warnings += unenforced.warnings(asking.kind)
    in_git = Origin(file_of(outcome.obj)).in_git
    if asking.kind.storage == SECRETS and writes_of(asking) == COMMIT and not in_git:
        exchange.warnings.append(KEPT_FROM_GIT)
    media = negotiate(exchange.header(b"accept"), many=False)
    status = 201 if outcome.created else 200
    key = asking.key_of(outcome.obj)
    if asking.sight is not None:
        labelled(outcome.obj, asking.sight.labels(key))
    if media.form == OBJECT:
        body = orjson.dumps(asking.view.told(key, outcome.obj))
    else:
        revision = int(outcome.obj["metadata"].get("resourceVersion") or 0)
        body = form_of(asking.view, media, exchange).one(key, codec.encode(outcome.obj), revision)
    await exchange.answer(status, as_yaml(body) if media.yaml else body, YAML if media.yaml else b"application/json")
