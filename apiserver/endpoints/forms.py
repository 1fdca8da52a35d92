"""How objects are written out: whole, as partial metadata, or as a table. Single, as a list, and as events of a watch.

A form is made per request from the Accept header. Events encoded in one form are shared by all watchers whose form has
the same `key`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import orjson
import yaml

from apiserver.endpoints.exchange import JSON, Exchange
from apiserver.endpoints.negotiation import PARTIAL, TABLE, Media, negotiate
from apiserver.endpoints.tables import TableForm
from apiserver.endpoints.views import KindView
from apiserver.model.keys import Key
from apiserver.storage.protocol import Record

YAML = b"application/yaml"
INITIAL_END = "k8s.io/initial-events-end"


class AnswerForm(Protocol):
    """`has_head`: the first event of a watch differs from the others. `field`: where a list has its entries. `page`:
    how many of them are made in one go, which should take about a millisecond."""

    view: KindView
    key: tuple[Any, ...]
    has_head: bool
    field: str
    page: int

    def one(self, key: Key, value: bytes, revision: int) -> bytes:
        """A single object as JSON."""

    def envelope(self) -> dict[str, Any]:
        """A list without its entries, in order; its `metadata` is filled in by whoever writes it."""

    def some(self, records: Sequence[Record]) -> bytes:
        """Entries of a list as JSON, with commas between them."""

    def event(self, kind: str, key: Key, value: bytes, revision: int, first: bool) -> bytes:
        """One line of a watch."""

    def bookmark(self, revision: int, initial_end: bool) -> bytes: ...


def form_of(view: KindView, media: Media, exchange: Exchange) -> AnswerForm:
    """Raises StatusError 400 for an unknown includeObject."""
    if media.form == TABLE:
        return TableForm(view, media.version, exchange.parameter("includeObject"))
    if media.form == PARTIAL:
        return PartialForm(view, media)
    return ObjectForm(view)


def as_yaml(body: bytes) -> bytes:
    """A JSON answer as YAML."""
    return to_yaml(orjson.loads(body))


def to_yaml(value: Any) -> bytes:
    text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text.encode()


async def answer_unstored(exchange: Exchange, status: int, obj: dict[str, Any]) -> None:
    """An object that is nowhere stored (a review, a token), which has no table. Raises StatusError 406."""
    media = negotiate(exchange.header(b"accept"), many=False, tables=False)
    body = orjson.dumps(obj)
    await exchange.answer(status, as_yaml(body) if media.yaml else body, YAML if media.yaml else JSON)


def _bookmark_metadata(revision: int, initial_end: bool) -> dict[str, Any]:
    metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial_end:
        metadata["annotations"] = {INITIAL_END: "true"}
    return metadata


class ObjectForm:
    """Objects as they are stored: bytes are copied."""

    has_head = False
    field = "items"
    page = 500

    def __init__(self, view: KindView) -> None:
        self.view = view
        self.key: tuple[Any, ...] = view.key

    def one(self, key: Key, value: bytes, revision: int) -> bytes:
        return self.view.whole(key, value, revision)

    def envelope(self) -> dict[str, Any]:
        return {"kind": self.view.kind.list_kind, "apiVersion": self.view.kind.api_version, "metadata": None}

    def some(self, records: Sequence[Record]) -> bytes:
        return b",".join(self.view.items(records))

    def event(self, kind: str, key: Key, value: bytes, revision: int, first: bool) -> bytes:  # noqa: ARG002
        return b'{"type":"%b","object":%b}\n' % (kind.encode(), self.view.whole(key, value, revision))

    def bookmark(self, revision: int, initial_end: bool) -> bytes:
        kind = self.view.kind
        metadata = _bookmark_metadata(revision, initial_end)
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"


class PartialForm:
    """Metadata only."""

    has_head = False
    field = "items"
    page = 200

    def __init__(self, view: KindView, media: Media) -> None:
        self.view = view
        self._head = {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{media.version}"}
        self._item_head = {} if media.bare else self._head
        self.key: tuple[Any, ...] = ("partial", media.version, *view.key)

    def _metadata(self, key: Key, value: bytes, revision: int) -> dict[str, Any]:
        metadata: dict[str, Any] = self.view.decoded(key, value, revision)["metadata"]
        return metadata

    def one(self, key: Key, value: bytes, revision: int) -> bytes:
        return orjson.dumps({**self._head, "metadata": self._metadata(key, value, revision)})

    def envelope(self) -> dict[str, Any]:
        return {"kind": "PartialObjectMetadataList", "apiVersion": self._head["apiVersion"], "metadata": None}

    def some(self, records: Sequence[Record]) -> bytes:
        head = self._item_head
        return orjson.dumps([{**head, "metadata": obj["metadata"]} for obj in self.view.objects(records)])[1:-1]

    def event(self, kind: str, key: Key, value: bytes, revision: int, first: bool) -> bytes:  # noqa: ARG002
        obj = {**self._head, "metadata": self._metadata(key, value, revision)}
        return orjson.dumps({"type": kind, "object": obj}) + b"\n"

    def bookmark(self, revision: int, initial_end: bool) -> bytes:
        obj = {**self._head, "metadata": _bookmark_metadata(revision, initial_end)}
        return orjson.dumps({"type": "BOOKMARK", "object": obj}) + b"\n"
