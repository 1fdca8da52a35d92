"""Tables: what `kubectl get` prints. Columns and cells come from the registry's printers; this makes the envelopes.

In a watch only the first event carries the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from apiserver.endpoints.views import KindView
from apiserver.model.errors import bad_request
from apiserver.model.keys import Key
from apiserver.registry import tables
from apiserver.storage.protocol import Record

_INCLUDE = ("", "Metadata", "Object", "None")
_INITIAL_END = {"k8s.io/initial-events-end": "true"}


class TableForm:
    """`include`: what each row's object is: partial metadata (Metadata, the default), Object or None."""

    has_head = True
    field = "rows"
    page = 200

    def __init__(self, view: KindView, version: str, include: str) -> None:
        if include not in _INCLUDE:
            raise bad_request(f"unrecognized includeObject value: {include!r}")
        self.view = view
        self._api_version = f"meta.k8s.io/{version}"
        self._include = include or "Metadata"
        self._printer = tables.printer(view.kind)
        self.key: tuple[Any, ...] = ("table", version, self._include, view.kind.digest, *view.key)

    def _columns(self) -> list[dict[str, Any]]:
        return [column.as_json() for column in self._printer.columns]

    def _row(self, obj: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] | None = None
        if self._include == "Metadata":
            shown = {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": obj["metadata"]}
        elif self._include == "Object":
            shown = obj
        return {"cells": self._printer.cells(obj), "object": shown}

    def _table(self, metadata: dict[str, Any], rows: list[dict[str, Any]], head: bool = True) -> dict[str, Any]:
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": self._columns() if head else None,
            "rows": rows,
        }

    def _of_one(self, key: Key, value: bytes, revision: int, head: bool = True) -> dict[str, Any]:
        row = self._row(self.view.decoded(key, value, revision))
        return self._table({"resourceVersion": str(revision)}, [row], head)

    def one(self, key: Key, value: bytes, revision: int) -> bytes:
        return orjson.dumps(self._of_one(key, value, revision))

    def envelope(self) -> dict[str, Any]:
        found = self._table({}, [])
        del found["rows"]
        return found

    def some(self, records: Sequence[Record]) -> bytes:
        row = self._row
        return orjson.dumps([row(obj) for obj in self.view.objects(records)])[1:-1]

    def event(self, kind: str, key: Key, value: bytes, revision: int, first: bool) -> bytes:
        return orjson.dumps({"type": kind, "object": self._of_one(key, value, revision, first)}) + b"\n"

    def bookmark(self, revision: int, initial_end: bool) -> bytes:
        metadata = {"resourceVersion": str(revision), "creationTimestamp": None}
        rows: list[dict[str, Any]] = []
        if initial_end:
            end = {**metadata, "annotations": _INITIAL_END}
            partial = {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": end}
            rows.append({"cells": [None for _ in self._printer.columns], "object": partial})
        table = self._table({"resourceVersion": str(revision)}, rows, False)
        return orjson.dumps({"type": "BOOKMARK", "object": table}) + b"\n"
