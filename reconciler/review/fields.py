"""What differs between two forms of an object, field by field. Pure.

Called by objects. A field is named as people write it: `spec.template.spec.containers[name=web].image`. Compared is
what a file says of an object; what servers set is nobody's change. Of a Secret the names of keys are told and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from apiserver.model import marks
from apiserver.model.storagenames import WORKSPACES
from reconciler.layout.alike import same
from reconciler.plan.gitform import cut
from reconciler.plan.listitems import key_of

Object = dict[str, Any]

MOST = 1_000
"""Fields of an object that are told one by one."""
_SERVED = {"metadata": {"labels": ("tenancy.kcp.io/phase",), "annotations": marks.PLACES}}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_PLAIN = frozenset({"apiVersion", "kind", "metadata", "type", "immutable"})
"""Fields of a Secret that hold no secret."""


class Untold(Enum):
    """What stands in a field's place that is not told: `ABSENT` that there is none, `HIDDEN` that nobody may see it."""

    ABSENT = "absent"
    HIDDEN = "hidden"


ABSENT, HIDDEN = Untold.ABSENT, Untold.HIDDEN


class FieldChange(NamedTuple):
    """`before`, `after`: JSON, or Untold."""

    field: str
    before: Any
    after: Any


def content(resource: str, value: Object) -> Object:
    """What a file may say of a stored object."""
    found = cut(value)
    if resource != WORKSPACES:
        return found
    metadata = {**found["metadata"]}
    for part, ours in _SERVED["metadata"].items():
        kept = {key: text for key, text in (metadata.pop(part, None) or {}).items() if key not in ours}
        metadata |= {part: kept} if kept else {}
    spec = {key: part for key, part in (found.get("spec") or {}).items() if key not in ("cluster", "URL")}
    return {**found, "metadata": metadata, "spec": spec}


def differences(resource: str, before: Object, after: Object) -> Iterator[FieldChange]:
    """In the order of their names. Both as `content` gives them."""
    for at, old, new in _differing("", before, after):
        name = at.lstrip(".")
        yield FieldChange(name, *(_hide(old), _hide(new)) if is_hidden(resource, name) else (old, new))


def is_hidden(resource: str, field: str) -> bool:
    """Whether nobody is to see what a field says."""
    return _LAST_APPLIED in field or (resource == "secrets" and not _is_plain(field))


def _is_plain(field: str) -> bool:
    top = field.partition(".")[0].partition("[")[0]
    return top in _PLAIN and not field.startswith("metadata.annotations")


def _hide(value: Any) -> Any:
    return value if value is ABSENT else HIDDEN


def _differing(at: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _differing(f"{at}{_step(key)}", old.get(key, ABSENT), new.get(key, ABSENT))
    elif isinstance(old, dict) and new is ABSENT and old:
        for key in sorted(old):
            yield from _differing(f"{at}{_step(key)}", old[key], ABSENT)
    elif isinstance(new, dict) and old is ABSENT and new:
        for key in sorted(new):
            yield from _differing(f"{at}{_step(key)}", ABSENT, new[key])
    elif isinstance(old, list) and isinstance(new, list):
        yield from _items(at, old, new)
    else:
        yield at, old, new


def _items(at: str, old: list[Any], new: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    key = key_of(old, new)
    if key is None and len(old) != len(new):
        yield at, old, new
        return
    if key is None:
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from _differing(f"{at}[{number}]", *pair)
        return
    before, after = ({tuple(item[part] for part in key): item for item in items} for items in (old, new))
    for values in dict.fromkeys((*before, *after)):
        told = ",".join(f"{part}={value}" for part, value in zip(key, values, strict=True))
        yield from _differing(f"{at}[{told}]", before.get(values, ABSENT), after.get(values, ABSENT))
    if [*before] != [*after] and before.keys() == after.keys():
        yield f"{at}", [*map(list, before)], [*map(list, after)]


def _step(key: str) -> str:
    return f".{key}" if key and all(c.isalnum() or c in "-_" for c in key) else f"[{key}]"
