"""Objects that say the same: a value as a template and what is put into it.

What a workspace has for being of its type says nearly the same in every workspace. Whoever makes such an object `cut`s
it; a store keeps each template once, and of each object the parameters, some 20 to 120 bytes. What is read is the value
as it was cut, byte for byte. A template is data, so every version of this program reads the same. Worked example:

    key    Key("namespaces", "k3xa…", "", "default")
    value  {"metadata":{"name":"default","uid":"b39f388e-…","annotations":{"kcp.io/cluster":"k3xa…"}}}
    cut(key, value, [(UID, "b39f388e-…")])
        template    cluster name uid\n{"metadata":{"name":"\2","uid":"\3","annotations":{"kcp.io/cluster":"\1"}}}
        parameters  the 16 bytes of the UID; what the key says is not kept again

Called by the loader (cut, and forms: what many objects will say, cut before there is one), and by stores that keep
templates (fill). Pure functions on bytes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

import orjson

from apiserver.model import clock
from apiserver.model.keys import Key

_CONTROL: Final = bytes(range(0x20))
"""JSON has none, so they can stand for parameters."""
_MOST: Final = 0x1F
"""Parameters; further ones are left in the text."""
_PLACES: Final = [b'"%c"' % number for number in range(1, _MOST + 1)]
_LONGEST_TEXT: Final = 1024
"""Bytes of a parameter; a longer one is left in the text."""
_LENGTH: Final = struct.Struct(">H")
_SECONDS: Final = struct.Struct(">Q")
_TIME_BYTES: Final = 5
_QUOTED: Final = re.compile(rb'"([^"\\]+)"[]:,[{}]*')
_SHORTENED: Final = re.compile(rb"[-0-9a-f:TZ]+")
"""Parts of UIDs, times and commits."""
_UID: Final = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Kind(StrEnum):
    """How a parameter is kept. The values stand in templates, so what they mean does not change."""

    CLUSTER = "cluster"
    """The key says it."""
    NAME = "name"
    """The key says it."""
    UID = "uid"
    """16 bytes."""
    TIME = "time"
    """RFC 3339 in UTC and whole seconds, as 5 bytes."""
    COMMIT = "commit"
    """20 bytes."""
    TEXT = "text"
    """UTF-8 behind its length."""


Parameter = tuple[Kind, str]
"""A text that is in a value where a whole string of its JSON says it."""


_Read = Callable[[bytes], tuple[bytes, bytes]]


class Filled(NamedTuple):
    """A value as a template with parameters: `fill` gives it back, with the key that it was cut for."""

    template: bytes
    parameters: bytes


def cut(key: Key, value: bytes, parameters: Iterable[Parameter]) -> Filled | None:
    """`value`, JSON without white space, as a template with these parameters and what the key says; None where it
    cannot be one. Texts that the value does not have are left out; one that stands in it by chance as well makes
    another template, never another value."""
    found = _cut(value, (*_said_by(key), *parameters))
    if found is None:
        return None
    template, kinds = found
    return Filled(template, b"".join([each.written for each in kinds if each is not None]))


class _Kept(NamedTuple):
    kind: Kind
    written: bytes


def _cut(value: bytes, texts: Iterable[Parameter]) -> tuple[bytes, list[_Kept | None]] | None:
    """The template, and how each of the texts is kept; None for one that the value does not have."""
    if len(value.translate(None, _CONTROL)) != len(value):
        return None
    out: list[_Kept | None] = []
    kinds: list[Kind] = []
    for kind, text in texts:
        quoted = orjson.dumps(text)
        shorter = value
        if 2 < len(quoted) <= _LONGEST_TEXT and len(kinds) < _MOST:
            shorter = value.replace(quoted, _PLACES[len(kinds)])
        if shorter is value:  # replace gives the same bytes back where there is nothing to replace
            out.append(None)
            continue
        value = shorter
        kept = _Kept(*_written(kind, text))
        out.append(kept)
        kinds.append(kept.kind)
    return " ".join(kinds).encode() + b"\n" + value, out


class Form(NamedTuple):
    """A template for values that differ in nothing but known texts. `kinds`: how each of the texts is kept, those of
    the key first; None for one that the values do not have."""

    template: bytes
    kinds: tuple[Kind | None, ...]

    def filled(self, key: Key, texts: Iterable[str]) -> Filled | None:
        """What `cut` makes of the value that says these texts; None where one of them needs another form."""
        kept: list[bytes] = []
        for kind, text in zip(self.kinds, (key.cluster, key.name, *texts), strict=True):
            if kind is None or kind is Kind.CLUSTER or kind is Kind.NAME:
                continue
            written = text_bytes(text) if kind is Kind.TEXT else _short_bytes(kind, text)
            if written is None or len(written) > _LONGEST_TEXT:
                return None
            kept.append(written)
        return Filled(self.template, b"".join(kept))


def form_of(key: Key, value: bytes, parameters: Sequence[Parameter]) -> Form | None:
    """The form of the values that say other texts wherever `value` says these; None where there is none. Who gives them
    sees to it that nothing says one of them by chance, or within another text: it would go on saying that."""
    found = _cut(value, (*_said_by(key), *parameters))
    return Form(found[0], tuple(each and each.kind for each in found[1])) if found is not None else None


def kinds_of(template: bytes) -> tuple[Kind, ...]:
    """How its parameters are kept, in their order, but for those that the key says."""
    return tuple(kind for kind, _ in _parsed(template)[0] if kind is not Kind.CLUSTER and kind is not Kind.NAME)


def _said_by(key: Key) -> tuple[Parameter, Parameter]:
    return (Kind.CLUSTER, key.cluster), (Kind.NAME, key.name)


def fill(template: bytes, key: Key, parameters: bytes) -> bytes:
    """The value that was cut."""
    kinds, parts, places = _parsed(template)
    texts: list[bytes] = []
    for kind, read in kinds:
        if kind is Kind.CLUSTER:
            texts.append(orjson.dumps(key.cluster)[1:-1])
        elif kind is Kind.NAME:
            texts.append(orjson.dumps(key.name)[1:-1])
        else:
            text, parameters = read(parameters)
            texts.append(text)
    out = [*parts]
    for place, number in places:
        out[place] = texts[number]
    return b"".join(out)


def said_by_own(filled: Filled, text: bytes) -> bytes | None:
    """What the parameters or the key have to say of a value that contains `text`; None where it may contain it
    whatever they say."""
    inner = _quoted(text)
    return None if inner is None or _says(filled.template, text) else inner


def may_say(filled: Filled, key: Key, text: bytes) -> bool:
    """Whether the value that was cut may contain `text`; False is certain.

    Of a text that JSON quotes (`"metadata":{`) that is known without the value: what is between its quotes stands in
    the template, or in one of the texts that are put in, each of which is quoted whole.
    """
    inner = said_by_own(filled, text)
    if inner is None:
        return True
    return inner in filled.parameters or inner in orjson.dumps(key.name) or inner in orjson.dumps(key.cluster)


@lru_cache(64)
def _quoted(text: bytes) -> bytes | None:
    """What is between the quotes; None where they are not like that, or it may be what is kept in a shorter form."""
    found = _QUOTED.fullmatch(text)
    return found[1] if found is not None and _SHORTENED.fullmatch(found[1]) is None else None


@lru_cache(1024)
def _says(template: bytes, text: bytes) -> bool:
    return text in template


@lru_cache(1024)
def _parsed(template: bytes) -> tuple[tuple[tuple[Kind, _Read], ...], tuple[bytes, ...], tuple[tuple[int, int], ...]]:
    """The kinds of its parameters, with how each is read; the text in parts; which parts are parameters, and which
    ones."""
    head, _, text = template.partition(b"\n")
    parts = re.split(rb"([\x01-\x1f])", text)
    places = tuple((at, parts[at][0] - 1) for at in range(1, len(parts), 2))
    kinds = (Kind(name) for name in head.decode().split())
    return tuple((kind, _READ.get(kind, _nothing)) for kind in kinds), tuple(parts), places


def _written(kind: Kind, text: str) -> tuple[Kind, bytes]:
    """As it is kept: in its kind's form, or as text where that form would not give the same text back."""
    if kind is Kind.CLUSTER or kind is Kind.NAME:
        return kind, b""
    found = _short_bytes(kind, text) if kind is not Kind.TEXT else None
    return (kind, found) if found is not None else (Kind.TEXT, text_bytes(text))


def _short_bytes(kind: Kind, text: str) -> bytes | None:
    """In the form of a kind that is not text; None where that would not give the same text back."""
    if kind is not Kind.UID:
        return _shared_bytes(kind, text)  # all that came with one commit have the same
    return bytes.fromhex(text.replace("-", "")) if _UID.fullmatch(text) is not None else None


def text_bytes(text: str) -> bytes:
    """A parameter of the kind TEXT, as it is kept."""
    said = orjson.dumps(text)[1:-1]
    return _LENGTH.pack(len(said)) + said


def texts_bytes(texts: Sequence[str]) -> list[bytes]:
    """The same of several."""
    together = "".join(texts)
    if not together.isascii() or not together.isprintable() or '"' in together or "\\" in together:
        return list(map(text_bytes, texts))
    length = _LENGTH.pack
    return [length(len(text)) + text.encode() for text in texts]


@lru_cache(64)
def _shared_bytes(kind: Kind, text: str) -> bytes | None:
    try:
        if kind == Kind.COMMIT:
            found = bytes.fromhex(text)
            return found if len(found) == 20 and found.hex() == text else None
        found = _SECONDS.pack(int(clock.parse(text).timestamp()))[-_TIME_BYTES:]
        return found if _time(found)[0].decode() == text else None
    except (ValueError, OverflowError, struct.error):
        return None


def _uid(raw: bytes) -> tuple[bytes, bytes]:
    text = raw[:16].hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}".encode(), raw[16:]


def _time(raw: bytes) -> tuple[bytes, bytes]:
    return clock.rfc3339(int.from_bytes(raw[:_TIME_BYTES], "big")).encode(), raw[_TIME_BYTES:]


def _commit(raw: bytes) -> tuple[bytes, bytes]:
    return raw[:20].hex().encode(), raw[20:]


def _text(raw: bytes) -> tuple[bytes, bytes]:
    end = 2 + int.from_bytes(raw[:2], "big")
    return raw[2:end], raw[end:]


def _nothing(raw: bytes) -> tuple[bytes, bytes]:
    return b"", raw


_READ: Final[dict[Kind, _Read]] = {
    Kind.UID: _uid,
    Kind.TIME: _time,
    Kind.COMMIT: _commit,
    Kind.TEXT: _text,
}
"""From what is kept of parameters: the first one's text, and the rest."""
