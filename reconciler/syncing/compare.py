"""Whether what is on a target is in step with what we would apply, without asking the target.

Two questions: is every rendered field there with that meaning, and does `treeplane` own nothing that is not rendered
any more? What is owned as a whole (an atomic list or map) has to be there as it is rendered, with nothing besides: what
the target added cannot be told from what was rendered before. Answers "yes" or "not sure": defaults, normalised
quantities and lists merged by key can look like differences. Who is not sure asks the target with a dry run, and `same`
tells what that would have changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson

from apiserver.model.marks import FIELD_MANAGER

Object = dict[str, Any]

_TYPE = ("apiVersion", "kind")
_QUANTITY = re.compile(r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))([eE][+-]?\d{1,4}|[KMGTPE]i|[numkMGTPE])?")
_LONGEST = 64
"""Characters of a quantity. Both sides may be anybody's text, of any length."""
_SUFFIX = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal("1e3")} | {
    letter: Decimal(1000) ** n for n, letter in enumerate("MGTPE", 2)
}
_BINARY = {f"{letter}i": Decimal(1024) ** n for n, letter in enumerate("KMGTPE", 1)}


def in_step(rendered: Object, live: Object) -> bool:
    """True: applying would change nothing. False: not sure. Both are of one kind and version; `live` need not say so,
    as an object in a list does not."""
    owned, content = _owned(live), {k: v for k, v in rendered.items() if k not in _TYPE}
    return owned is not None and _within(content, live) and _covered(owned, content, live)


def same(before: Object, after: Object) -> bool:
    """Whether an apply (as a dry run tells) left everything but bookkeeping as it was."""
    return _content(before) == _content(after)


def means(wanted: Any, live: Any) -> bool:
    """Whether a part of a live object says what is wanted of it, be it with more beside it; `live` None: it is not
    there."""
    return _within(wanted, live) or (live is None and _void(wanted))


def _content(obj: Object) -> Object:
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("managedFields", "resourceVersion", "generation")}
    return {**{k: v for k, v in obj.items() if k not in _TYPE}, "metadata": metadata}


def _within(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, dict):
        if not isinstance(live, dict):
            return not wanted and live is None
        return all(_within(v, live[k]) if k in live else _void(v) for k, v in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(live, list):
            return not wanted and live is None
        return len(wanted) == len(live) and all(map(_within, wanted, live))
    return (wanted == live and type(wanted) is type(live)) or _quantity(wanted) == _quantity(live) is not None


def _void(value: Any) -> bool:
    """What Kubernetes leaves out of an object."""
    return value is None or value is False or value in ("", 0, {}, [])


def _quantity(value: Any) -> Decimal | None:
    """`500m` and `0.5` mean the same, and so do 1 and "1" where both may stand."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = str(value)
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    number, suffix = match.groups()
    if not suffix:
        return Decimal(number)
    factor = _SUFFIX.get(suffix) or _BINARY.get(suffix)
    return Decimal(number) * factor if factor is not None else Decimal(number + suffix)


def _owned(live: Object) -> Object | None:
    """The fields that we applied; None if we never did."""
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == FIELD_MANAGER and entry.get("operation") == "Apply" and not entry.get("subresource"):
            fields: Object = entry.get("fieldsV1") or {}
            return fields
    return None


def _covered(owned: Mapping[str, Any], rendered: Any, live: Any) -> bool:
    """Whether everything owned is still rendered. All that is rendered is in `live`."""
    for path, below in owned.items():
        if path == ".":
            continue
        prefix, name = path[:2], path[2:]
        if prefix == "f:":
            if not isinstance(rendered, dict) or name not in rendered:
                return False
            mine, theirs = rendered[name], live.get(name)
        elif prefix == "v:":
            if not isinstance(rendered, list) or orjson.loads(name) not in rendered:
                return False
            continue
        elif prefix == "k:":
            key = orjson.loads(name)
            mine, theirs = _keyed(rendered, key), _keyed(live, key)
            if mine is None or theirs is None:
                return False
        else:
            return False
        if not (_covered(below, mine, theirs) if below else _nothing_besides(mine, theirs)):
            return False
    return True


def _nothing_besides(wanted: Any, live: Any) -> bool:
    if isinstance(wanted, dict) and isinstance(live, dict):
        return all(k in wanted and _nothing_besides(wanted[k], v) for k, v in live.items())
    if isinstance(wanted, list) and isinstance(live, list):
        return all(map(_nothing_besides, wanted, live))
    return True


def _keyed(items: Any, key: Mapping[str, Any]) -> Object | None:
    """The item of a list that is named by `key`; a part of the key that the item leaves out is its default."""
    if not isinstance(items, list):
        return None
    found = [i for i in items if isinstance(i, dict) and all(i.get(k, v) == v for k, v in key.items())]
    return found[0] if len(found) == 1 else None
