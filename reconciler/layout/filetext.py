"""Texts that a file might have after an edit, the most faithful first. Called by edit, which takes the first that
reads back as it shall."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from apiserver.kubeyaml.nodes import Node
from reconciler.layout import jsontext
from reconciler.layout.dump import dump
from reconciler.layout.patch import patched
from reconciler.layout.places import Splice, Unclear, end_of, spliced
from reconciler.layout.textlines import line_break, line_end
from reconciler.layout.yamldoc import roots

Object = dict[str, Any]

_BOM = b"\xef\xbb\xbf"
_MARK = re.compile(r"^---(?=\s|\Z)", re.M)
_END = re.compile(r"^\.\.\.(?=\s|\Z)", re.M)
_OTHERS = re.compile(r"^[ \t]*\r?\n(?=[ \t]*#)", re.M)
"""A blank line before a comment: the comment does not belong to what stands above it."""
_BARE = re.compile(r"---[ \t]*\r?\n")
_JSON_MODEL = "{\n  "


def first(path: str, value: Object) -> bytes:
    """A new file."""
    return jsontext.rendered(value, _JSON_MODEL).encode() + b"\n" if path.endswith(".json") else dump(value)


def added(data: bytes, path: str, value: Object) -> Iterator[bytes]:
    """The file with one more document at its end."""
    text = data.decode("utf-8-sig")
    line = line_break(text)
    if path.endswith(".json"):
        yield data.rstrip() + (line + jsontext.rendered(value, text) + line).encode()
        return
    body = dump(value).decode().replace("\n", line)
    start = data if data.endswith(b"\n") else data + line.encode()
    yield start + (body if _is_open(text) else f"---{line}{body}").encode()
    # The last text of several lines ends otherwise with a line break behind it than without.
    documents = roots(data, path, positions=True)
    if documents and documents[-1].node is not None and not text.endswith("\n"):
        value_there = documents[-1].value
        splices = _anew(text, documents[-1].node, value_there, value_there)
        yield _encoded(data, text, splices) + f"---{line}{body}".encode()


def replaced(data: bytes, path: str, number: int, old: Object, expected: list[Object]) -> Iterator[bytes]:
    """The file, whose objects shall be `expected`, with another document of this number."""
    new = expected[number]
    text = data.decode("utf-8-sig")
    if path.endswith(".json"):
        start, end = jsontext.spans(text)[number]
        yield _encoded(data, text, [(start, end, jsontext.rendered(new, text[start:end], old))])
        return
    root: Any = roots(data, path, positions=True)[number].node
    for way in (_as_json, patched, _anew):
        try:
            splices = way(text, root, old, new)
        except Unclear:
            continue
        if splices:
            yield _encoded(data, text, splices)
    yield b"---\n".join(dump(value) for value in expected)


def without(data: bytes, path: str, number: int, expected: list[Object]) -> Iterator[bytes]:
    """The file, of which `expected` shall remain, without the document of this number."""
    text = data.decode("utf-8-sig")
    if path.endswith(".json"):
        start, end = jsontext.spans(text)[number]
        yield _encoded(data, text, [(start, len(text) - len(text[end:].lstrip()), "")])
        return
    documents = roots(data, path, positions=True)
    root: Any = documents[number].node
    with suppress(Unclear):
        yield _encoded(data, text, _cut(text, root, is_first=number == 0))
    yield b"---\n".join(dump(value) for value in expected)


def _as_json(text: str, root: Node, old: Object, new: Object) -> list[Splice]:
    start, end = root.start_mark.index, root.end_mark.index
    if not text.startswith("{", start) or not jsontext.is_json(text[start:end]):
        return []
    return [(start, end, jsontext.rendered(new, text[start:end], old))]


def _anew(text: str, root: Node, _old: Object, new: Object) -> list[Splice]:
    """All of a document but the comments before and after it."""
    start = root.start_mark.index
    fresh = dump(new).decode().removesuffix("\n")
    lead = "\n" if text[:start].rpartition("\n")[2].strip() else ""  # on the line of the document's mark
    end = end_of(text, root)
    trail = "\n" if end == len(text) else ""
    return [(start, end, (lead + fresh + trail).replace("\n", line_break(text)))]


def _cut(text: str, root: Node, *, is_first: bool) -> list[Splice]:
    """A document with its mark and its comments; comments that a blank line parts from it are left."""
    start, content_end = root.start_mark.index, line_end(text, end_of(text, root))
    begin, end = 0, len(text)
    for found in _MARK.finditer(text):
        if found.start() <= start:
            begin = found.start()
        else:
            end = found.start()
            break
    marked = _MARK.match(text, begin) is not None
    tail = text[content_end:end]
    others = None if _END.search(tail) else _OTHERS.search(tail)
    kept = tail[others.end() :] if others else ""
    if is_first:
        head = text[begin:start]
        blank = max((m.end() for m in re.finditer(r"^[ \t]*\r?\n", head, re.M)), default=0)
        if "#" in head[:blank]:
            return [(begin + blank, end, kept)]
        if not marked and not kept and (bare := _BARE.match(text, end)):
            end = bare.end()
    return [(begin, end, kept)]


def _is_open(text: str) -> bool:
    """Whether what follows belongs to a document that has no content yet."""
    last = text
    for found in _MARK.finditer(text):
        last = text[found.end() :]
    return all(not line.strip() or line.lstrip().startswith("#") for line in last.splitlines())


def _encoded(data: bytes, text: str, splices: list[Splice]) -> bytes:
    return (_BOM if data.startswith(_BOM) else b"") + spliced(text, splices).encode()
