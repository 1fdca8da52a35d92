"""WATCH: a stream of events, one JSON object a line.

    resourceVersion unset or 0   what there is as ADDED, then changes
    resourceVersion N            changes after N; if the log no longer reaches back, one ERROR event with code 410
    sendInitialEvents            what there is as ADDED, a bookmark that says so, then changes

A watch first catches up by reading (a snapshot, then the log in parts, yielding between them) and joins the hub at the
moment when it has seen all that the hub has handed out: nothing is missed and nothing comes twice.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import orjson

from apiserver.endpoints.asking import Asking
from apiserver.endpoints.exchange import Exchange, Headers
from apiserver.endpoints.following import Following
from apiserver.endpoints.forms import form_of
from apiserver.endpoints.hub import CHUNK, Hub
from apiserver.endpoints.listing import matches
from apiserver.endpoints.negotiation import negotiate
from apiserver.endpoints.options import WatchOptions, too_new, watch_options
from apiserver.endpoints.selection import Selection
from apiserver.endpoints.sight import ScanPart
from apiserver.endpoints.watcher import ADDED, Interest, OpenWatch, WatchEvent
from apiserver.model.errors import StatusError, expired
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry import oldgroups
from apiserver.registry.tree import cluster_key
from apiserver.storage.protocol import Change, Compacted, Store

_HEADERS: Headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]
_PAGE = 500
_LONGEST = 366 * 86400
"""Seconds that a watch may ask for; timers end somewhere."""


async def watch(asking: Asking) -> None:
    """Answers until the client goes away, the time is up or the watcher lags too far behind."""
    exchange = asking.exchange
    options = watch_options(exchange)
    if asking.place.name and not options.fields:
        exchange.query["fieldSelector"] = [f"metadata.name={asking.place.name}"]
        options = watch_options(exchange)
    form = form_of(asking.view, negotiate(exchange.header(b"accept"), many=False), exchange)
    selection = Selection(asking.kind, options.labels, options.fields)
    current = asking.sight.since if asking.sight is not None else asking.world.realm.store.revision()
    if options.revision and options.revision > current:
        raise too_new(options.revision, current)
    interest = Interest(asking.kind.storage, asking.world.cluster, asking.namespace)
    who = asking.world.lets_in.who if asking.world.lets_in is not None else ""
    watcher = OpenWatch(interest, selection, form, options.bookmarks, (options.labels, options.fields, who))
    await exchange.start(200, [*_HEADERS, *exchange.said])
    watcher.write = exchange.writer()
    if asking.world.cluster is not None:
        watcher.stands = partial(_stands, asking)
    if options.initial is False:
        watcher.seen = options.revision or current
    elif not options.initial:
        watcher.seen = options.revision or 0
    serving = asyncio.ensure_future(_serve(asking, watcher, options))
    leaving = asyncio.ensure_future(exchange.gone())
    if asking.kind.conversion is None:  # else it is fed in another thread
        watcher.on_drop = serving.cancel
    try:
        await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        asking.world.realm.hub.leave(watcher)
        for task in (serving, leaving):
            task.cancel()
        with suppress(asyncio.CancelledError, ConnectionError):
            await serving


def _stands(asking: Asking) -> bool:
    """Whether the workspace is there, answers, and serves the kind just as it did when the request came, also to who
    asked."""
    kind, world = asking.kind, asking.world
    if world.lets_in is not None and not world.lets_in.still():
        return False
    if world.record is not None and world.realm.store.get(cluster_key(world.record.cluster)) is None:
        return False
    if world.inactive and kind.storage != LOGICAL_CLUSTERS:
        return False
    if world.view is not None:
        with suppress(StatusError):
            found = world.view.kind(kind.group, kind.version, kind.resource)
            return found is not None and found.digest == kind.digest
        return False
    found = asking.world.kinds().by_resource(kind.group, kind.version, kind.resource)
    if found is not None and kind.spelled:
        found = oldgroups.spelled(found, kind.spelled)
    return found is not None and found.digest == kind.digest


def _follow(asking: Asking) -> Callable[[Change], bool] | None:
    """What a watch goes by besides its objects; None where that is nothing."""
    follows = [part.follow for part in (asking.world.rights, asking.sight) if part is not None]
    return (lambda change: all(follow(change) for follow in follows)) if follows else None


async def _serve(asking: Asking, watcher: OpenWatch, options: WatchOptions) -> None:
    exchange, hub = asking.exchange, asking.world.realm.hub
    watcher.follow = _follow(asking)
    loop = asyncio.get_running_loop()
    seconds = min(options.timeout, _LONGEST) if options.timeout else random.randint(1800, 3600)  # noqa: S311 (spreads reconnects; no secret)
    timer = loop.call_later(seconds, _time_up, watcher, hub)
    try:
        await exchange.chunk(b"")
        if asking.kind.conversion is not None:
            await Following(asking, watcher).serve(options)
            return
        if not await _catch_up(asking, watcher, options):
            return
        while data := await watcher.take():
            await exchange.chunk(data)
        await exchange.chunk(b"", more=False)
    finally:
        timer.cancel()
        hub.leave(watcher)


def _time_up(watcher: OpenWatch, hub: Hub) -> None:
    if watcher.bookmarks and watcher.joined:
        watcher.bookmark(hub.position)
    watcher.close()


async def _catch_up(asking: Asking, watcher: OpenWatch, options: WatchOptions) -> bool:
    """Sends what happened before the watch and joins the hub; False if the answer ended with an error."""
    exchange, hub, sight = asking.exchange, asking.world.realm.hub, asking.sight
    store = hub.store
    seen = watcher.seen
    if not seen:
        seen = await _initial(asking, watcher)
        if sight is not None and not _noticed(store, watcher, sight.since, seen):
            await exchange.chunk(watcher.flush(), more=False)
            return False
        if options.initial:
            watcher.bookmark(seen, initial_end=True)
            await exchange.chunk(watcher.flush())
    try:
        while not hub.join(watcher, seen):
            seen = await _log(exchange, watcher, store, seen)
            if watcher.closed:
                break
    except Compacted as error:
        await exchange.chunk(watcher.flush() + _error(error), more=False)
        return False
    rights = asking.world.rights
    if not watcher.stands() or (rights is not None and not rights.hold()):
        watcher.close()  # since the request came; from now on the hub looks
    return True


def _noticed(store: Store, watcher: OpenWatch, since: int, until: int) -> bool:
    """Tells the watch what changed of what it sees while it read the snapshot; False if that ends it. Raises the
    store's Compacted."""
    while since < until:
        changes = store.changes(since, CHUNK)
        if not all(watcher.notice(change) for change in changes if change.revision <= until):
            return False
        since = changes[-1].revision if changes else until
    return True


async def _initial(asking: Asking, watcher: OpenWatch) -> int:
    """Sends a snapshot as ADDED events; returns its revision."""
    exchange, selection, form = asking.exchange, watcher.selection, watcher.form
    page = asking.scan(ScanPart(asking.namespace, None, _PAGE))
    while True:
        for record in page.records:
            if not matches(selection, form.view, record):
                continue
            watcher.put(form.event(ADDED, record.key, record.value, record.revision, watcher.first))
        await exchange.chunk(watcher.flush())
        if page.more is None:
            return page.revision
        page = asking.scan(ScanPart(asking.namespace, page.more, _PAGE, page.revision))


async def _log(exchange: Exchange, watcher: OpenWatch, store: Store, seen: int) -> int:
    """Sends the next part of the log after `seen`; returns how far that reaches."""
    changes = store.changes(seen, CHUNK)
    resource, cluster, _ = watcher.interest
    for change in changes:
        if not watcher.notice(change):
            break
        if change.key.resource == resource and cluster in (None, change.key.cluster):
            watcher.offer(WatchEvent(change))
    data = watcher.flush()
    if data:
        await exchange.chunk(data)
    else:
        await asyncio.sleep(0)
    return changes[-1].revision if changes else seen


def _error(error: Compacted) -> bytes:
    return orjson.dumps({"type": "ERROR", "object": expired(str(error)).as_status()}) + b"\n"
