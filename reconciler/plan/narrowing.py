"""Whether a schema takes all that another one takes: what an APIExport may offer instead of what it serves.

Pure. `narrower(old, new)` compares two structural schemas and names each place where an object that was good before may
not be any more: another type, a field that is required, an enum with fewer values, tighter bounds, a field that is gone
and would be pruned. What cannot be compared (patterns, combinations of schemas) counts as narrower when it changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from apiserver.model.counts import some_of

Object = dict[str, Any]

ALLOWED = "treeplane.dev/allow-incompatible-schema"
"""Annotation of an APIExport: `<old>-><new>`, names of schemas; several are divided by commas."""
_SHOWN = 3

_LOWER = ("minimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_EXACT = ("pattern", "multipleOf", "allOf", "anyOf", "oneOf", "not")
"""Of these only the same, or nothing, is surely no narrower."""
OPEN = "x-kubernetes-preserve-unknown-fields"
_EITHER = "x-kubernetes-int-or-string"
_WIDER = {
    ("integer", "number"),
    ("integer", "an integer or a string"),
    ("string", "an integer or a string"),
}
_LIST, _MAP = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"


def change_named(old: Object, new: Object) -> str:
    """A change from one schema to another, as an export names it."""
    return f"{old['metadata']['name']}->{new['metadata']['name']}"


def allowed_by(export: Object) -> frozenset[str]:
    """The changes that an APIExport names."""
    said = (export["metadata"].get("annotations") or {}).get(ALLOWED, "")
    return frozenset(each.strip() for each in said.split(","))


def shown(why: list[str]) -> str:
    """Reasons in short."""
    return some_of(why, _SHOWN, "; ")


def narrower_resource(old: Object, new: Object) -> list[str]:
    """Of two specs of APIResourceSchemas for one resource. Texts like `v1: .spec.size: was integer, is string`."""
    found = moved(old, new)
    versions = {v["name"]: v for v in new.get("versions") or () if v.get("served")}
    for version in old.get("versions") or ():
        if not version.get("served"):
            continue
        name = version["name"]
        if name not in versions:
            found.append(f"version {name} is not served any more")
            continue
        found += [f"{name}: {text}" for text in narrower(schema_of(version), schema_of(versions[name]))]
    return found


def moved(old: Object, new: Object) -> list[str]:
    """Of the same two, why objects would be found nowhere any more."""
    found = []
    if old.get("scope") != new.get("scope"):
        found.append(f"its scope was {old.get('scope')}, is {new.get('scope')}")
    if old["names"].get("kind") != new["names"].get("kind"):
        found.append(f"its kind was {old['names'].get('kind')}, is {new['names'].get('kind')}")
    return found


def narrower(old: Object, new: Object) -> list[str]:
    """Why `new` does not take all that `old` takes; [] if it does."""
    return [f"{path or '.'}: {text}" for path, text in _nodes(old, new, "")]


def schema_of(version: Object) -> Object:
    """The schema of a version; definitions have it one level deeper."""
    found: Object = version.get("schema") or {}
    inner: Object = found.get("openAPIV3Schema", found)
    return inner


def _nodes(old: Object, new: Object, path: str) -> Iterator[tuple[str, str]]:
    if _is_anything(new):
        return
    yield from ((path, text) for text in _own(old, new))
    if old.get("type") == new.get("type"):
        yield from _fields(old, new, path)
        if "items" in new:
            yield from _nodes(old.get("items") or {}, new["items"], f"{path}[]")


def _is_anything(schema: Object) -> bool:
    """Whether it says nothing that an object could offend."""
    return not {k for k in schema if k not in ("description", "title", "example", "default", OPEN)}


def _own(old: Object, new: Object) -> Iterator[str]:
    yield from _type(old, new)
    if old.get("nullable") and not new.get("nullable"):
        yield "may not be null any more"
    if new.get("enum") is not None:
        gone = [v for v in old.get("enum") or () if v not in new["enum"]]
        if old.get("enum") is None or gone:
            yield f"takes only {', '.join(map(str, new['enum']))}"
    yield from _bounds(old, new)
    yield from (f"has another {each}" for each in _EXACT if new.get(each) is not None and new[each] != old.get(each))
    if new.get("format") and new["format"] != old.get("format"):
        yield f"its format is {new['format']}"
    if new.get("uniqueItems") and not old.get("uniqueItems"):
        yield "takes each item once"
    if new.get(_LIST) in ("set", "map") and (new.get(_LIST), new.get(_MAP)) != (old.get(_LIST), old.get(_MAP)):
        yield f"is a {new[_LIST]}"


def _type(old: Object, new: Object) -> Iterator[str]:
    was, now = _named_type(old), _named_type(new)
    wider = now == "of any type" or (was, now) in _WIDER
    if was != now and not wider:
        yield f"was {was}, is {now}"


def _named_type(schema: Object) -> str:
    return "an integer or a string" if schema.get(_EITHER) else str(schema.get("type") or "of any type")


def _bounds(old: Object, new: Object) -> Iterator[str]:
    for each in _LOWER:
        if new.get(each) is not None and (old.get(each) is None or old[each] < new[each]):
            yield f"its {each} is {new[each]}"
    for each in _UPPER:
        if new.get(each) is not None and (old.get(each) is None or old[each] > new[each]):
            yield f"its {each} is {new[each]}"
    for each, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if new.get(each) and not old.get(each) and old.get(bound) == new.get(bound):
            yield f"its {bound} does not count any more"


def _fields(old: Object, new: Object, path: str) -> Iterator[tuple[str, str]]:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    for name in new.get("required") or ():
        if name not in (old.get("required") or ()) and "default" not in (after.get(name) or {}):
            yield f"{path}.{name}", "is required"
    rest = others_of(new)
    for name, schema in before.items():
        if name in after:
            yield from _nodes(schema, after[name], f"{path}.{name}")
        elif rest is None:
            yield f"{path}.{name}", "is no field any more"
        else:
            yield from _nodes(schema, rest, f"{path}.{name}")
    others = others_of(old)
    if others is None:
        return
    for name, schema in after.items():
        if name not in before:
            yield from _nodes(others, schema, f"{path}.{name}")
    if rest is None:
        yield path, "takes no other fields any more"
    else:
        yield from _nodes(others, rest, f"{path}.*")


def others_of(schema: Object) -> Object | None:
    """What fields must be that `properties` does not name: {} for anything, None if there may be none."""
    found = schema.get("additionalProperties")
    if isinstance(found, dict):
        return found
    return {} if found is True or schema.get(OPEN) or _is_anything(schema) else None
