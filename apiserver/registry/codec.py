"""Between objects and the bytes that the store keeps.

A stored value is the object's JSON as a client will read it, with kind, apiVersion and metadata first and without
metadata.resourceVersion: that is the revision which wrote the value, and is spliced in when it is read, so that a read
copies bytes and builds no objects. Called by everything that reads or writes objects; knows nothing of kinds.
"""

from __future__ import annotations

from typing import Any

import orjson

_METADATA = b'"metadata":{'
_HEAD: dict[str, Any] = {"kind": "", "apiVersion": "", "metadata": {}}
"""What comes first."""


def encode(obj: dict[str, Any]) -> bytes:
    """The value to store. `obj` is not changed; its metadata.resourceVersion is left out."""
    ordered = {**_HEAD, **obj}
    if len(ordered) > len(obj):
        ordered = {key: value for key, value in ordered.items() if key in obj or key == "metadata"}
    if "resourceVersion" in ordered["metadata"]:
        ordered["metadata"] = {k: v for k, v in ordered["metadata"].items() if k != "resourceVersion"}
    return dump(ordered)


def dump(obj: Any) -> bytes:
    """JSON that may be kept: orjson over-allocates its results, by about 4 kB each; a copy has the exact size."""
    return bytes(memoryview(orjson.dumps(obj)))


def splice(value: bytes, revision: int) -> bytes:
    """A stored value as clients read it, with `"resourceVersion":"<revision>"` first in metadata.

    Inside a JSON string the quotes would be escaped, and only kind and apiVersion come before: the first match is it.
    """
    at = value.find(_METADATA) + len(_METADATA)
    comma = b"" if value[at : at + 1] == b"}" else b","
    return b'%b"resourceVersion":"%d"%b%b' % (value[:at], revision, comma, value[at:])


def uid_of(value: bytes) -> str:
    """The UID of a stored object."""
    return str(orjson.loads(value)["metadata"]["uid"])


def decode(value: bytes, revision: int) -> dict[str, Any]:
    """A stored value as a dict, with metadata.resourceVersion."""
    obj: dict[str, Any] = orjson.loads(value)
    obj["metadata"]["resourceVersion"] = str(revision)
    return obj
