"""Edits of manifest files: an object is added, replaced or removed, and everything else keeps its bytes.

Called by whoever commits what came through the API. An edit is read back before it is given out, but for a new file of
which it is known how it reads (readback); where a file is written so that the text could not be changed in place, its
document (at worst the file) is written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from reconciler.layout import dump as dumping
from reconciler.layout import readback
from reconciler.layout.alike import same
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.filetext import added, first, replaced, without
from reconciler.layout.manifest import of_document
from reconciler.layout.yamldoc import YamlDocument, is_list, listed, roots

Object = dict[str, Any]
Place = tuple[int, ...]
"""Indexes into `items`, one for each list that an object stands in."""

dump = dumping.dump


def add(data: bytes | None, path: str, value: Object) -> bytes:
    """The file with one more object at its end; `data` is None for a new file. Raises BadFile."""
    if data is None or not data.strip():
        return new(path, value)[0]
    expected = [*(document.value for document in roots(data, path)), value]
    return _checked(added(data, path, value), path, expected)


def new(path: str, value: Object) -> tuple[bytes, YamlDocument]:
    """A file of one object, and how it is read. Raises BadFile."""
    text = first(path, value)
    said = readback.known(text, value) if path.endswith(".yaml") else None
    if said is not None:
        return text, YamlDocument(said, 1)
    data, [document] = _read_back(iter([text]), path, [value])
    return data, document


def replace(data: bytes, path: str, index: int, value: Object) -> bytes:
    """The file with `value` as its object number `index` (`Manifest.index`).

    `value` is compared to what `manifest.read` gives: what that leaves out (a status) stays in the file. The same value
    gives the same bytes. Raises BadFile, and IndexError when there is no such object.
    """
    documents = roots(data, path)
    number, place, there = _objects(documents)[index]
    root = documents[number].value
    raw = _at(root, place)
    wanted = _rebased(raw, _as_read(there, path), value)
    if same(raw, wanted):
        return data
    return _changed(data, path, documents, number, _with(root, place, wanted))


def remove(data: bytes, path: str, index: int) -> bytes | None:
    """The file without its object number `index` and the comments that belong to it; None when it was the last.

    Raises BadFile, and IndexError when there is no such object.
    """
    documents = roots(data, path)
    objects = _objects(documents)
    number, place, _ = objects[index]
    if len(objects) == 1:
        return None
    while place and len(_at(documents[number].value, place[:-1])["items"]) == 1:
        place = place[:-1]
    if place:
        return _changed(data, path, documents, number, _with(documents[number].value, place, None))
    expected = [document.value for n, document in enumerate(documents) if n != number]
    return _checked(without(data, path, number, expected), path, expected)


def _changed(data: bytes, path: str, documents: list[YamlDocument], number: int, new: Object) -> bytes:
    expected = [document.value for document in documents]
    old, expected[number] = expected[number], new
    return _checked(replaced(data, path, number, old, expected), path, expected)


def _checked(candidates: Iterator[bytes], path: str, expected: list[Object]) -> bytes:
    """The first text that reads as expected. Raises BadFile."""
    return _read_back(candidates, path, expected)[0]


def _read_back(candidates: Iterator[bytes], path: str, expected: list[Object]) -> tuple[bytes, list[YamlDocument]]:
    """The same, with what was read."""
    fault = BadFile([LayoutError(path, 0, 0, "an object cannot be written so that it reads back as it is")])
    for data in candidates:
        try:
            found = roots(data, path)
        except BadFile as bad:
            fault = bad
            continue
        if same([document.value for document in found], expected):
            return data, found
    raise fault


def _objects(documents: list[YamlDocument]) -> list[tuple[int, Place, Object]]:
    """(number of the document, place in it, the object as the reader gives it) of each object of a file."""
    found = ((number, _expanded(document.value)) for number, document in enumerate(documents))
    return [(number, place, value) for number, objects in found for place, value in objects]


def _expanded(value: Object) -> Iterator[tuple[Place, Object]]:
    if not is_list(value):
        yield (), value
        return
    for number, item in enumerate(value["items"]):
        for place, inner in _expanded(listed(value, item) if isinstance(item, dict) else {}):
            yield (number, *place), inner


def _as_read(value: Object, path: str) -> Object:
    copy: Object = orjson.loads(orjson.dumps(value))
    try:
        return of_document(YamlDocument(copy, 1), path, 0, []).value
    except BadFile:
        return copy


def _rebased(raw: Any, read: Any, new: Any) -> Any:
    """What is written, moved by the difference from what is read of it to what shall be read."""
    if same(read, new):
        return raw
    if not isinstance(new, dict) or not isinstance(raw, dict):
        return new
    before = read if isinstance(read, dict) else {}
    out = {key: value for key, value in raw.items() if key in new or key not in before}
    for key, value in new.items():
        if key in before and same(before[key], value):
            continue
        out[key] = _rebased(raw.get(key), before.get(key), value)
    return out


def _at(root: Object, place: Place) -> Any:
    for number in place:
        root = root["items"][number]
    return root


def _with(root: Object, place: Place, value: Object | None) -> Object:
    """The list with another item at a place, without the item where that is None."""
    if not place:
        return value or {}
    items = list(root["items"])
    if value is None and len(place) == 1:
        del items[place[0]]
    else:
        items[place[0]] = _with(items[place[0]], place[1:], value)
    return {**root, "items": items}
