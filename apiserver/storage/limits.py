"""What a store takes as keys, and how they are written as bytes. The same in every store, so that what one takes the
other does."""

from __future__ import annotations

from typing import Final

from apiserver.model.keys import Key

LONGEST: Final = 510
"""Bytes of a key, of which its resource takes four; of a resource's name."""
LONGEST_STAMP: Final = 254
LONGEST_ROW: Final = 2_048
"""Bytes (UTF-8) of a row's key."""


def tail(key: Key) -> bytes:
    """The key without its resource. Raises ValueError for what cannot be stored."""
    text = f"{key.cluster}\0{key.namespace}\0{key.name}"
    if text.count("\0") != 2:
        raise ValueError(f"a key may not contain NUL: {key}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a key must be valid Unicode: {key!r}") from None


def check_resource(name: str) -> bytes:
    """A resource's name. Raises ValueError for what is none."""
    encoded = name.encode()
    if not 0 < len(encoded) <= LONGEST:
        raise ValueError(f"not a resource name that can be stored: {name!r}")
    return encoded


def check_length(key: Key, length: int) -> None:
    """Raises ValueError if the encoded key has more bytes than a store takes."""
    if length > LONGEST:
        raise ValueError(f"the key takes {length} bytes, the store holds at most {LONGEST}: {key}")


def check_stamp(key: Key, stamp: bytes) -> None:
    if len(stamp) > LONGEST_STAMP:
        raise ValueError(f"a stamp has at most {LONGEST_STAMP} bytes, that of {key} has {len(stamp)}")


def check_row(row: str) -> bytes:
    """A row's key. Raises ValueError for what is none."""
    try:
        key = row.encode()
    except UnicodeEncodeError:
        raise ValueError(f"a row's key must be valid Unicode: {row!r}") from None
    if len(key) > LONGEST_ROW:
        raise ValueError(f"the row's key has {len(key)} bytes, a table takes at most {LONGEST_ROW}: {row[:100]!r}…")
    return key
