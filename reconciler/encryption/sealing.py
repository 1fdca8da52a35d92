"""Values encrypted as sops would: what did not change keeps its bytes, so that a change is as small as what it says.

Called by whoever writes files. The text of a file is its caller's: here are the values that stand in it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from reconciler.encryption.agekeys import KEY_LENGTH, encrypted_for
from reconciler.encryption.cipher import encrypted, place_of
from reconciler.encryption.document import EncryptedFile
from reconciler.encryption.metadata import SelectedValues
from reconciler.encryption.scalars import Scalar

Object = dict[str, Any]

VERSION = "3.11.0"
"""The version of SOPS whose form files have that are made here."""
_UNSAID = object()


def new_key() -> bytes:
    return os.urandom(KEY_LENGTH)


def new_metadata(
    key: bytes, recipients: Iterable[str], selection: SelectedValues, *, mac_only_encrypted: bool
) -> Object:
    """What stands under `sops` of a new file, in the order of SOPS; `stamped` completes it. Raises UnfitFile."""
    out: Object = {
        "age": [{"recipient": each, "enc": encrypted_for(each, key)} for each in recipients],
        "lastmodified": "",
        "mac": "",
        selection.how: selection.said,
        "mac_only_encrypted": True,
        "version": VERSION,
    }
    if not mac_only_encrypted:
        del out["mac_only_encrypted"]
    return out


def stamped(metadata: Object, file: EncryptedFile, key: bytes, now: str) -> Object:
    """The metadata with the time (RFC 3339, UTC) and the MAC of what stands in the file by now."""
    mac = encrypted(Scalar("str", file.mac(key)), key, now)
    return {**metadata, "lastmodified": now, "mac": mac}


def sealed(value: Any, key: bytes, selection: SelectedValues, before: Any = _UNSAID, stood: Any = _UNSAID) -> Any:
    """A document with its values encrypted as `selection` says. `before`: what the document said, `stood`: the same as
    it stood in the file."""
    return _Sealing(key, selection).of(value, (), before, stood)


class _Sealing:
    def __init__(self, key: bytes, selection: SelectedValues) -> None:
        self._key, self._selection = key, selection

    def of(self, value: Any, path: tuple[str, ...], before: Any, stood: Any) -> Any:
        if isinstance(value, dict):
            was, there = (each if isinstance(each, dict) else {} for each in (before, stood))
            return {k: self.of(v, (*path, k), was.get(k, _UNSAID), there.get(k, _UNSAID)) for k, v in value.items()}
        if isinstance(value, list):
            items, stand = (each if isinstance(each, list) else [] for each in (before, stood))
            pairs = [*zip(items, stand, strict=True)] + [(_UNSAID, _UNSAID)] * len(value)
            return [self.of(v, path, *pair) for v, pair in zip(value, pairs, strict=False)]
        if value is None or not self._selection(path):
            return value
        if stood is not _UNSAID and value.__class__ is before.__class__ and value == before:
            return stood
        return encrypted(_scalar(value), self._key, place_of(path))


def _scalar(value: Any) -> Scalar:
    if isinstance(value, bool):
        return Scalar("bool", str(value))
    if isinstance(value, int):
        return Scalar("int", str(value))
    if isinstance(value, float):
        return Scalar("float", format(Decimal(repr(value)), "f"))
    return Scalar("str", str(value))
