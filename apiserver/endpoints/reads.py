"""GET of an object and of a list.

The hot path: with neither selector nor table nothing is decoded, an answer is the stored bytes joined. A list is read
page by page at one revision (listing.py). What fits into a buffer is one answer; a longer one is written as it is read,
and others are answered between its pieces.
"""

from __future__ import annotations

import asyncio
from typing import Any

from apiserver.endpoints.asking import Asking
from apiserver.endpoints.exchange import JSON, Exchange
from apiserver.endpoints.forms import YAML, AnswerForm, as_yaml, form_of
from apiserver.endpoints.listing import Listing
from apiserver.endpoints.negotiation import negotiate
from apiserver.endpoints.options import list_options, revision, too_new
from apiserver.endpoints.pieces import JsonPieces, Pieces, YamlPieces, list_meta
from apiserver.endpoints.selection import Selection

Object = dict[str, Any]

_WHOLE = 512 * 1024
"""Bytes of a list that is collected before anything of it is sent."""
_YAML_PAGE = 20
"""Entries that are written as YAML in one go: that is a hundred times slower than JSON."""


class _Turns:
    """The long lists under way in this process. Each lets the event loop turn once for every one of them between two
    pages, so that other requests never wait for more than one page."""

    def __init__(self) -> None:
        self._count = 0

    def __enter__(self) -> None:
        self._count += 1

    def __exit__(self, *_: object) -> None:
        self._count -= 1

    async def wait(self) -> None:
        for _ in range(self._count):
            await asyncio.sleep(0)


_turns = _Turns()


async def get(asking: Asking) -> None:
    """One object."""
    exchange = asking.exchange
    store = asking.world.realm.store
    at = revision(exchange.parameter("resourceVersion")) if exchange.scope["query_string"] else None
    if at and at > store.revision():
        raise too_new(at, store.revision())
    record = store.get(asking.key())
    if record is None or not asking.sees(record):
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
    listing = Listing(asking, options, selection, form.view)
    written = _Written(listing, form, media.yaml)
    if asking.kind.conversion is not None:
        # Its webhook may fail at any page: nothing is sent before all is known.
        await exchange.answer(200, await asking.convert(written.all), written.kind)
        return
    found = [written.some()]
    if listing.done:
        await exchange.answer(200, written.whole(found), written.kind)
        return
    with _turns:
        while not listing.done and sum(map(len, found)) < _WHOLE:
            await _turns.wait()
            found.append(written.some())
        if listing.done:
            await exchange.answer(200, written.whole(found), written.kind)
        else:
            await _stream(exchange, written, found, late=options.limit is not None)


class _Written:
    """A list on its way out."""

    def __init__(self, listing: Listing, form: AnswerForm, yaml: bool) -> None:
        self.listing = listing
        self.kind = YAML if yaml else JSON
        self.pieces: Pieces = YamlPieces(form) if yaml else JsonPieces(form)
        self._page = min(form.page, _YAML_PAGE) if yaml else form.page

    def some(self) -> bytes:
        """The next entries. Raises StatusError 410."""
        return self.pieces.some(self.listing.next(self._page))

    def all(self) -> bytes:
        """The whole answer. May take long."""
        found = []
        while not self.listing.done:
            found.append(self.some())
        return self.whole(found)

    def meta(self) -> Object:
        listing = self.listing
        return list_meta(listing.revision, listing.token, listing.remaining)

    def whole(self, found: list[bytes]) -> bytes:
        return b"".join((self.pieces.head(self.meta()), *found, self.pieces.tail(None)))


async def _stream(exchange: Exchange, written: _Written, found: list[bytes], *, late: bool) -> None:
    """Sends what was found and reads on. `late`: how the list ends is not known yet, so that its metadata comes last.

    When the log no longer reaches back to the list's revision (the client reads too slowly) the answer breaks off.
    """
    found.insert(0, written.pieces.head(None if late else written.meta()))
    stream = exchange.stream(written.kind)
    await stream.send(b"".join(found))
    found.clear()
    while not written.listing.done:
        await _turns.wait()
        await stream.send(written.some())
    await stream.end(written.pieces.tail(written.meta() if late else None))
