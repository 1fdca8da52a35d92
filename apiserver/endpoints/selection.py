"""Label and field selectors against stored objects.

`metadata.name` and `metadata.namespace` are answered from the key alone; only the rest needs the object decoded. Used
by lists, watches and deletecollection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from apiserver.model.errors import bad_request
from apiserver.model.keys import Key
from apiserver.model.selectors import LabelSelector, Requirement, parse_fields, parse_labels
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.entry import Reading
from apiserver.registry.permissionclaims import LABEL
from apiserver.registry.served import ServedKind

Object = dict[str, Any]
Reader = Callable[[Object], str]


def _text(value: Any) -> str:
    """As field selectors compare it: false and 0 are spelled out, absent is ""."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def at(path: str, absent: str = "") -> Reader:
    """Reads a dotted path; `absent` where it leads nowhere."""
    parts = path.split(".")

    def read(obj: Object) -> str:
        value: Any = obj
        for part in parts:
            if not isinstance(value, dict) or part not in value:
                return absent
            value = value[part]
        return _text(value)

    return read


def _reader(reading: Reading) -> Reader:
    last = at(reading.paths[-1], reading.absent)
    if len(reading.paths) == 1:
        return last
    readers = [at(path) for path in reading.paths[:-1]]

    def read(obj: Object) -> str:
        return next(filter(None, (reader(obj) for reader in readers)), "") or last(obj)

    return read


_READERS: Mapping[str, Mapping[str, Reader]] = {
    name: {path: _reader(reading) for path, reading in kind.readings.items()}
    for name, kind in ENTRIES.items()
    if kind.readings
}
"""By qualified resource: selectable fields that are not just what stands at their path."""


_METADATA = ("metadata.name", "metadata.namespace")
_HINTS = 8
"""Values that are looked for in the bytes of an object; of more, the key alone."""


class Selection:
    """Both selectors of one request. `name` and `namespace`: values demanded by equality, None if not."""

    __slots__ = ("_checks", "_hints", "_keys", "labels", "name", "namespace")

    def __init__(self, kind: ServedKind, labels: str, fields: str) -> None:
        """Raises StatusError 400 on selectors that cannot be read or name unknown fields."""
        self.labels: LabelSelector = parse_labels(labels)
        self.name: str | None = None
        self.namespace: str | None = None
        self._keys: list[tuple[bool, str, bool]] = []
        self._checks: list[tuple[Reader, str, bool]] = []
        self._hints = [hint for hint in map(_hint, self.labels.requirements) if hint]
        known = {**{path: at(path) for path in kind.selectable}, **_READERS.get(kind.qualified, {})}
        for wanted in parse_fields(fields):
            if wanted.path in _METADATA and (kind.namespaced or not kind.custom or wanted.path == "metadata.name"):
                is_name = wanted.path == "metadata.name"
                self._keys.append((is_name, wanted.value, wanted.equal))
                if wanted.equal and is_name:
                    self.name = wanted.value
                elif wanted.equal:
                    self.namespace = wanted.value
            elif wanted.path in known:
                self._checks.append((known[wanted.path], wanted.value, wanted.equal))
            else:
                raise bad_request(_unknown(kind, wanted.path))

    def __bool__(self) -> bool:
        return bool(self.labels) or bool(self._keys) or bool(self._checks)

    @property
    def needs_object(self) -> bool:
        """Whether keys alone do not decide."""
        return bool(self.labels) or bool(self._checks)

    def key_matches(self, key: Key) -> bool:
        return all(((key.name if is_name else key.namespace) == value) == equal for is_name, value, equal in self._keys)

    def may_match(self, value: bytes) -> bool:
        """Whether a stored value can match: False is certain, and spares decoding it."""
        return all(any(text in value for text in hint) for hint in self._hints)

    def object_matches(self, obj: Object) -> bool:
        """What `key_matches` does not decide, on an object in the version asked for."""
        if self.labels and not self.labels.matches(obj["metadata"].get("labels")):
            return False
        return all((read(obj) == value) == equal for read, value, equal in self._checks)


def _unknown(kind: ServedKind, path: str) -> str:
    """In Kubernetes' words, which are others for kinds of which nothing but metadata can be selected."""
    entry = None if kind.custom else ENTRIES.get(kind.qualified)
    if entry is not None and entry.unselectable:
        return entry.unselectable.format(path)
    if kind.custom or kind.selectable:
        return f"field label not supported: {path}"
    names = ", ".join(f'"{each}"' for each in _METADATA)
    return f'"{path}" is not a known field selector: only {names}'


def _hint(requirement: Requirement) -> list[bytes]:
    """Texts of which a matching object's JSON has at least one; [] if nothing is certain. Stored JSON has no blanks,
    and neither labels nor their keys have characters that JSON escapes."""
    if requirement.key.startswith(LABEL):  # it is told and not stored
        return []
    match requirement.operator:
        case "In" if len(requirement.values) <= _HINTS:
            return [f'"{requirement.key}":"{value}"'.encode() for value in requirement.values]
        case "In" | "Exists":
            return [f'"{requirement.key}":'.encode()]
        case _:
            return []
