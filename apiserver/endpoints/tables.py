"""Tables: what `kubectl get` prints. Columns and cells come from the registry's printers; this makes the envelopes.

In a watch only the first event carries the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from apiserver.endpoints.views import View
from apiserver.model.errors import bad_request
from apiserver.model.keys import Key
from apiserver.registry import tables
from apiserver.storage.protocol import Record

_INCLUDE = ("", "Metadata", "Object", "None")
_ROWS = 200
_NO_ROWS = b'"rows":[]'
_INITIAL_END = {"k8s.io/initial-events-end": "true"}


class TableForm:
    """`include`: what each row's object is: partial metadata (Metadata, the default), Object or None."""

    has_head = True

    def __init__(self, view: View, version: str, include: str) -> None:
        if include not in _INCLUDE:
            raise bad_request(f"unrecognized includeObject value: {include!r}")
        self.view = view
        self._api_version = f"meta.k8s.io/{version}"
        self._include = include or "Metadata"
        self._printer = tables.printer(view.kind)
        self.key: tuple[Any, ...] = ("table", version, self._include, view.kind.digest, *view.key)

    def _columns(self) -> list[dict[str, Any]]:
        return [column.as_json() for column in self._printer.columns]

    def _row(self, key: Key, value: bytes, revision: int) -> dict[str, Any]:
        obj = self.view.decoded(key, value, revision)
        row: dict[str, Any] = {"cells": self._printer.cells(obj)}
        if self._include == "Object":
            row["object"] = obj
        elif self._include == "Metadata":
            row["object"] = {
                "kind": "PartialObjectMetadata",
                "apiVersion": self._api_version,
                "metadata": obj["metadata"],
            }
        else:
            row["object"] = None
        return row

    def _table(self, metadata: dict[str, Any], rows: list[dict[str, Any]], head: bool = True) -> dict[str, Any]:
        return {
            "kind": "Table",
            "apiVersion": self._api_version,
            "metadata": metadata,
            "columnDefinitions": self._columns() if head else None,
            "rows": rows,
        }

    def one(self, key: Key, value: bytes, revision: int) -> bytes:
        return orjson.dumps(self._table({"resourceVersion": str(revision)}, [self._row(key, value, revision)]))

    def many(self, records: Sequence[Record], revision: int, token: str, remaining: int | None) -> bytes:
        """Encoded in parts: ten thousand rows as objects would cost more in garbage collection than in work."""
        metadata: dict[str, Any] = {"resourceVersion": str(revision)}
        if token:
            metadata["continue"] = token
            if remaining:
                metadata["remainingItemCount"] = remaining
        row = self._row
        parts = [
            orjson.dumps([row(r.key, r.value, r.revision) for r in records[at : at + _ROWS]])[1:-1]
            for at in range(0, len(records), _ROWS)
        ]
        head, tail = orjson.dumps(self._table(metadata, [])).split(_NO_ROWS)
        return b'%b"rows":[%b]%b' % (head, b",".join(parts), tail)

    def event(self, kind: str, key: Key, value: bytes, revision: int, first: bool) -> bytes:
        table = self._table({"resourceVersion": str(revision)}, [self._row(key, value, revision)], first)
        return orjson.dumps({"type": kind, "object": table}) + b"\n"

    def bookmark(self, revision: int, initial_end: bool) -> bytes:
        metadata = {"resourceVersion": str(revision), "creationTimestamp": None}
        rows: list[dict[str, Any]] = []
        if initial_end:
            end = {**metadata, "annotations": _INITIAL_END}
            partial = {"kind": "PartialObjectMetadata", "apiVersion": self._api_version, "metadata": end}
            rows.append({"cells": [None for _ in self._printer.columns], "object": partial})
        table = self._table({"resourceVersion": str(revision)}, rows, False)
        return orjson.dumps({"type": "BOOKMARK", "object": table}) + b"\n"
