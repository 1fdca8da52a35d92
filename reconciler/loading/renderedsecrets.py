"""Secrets that SOPS encrypted, as they come through kustomize: still encrypted, with other names and labels, and in
another order.

Called by renderings. The MAC of such a file counts its encrypted values in the order in which they were written, and
kustomize puts them in that of their names. So the file that a Secret is made of is found by its MAC, which no other
has, and gives the order back. Nothing is decrypted here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from reconciler.layout.errors import BadFile
from reconciler.layout.yamldoc import roots

Object = dict[str, Any]

_SOPS, _MAC, _ONLY = "sops", "mac", "mac_only_encrypted"
_VALUES = ("data", "stringData")
NOT_ONLY = "counts in its MAC what is not encrypted, and that is not as it was written any more"
REMEDY = "write mac_only_encrypted: true into the rule of .sops.yaml, and encrypt the file anew"


def mac_of(document: bytes, path: str) -> str:
    """The MAC of an encrypted document; "" of any other."""
    return _mac(_value(document, path))


def counts_all(document: bytes, path: str) -> bool:
    """Whether an encrypted document is bound to more than its encrypted values."""
    metadata = _value(document, path).get(_SOPS)
    return isinstance(metadata, dict) and metadata.get(_ONLY) is not True


def as_written(document: bytes, path: str, files: Iterable[bytes]) -> bytes:
    """An encrypted document with its values in the order of the file among `files` that it is made of; as it is where
    there is none, or other values are in it by now."""
    value = _value(document, path)
    mac = _mac(value)
    original = next((found for data in files if (found := _having(data, mac))), None)
    if original is None:
        return document
    parts = [name for name in original if name in _VALUES]
    if any(not _same(original[name], value.get(name)) for name in parts):
        return document
    rest = {name: each for name, each in value.items() if name not in parts}
    ordered = {name: {key: value[name][key] for key in original[name]} for name in parts}
    return orjson.dumps({**rest, **ordered})


def _having(data: bytes, mac: str) -> Object | None:
    """The document with a MAC that some file holds."""
    if not mac or mac.encode() not in data:
        return None
    try:
        return next((root.value for root in roots(data, "file.yaml") if _mac(root.value) == mac), None)
    except BadFile:
        return None


def _value(document: bytes, path: str) -> Object:
    try:
        return next((root.value for root in roots(document, path)), {})
    except BadFile:
        return {}


def _mac(value: Mapping[str, Any]) -> str:
    metadata = value.get(_SOPS)
    found = metadata.get(_MAC) if isinstance(metadata, dict) else None
    return found if isinstance(found, str) else ""


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys()
