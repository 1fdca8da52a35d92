"""The walks of field ownership over one value, or over an old and a new one, guided by a schema's list and map types.

Called by apply.py and managed.py. `fields_of` says what a manifest names, `compare` what changed, `merge` lays a
manifest over an object, `remove` takes fields out, `with_parents` counts a struct's fields as members.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from apiserver.schema import fieldset, typed
from apiserver.schema.defaults import copy_json
from apiserver.schema.fieldset import MEMBER, Fields
from apiserver.schema.node import MISSING, Node

Json = dict[str, Any]


class Changes(NamedTuple):
    """Three disjoint sets of fields."""

    added: Fields
    modified: Fields
    removed: Fields


# --- what a value names -----------------------------------------------------------------------------------------------


def fields_of(value: Json, node: Node) -> Fields:
    """Every leaf, list item and undeclared map key of an object."""
    return _fields_of(value, node)[1]


def _fields_of(value: Any, node: Node) -> tuple[bool, Fields]:
    """Whether the value itself is a member, and the set below it."""
    if typed.is_map(node, value):
        out: Fields = {}
        for key, item in value.items():
            child = typed.field(node, key)
            if child is not None:
                leaf, below = _fields_of(item, child)
                owned = leaf or item is None or item == {} or key not in node.properties
                found = fieldset.node(owned, below)
                if found is not None:
                    out["f:" + key] = found
        return False, out
    if typed.is_list(node, value):
        names = typed.entries(node, value)
        if names is not None:
            return False, _items_of(value, names, typed.item(node))
    return True, {}


def _items_of(values: list[Any], names: list[str], child: Node) -> Fields:
    out: Fields = {}
    for name, value in zip(names, values, strict=True):
        if name in out:
            out[name] = MEMBER  # repeated: owned as a whole
        else:
            out[name] = fieldset.node(True, _fields_of(value, child)[1]) or MEMBER
    return out


def with_parents(fields: Fields, node: Node) -> Fields:
    """`fields` in which every declared field that has some below is a member itself."""
    out: Fields = {}
    for key, below in fields.items():
        if key == fieldset.SELF or not below:
            out[key] = below
            continue
        child, declared = None, False
        if key.startswith("f:"):
            child, declared = typed.field(node, key[2:]), key[2:] in node.properties
        elif key.startswith("k:"):
            child = typed.item(node)
        inner = with_parents(below, child) if child is not None else below
        out[key] = {fieldset.SELF: MEMBER, **inner} if declared else inner
    return out


# --- what changed -----------------------------------------------------------------------------------------------------


def compare(old: Json, new: Json, node: Node) -> Changes:
    """What `new` adds, changes and lacks, compared with `old`."""
    found = Changes({}, {}, {})
    _compare_maps(old, new, node, found)
    return found


def _compare(old: Any, new: Any, node: Node, name: str, into: Changes) -> None:
    """Compares two values (at most one MISSING) and puts what it finds under `name`."""
    if old == new and (old.__class__ is new.__class__ or bool not in (old.__class__, new.__class__)):
        return
    inside = Changes({}, {}, {})
    old_open, new_open = _is_open(old, node), _is_open(new, node)
    leaf = not old_open and not new_open
    if old_open or new_open:
        _compare_open(old if old_open else MISSING, new if new_open else MISSING, node, inside)
    replaced = old is not MISSING and new is not MISSING and old_open != new_open and not _both_same_sort(old, new)
    _put(into.added, name, old is MISSING, inside.added)
    _put(into.removed, name, new is MISSING, inside.removed)
    _put(into.modified, name, (leaf and old is not MISSING and new is not MISSING) or replaced, inside.modified)


def _both_same_sort(old: Any, new: Any) -> bool:
    """A map against an empty or null one, a list likewise, differ in their items alone."""
    return old is None or new is None or old.__class__ is new.__class__


def _is_open(value: Any, node: Node) -> bool:
    """Whether the value is compared by what is in it; an empty one is a leaf."""
    if not value or value is MISSING:
        return False
    if typed.is_map(node, value):
        return True
    return typed.is_list(node, value) and typed.entries(node, value) is not None


def _compare_open(old: Any, new: Any, node: Node, into: Changes) -> None:
    old_list, new_list = old.__class__ is list, new.__class__ is list
    if not old_list and not new_list:
        _compare_maps(old if old is not MISSING else {}, new if new is not MISSING else {}, node, into)
    else:
        if old.__class__ is dict or new.__class__ is dict:  # a map became a list, or a list a map
            _compare_maps(old if not old_list else {}, new if not new_list else {}, node, into)
        _compare_lists(old if old_list else [], new if new_list else [], node, into)


def _compare_maps(old: Json, new: Json, node: Node, into: Changes) -> None:
    for key in old.keys() | new.keys():
        child = typed.field(node, key)
        if child is not None:
            _compare(old.get(key, MISSING), new.get(key, MISSING), child, "f:" + key, into)


def _compare_lists(old: list[Any], new: list[Any], node: Node, into: Changes) -> None:
    before, after = _grouped(old, node), _grouped(new, node)
    child = typed.item(node)
    for name in before.keys() | after.keys():
        olds, news = before.get(name, []), after.get(name, [])
        if len(olds) <= 1 and len(news) <= 1:
            _compare(olds[0] if olds else MISSING, news[0] if news else MISSING, child, name, into)
        elif len(olds) > 1 and len(news) > 1:
            _put(into.modified, name, olds != news, {})
        elif len(olds) > 1:  # repeated before, when it was owned as a whole
            if news:
                _compare(MISSING, news[0], child, name, into)
            into.removed[name] = MEMBER
        else:
            if olds:
                _compare(olds[0], MISSING, child, name, into)
            into.added[name] = MEMBER


def _grouped(values: list[Any], node: Node) -> dict[str, list[Any]]:
    out: dict[str, list[Any]] = {}
    for value in values:
        name = typed.entry(node, value)
        assert name is not None
        out.setdefault(name, []).append(value)
    return out


def _put(into: Fields, name: str, member: bool, below: Fields) -> None:
    found = fieldset.node(member, below)
    if found is not None:
        into[name] = found


# --- laying one over the other ----------------------------------------------------------------------------------------


def merge(live: Any, applied: Any, node: Node) -> Any:
    """`live` with what `applied` says; nothing is removed. The result may share parts with `live`."""
    if typed.is_map(node, applied) and typed.is_map(node, live):
        out = dict(live)
        for key, value in applied.items():
            child = typed.field(node, key)
            if key in live and child is not None:
                out[key] = merge(live[key], value, child)
            else:
                out[key] = copy_json(value)
        return out
    if typed.is_list(node, applied) and typed.is_list(node, live):
        left, right = typed.entries(node, live), typed.entries(node, applied)
        if left is not None and right is not None:
            return _merge_items(live, applied, left, right, typed.item(node))
    if applied is None and (_is_open(live, node)):
        return live  # null over a granular map or list names nothing in it
    return copy_json(applied)


def _merge_items(live: list[Any], applied: list[Any], left: list[str], right: list[str], child: Node) -> list[Any]:
    """Applied items in their order; items that only `live` has keep their place before the next common one."""
    by_name = dict(zip(left, live, strict=True))
    repeated = {name for name in by_name if left.count(name) > 1} if len(by_name) < len(left) else set()
    named = set(right)
    common = iter([name for name in right if name in by_name])
    upcoming = next(common, None)
    out: list[Any] = []
    at = 0
    for index, name in enumerate(right):
        while at < len(left) and left[at] != upcoming:
            if left[at] not in named:
                out.append(live[at])
            at += 1
        if name == upcoming:
            at, upcoming = at + 1, next(common, None)
        if name in by_name and name not in repeated:
            out.append(merge(by_name[name], applied[index], child))
        else:
            out.append(copy_json(applied[index]))
    out.extend(live[i] for i in range(min(at, len(left)), len(left)) if left[i] not in named)
    return out


# --- taking out -------------------------------------------------------------------------------------------------------


def remove(value: Any, fields: Fields, node: Node) -> Any:
    """`value` without the members of `fields`. A map or list that is no member stays, if need be empty."""
    if not fields:
        return value
    if typed.is_map(node, value):
        return _remove_fields(value, fields, node)
    if typed.is_list(node, value):
        names = typed.entries(node, value)
        if names is not None:
            return _remove_items(value, names, fields, typed.item(node))
    return value


def _remove_fields(value: Json, fields: Fields, node: Node) -> Json:
    out: Json = {}
    for key, item in value.items():
        named = fields.get("f:" + key)
        if named is None:
            out[key] = item
        elif not fieldset.is_member(named):
            child = typed.field(node, key)
            out[key] = remove(item, named, child) if child is not None else item
    return out


def _remove_items(values: list[Any], names: list[str], fields: Fields, child: Node) -> list[Any]:
    out: list[Any] = []
    for name, item in zip(names, values, strict=True):
        named = fields.get(name)
        if named is None:
            out.append(item)
        elif not fieldset.is_member(named):
            out.append(remove(item, named, child))
    return out
