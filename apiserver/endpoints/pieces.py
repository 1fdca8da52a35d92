"""The pieces of a list's JSON or YAML: what comes before its entries, some entries at a time, what comes behind.

Called by reads.py. A list that is written before it is read to its end has its metadata (a continue token) behind its
entries; the order of fields means nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from apiserver.endpoints.forms import AnswerForm, to_yaml
from apiserver.storage.protocol import Record

Object = dict[str, Any]


def list_meta(revision: int, token: str, remaining: int | None) -> Object:
    meta: Object = {"resourceVersion": str(revision)}
    if token:
        meta["continue"] = token
        if remaining:
            meta["remainingItemCount"] = remaining
    return meta


class JsonPieces:
    """`head`, then `some` as often as there are records, then `tail`. One of head and tail is given the metadata."""

    def __init__(self, form: AnswerForm) -> None:
        self._form = form
        self._begun = False

    def head(self, meta: Object | None) -> bytes:
        return b'%b,"%b":[' % (orjson.dumps(_envelope(self._form, meta))[:-1], self._form.field.encode())

    def some(self, records: Sequence[Record]) -> bytes:
        if not records:
            return b""
        entries = self._form.some(records)
        if self._begun:
            return b"," + entries
        self._begun = True
        return entries

    def tail(self, meta: Object | None) -> bytes:
        return b"]}\n" if meta is None else b'],"metadata":%b}\n' % orjson.dumps(meta)


class YamlPieces:
    """The same as YAML."""

    def __init__(self, form: AnswerForm) -> None:
        self._form = form
        self._begun = False

    def head(self, meta: Object | None) -> bytes:
        return to_yaml(_envelope(self._form, meta)) + f"{self._form.field}:".encode()

    def some(self, records: Sequence[Record]) -> bytes:
        if not records:
            return b""
        entries = to_yaml(orjson.loads(b"[%b]" % self._form.some(records)))
        if self._begun:
            return entries
        self._begun = True
        return b"\n" + entries

    def tail(self, meta: Object | None) -> bytes:
        end = b"" if self._begun else b" []\n"
        return end if meta is None else end + to_yaml({"metadata": meta})


Pieces = JsonPieces | YamlPieces


def _envelope(form: AnswerForm, meta: Object | None) -> Object:
    return {name: meta if name == "metadata" else value for name, value in form.envelope().items()
            if meta is not None or name != "metadata"}  # fmt: skip
