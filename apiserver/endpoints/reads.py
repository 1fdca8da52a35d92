"""GET of an object and of a list.

The hot path: with neither selector nor table nothing is decoded, an answer is the stored bytes joined. A list is read
from one snapshot; a page names its revision in the continue token, and the next page is read at it.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from apiserver.endpoints import continuation
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.continuation import LATEST, Continuation
from apiserver.endpoints.exchange import JSON
from apiserver.endpoints.forms import YAML, Form, as_yaml, form_of
from apiserver.endpoints.negotiation import negotiate
from apiserver.endpoints.options import ListOptions, list_options, revision, too_new
from apiserver.endpoints.selection import Selection
from apiserver.endpoints.views import View
from apiserver.model.errors import expired
from apiserver.model.keys import Key
from apiserver.storage.protocol import Compacted, Page, Record

_LARGE = 2000
"""Lists of more objects are read in a thread."""
_SIZES = 10_000
_readers = ThreadPoolExecutor(2, thread_name_prefix="list")
"""Two, so that one long list does not wait for another; more would only take the interpreter from each other."""
_BATCH = 500
"""Records read at a time while a selector looks for matches."""

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


async def get(asking: Asking) -> None:
    """One object."""
    exchange = asking.exchange
    store = asking.world.realm.store
    at = revision(exchange.parameter("resourceVersion")) if exchange.scope["query_string"] else None
    if at and at > store.revision():
        raise too_new(at, store.revision())
    record = store.get(asking.key())
    if record is None:
        raise asking.absent()
    media = negotiate(exchange.header(b"accept"), many=False)
    form = form_of(asking.view, media, exchange)
    if asking.kind.conversion is None:
        body = form.one(record.key, record.value, record.revision)
    else:
        body = await asking.convert(lambda: form.one(record.key, record.value, record.revision))
    await exchange.answer(200, as_yaml(body) if media.yaml else body, YAML if media.yaml else JSON)


async def list_(asking: Asking) -> None:
    """Objects of a namespace, a workspace or all of them."""
    exchange = asking.exchange
    options = list_options(exchange)
    media = negotiate(exchange.header(b"accept"), many=True)
    form = form_of(asking.view, media, exchange)
    selection = Selection(asking.kind, options.labels, options.fields)

    def read() -> bytes:
        found = _read(asking, options, selection, form)
        if not (options.limit or selection):
            _remember(asking, len(found.records))
        body = form.many(found.records, found.revision, found.token, found.remaining)
        return as_yaml(body) if media.yaml else body

    if asking.kind.conversion is not None:
        body = await asking.convert(read)
    elif _is_large(asking, options):
        # In a thread, so that other requests are answered meanwhile; for a small list the way there costs too much.
        body = await asyncio.get_running_loop().run_in_executor(_readers, read)
    else:
        body = read()
    await exchange.answer(200, body, YAML if media.yaml else JSON)


def _is_large(asking: Asking, options: ListOptions) -> bool:
    """Whether the list may take longer than other requests should wait."""
    if asking.world.cluster is None:
        return True
    if options.limit is not None and options.limit <= _LARGE and not (options.labels or options.fields):
        return False
    if "metadata.name=" in options.fields:
        return False
    found = asking.world.realm.sizes.get(_place(asking))
    if found is None:
        store = asking.world.realm.store
        found = _remember(asking, store.count(asking.kind.storage, asking.world.cluster, asking.namespace))
    return found > _LARGE


def _place(asking: Asking) -> tuple[str, str | None, str | None]:
    return asking.kind.storage, asking.world.cluster, asking.namespace


def _remember(asking: Asking, size: int) -> int:
    """Counting takes a tenth of the time of listing, and lists seldom grow from one time to the next."""
    sizes = asking.world.realm.sizes
    if len(sizes) >= _SIZES:
        sizes.clear()
    sizes[_place(asking)] = size
    return size


class Found(NamedTuple):
    """A page of matches. `remaining`: objects behind it, None if unknown or none."""

    records: list[Record]
    revision: int
    token: str
    remaining: int | None


def _read(asking: Asking, options: ListOptions, selection: Selection, form: Form) -> Found:
    """Raises StatusError 400, 410, 504."""
    cluster, namespace = asking.world.cluster, asking.namespace
    current = asking.world.realm.store.revision()
    at: int | None = None
    after: Key | None = None
    token: Continuation | None = None
    if options.token:
        token = continuation.decode(options.token, asking.kind.storage, cluster, namespace)
        at, after = (None if token.revision == LATEST else token.revision), token.after
    elif options.exact:
        at = options.revision
    newest = max(at or 0, options.revision or 0)
    if newest > current:
        raise too_new(newest, current)
    try:
        if selection:
            return _search(asking, selection, form, _From(at, after, options.limit))
        page = _scan(asking, namespace, _From(at, after, options.limit))
        return Found(page.records, page.revision, _next(asking, page), page.remaining or None)
    except Compacted:
        if token is None:
            raise expired("The resourceVersion for the provided list is too old.") from None
        raise expired(_EXPIRED, continuation.encode(token.after, LATEST, cluster, namespace)) from None


class _From(NamedTuple):
    at: int | None
    after: Key | None
    limit: int | None


def _scan(asking: Asking, namespace: str | None, start: _From) -> Page:
    page = asking.world.realm.store.scan(
        asking.kind.storage,
        asking.world.cluster,
        namespace,
        after=start.after,
        limit=start.limit,
        at=start.at,
    )
    if asking.kind.conversion is not None:
        asking.view.prepare(record.value for record in page.records)
    return page


def _next(asking: Asking, page: Page) -> str:
    if page.more is None:
        return ""
    return continuation.encode(page.more, page.revision, asking.world.cluster, asking.namespace)


def _search(asking: Asking, selection: Selection, form: Form, start: _From) -> Found:
    """Reads on until the page is full of matches or the end is reached, always at the first batch's revision."""
    namespace = asking.namespace
    if namespace is None and selection.namespace and asking.kind.namespaced and asking.world.cluster is not None:
        namespace = selection.namespace
    single = _single(asking, selection, namespace)
    if single is not None and start.at is None and start.after is None:
        return _lookup(asking, selection, form, single)
    view = form.view
    found: list[Record] = []
    at, after = start.at, start.after
    while True:
        page = _scan(asking, namespace, _From(at, after, _BATCH if start.limit else None))
        at = page.revision
        for i, record in enumerate(page.records):
            if not matches(selection, view, record):
                continue
            found.append(record)
            if start.limit and len(found) == start.limit and (page.more or i + 1 < len(page.records)):
                return Found(found, at, _token(asking, record.key, at), None)
        if page.more is None:
            return Found(found, at, "", None)
        after = page.more


def matches(selection: Selection, view: View, record: Record) -> bool:
    """Decodes the object only if neither its key nor its bytes decide."""
    if not selection.key_matches(record.key):
        return False
    if not selection.needs_object:
        return True
    return selection.may_match(record.value) and selection.object_matches(
        view.decoded(record.key, record.value, record.revision)
    )


def _token(asking: Asking, after: Key, revision: int) -> str:
    return continuation.encode(after, revision, asking.world.cluster, asking.namespace)


def _single(asking: Asking, selection: Selection, namespace: str | None) -> Key | None:
    """The one key that can match, if the selector names it."""
    if selection.name is None or asking.world.cluster is None or (asking.kind.namespaced and namespace is None):
        return None
    return Key(asking.kind.storage, asking.world.cluster, namespace or "", selection.name)


def _lookup(asking: Asking, selection: Selection, form: Form, key: Key) -> Found:
    """A list that can hold one object only: `kubectl get -w NAME`, `kubectl wait`."""
    store = asking.world.realm.store
    current = store.revision()
    record = store.get(key)
    if record is None:
        return Found([], current, "", None)
    if not matches(selection, form.view, record):
        return Found([], max(current, record.revision), "", None)
    return Found([record], max(current, record.revision), "", None)
