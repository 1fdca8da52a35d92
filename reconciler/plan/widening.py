"""Whether objects are what they are when a schema takes the place of another one, so that none has to be looked at.

Called where a provider offers another schema than its consumers are bound to. Pure. What fits the old one has to fit
the new one (`narrowing`), and has to stand in the store as it stood: under the same names, in the same version, with
the same defaults. The new one may allow more, and know further fields. What cannot be told (another type, which keeps
numbers otherwise; a version that keeps more of what another one says) counts as a difference.
"""

from __future__ import annotations

from typing import Any

from reconciler.plan.exports import Turn
from reconciler.plan.narrowing import OPEN, narrower_resource, others_of, schema_of

Object = dict[str, Any]

_SHOWN = frozenset({"schema", "additionalPrinterColumns", "deprecated", "deprecationWarning", "selectableFields"})
"""What a version says that no stored object follows from; its schema is compared by itself."""
_BOUNDS = frozenset(
    (
        *("minimum", "minLength", "minItems", "minProperties", "exclusiveMinimum"),
        *("maximum", "maxLength", "maxItems", "maxProperties", "exclusiveMaximum"),
    )
)
_ALLOWS = _BOUNDS | {
    *("enum", "required", "pattern", "format", "multipleOf", "uniqueItems"),
    *("allOf", "anyOf", "oneOf", "not"),
}
"""What refuses objects and makes nothing of them."""
_TELLS = frozenset({"description", "title", "example", "externalDocs"})
_HOLDS = frozenset({"properties", "items", "additionalProperties", OPEN})
_APART = _ALLOWS | _TELLS | _HOLDS


def leaves_alone(turn: Turn) -> bool:
    """Whether all objects of what a binding was bound to are the same under what it takes instead."""
    before, after = (
        {export.storage(schema): schema["spec"] for schema in export.schemas} for export in (turn.former, turn.export)
    )
    return before.keys() == after.keys() and all(is_the_same(spec, after[name]) for name, spec in before.items())


def is_the_same(old: Object, new: Object) -> bool:
    """The same of two specs of APIResourceSchemas."""
    if _without(old, {"versions"}) != _without(new, {"versions"}) or narrower_resource(old, new):
        return False
    before, after = ({v["name"]: v for v in spec.get("versions") or ()} for spec in (old, new))
    if any(name not in after or not _is_version_the_same(v, after[name]) for name, v in before.items()):
        return False
    stored = next((v for v in before.values() if v.get("storage")), None)
    if stored is None or not stored.get("served"):
        return False
    # What is written in another version is cut to the fields of the stored one.
    others = sum(bool(v.get("served")) for v in before.values()) > 1
    return not others or schema_of(stored) == schema_of(after[stored["name"]])


def _is_version_the_same(old: Object, new: Object) -> bool:
    return _without(old, _SHOWN) == _without(new, _SHOWN) and _is_node_the_same(schema_of(old), schema_of(new))


def _is_node_the_same(old: Object, new: Object) -> bool:
    return (
        _without(old, _APART) == _without(new, _APART)
        and _are_fields_the_same(old, new)
        and ("items" in old) == ("items" in new)
        and ("items" not in old or _is_node_the_same(old["items"], new["items"]))
    )


def _are_fields_the_same(old: Object, new: Object) -> bool:
    before, after = old.get("properties") or {}, new.get("properties") or {}
    others = others_of(old)
    for name, schema in after.items():
        if name in before:
            if not _is_node_the_same(before[name], schema):
                return False
        elif "default" in schema or (others is not None and _has_default(schema)):
            return False  # it appears in what is there, or in what stands there unnamed
        elif others is not None and not _names_others(old) and not schema.get("nullable"):
            return False  # a null is kept where no schema is said of a field, and left out where one is
    if before.keys() - after.keys() or _names_others(old) != _names_others(new):
        return False
    if not others:
        return others is None or not _has_default(others_of(new) or {})
    now = others_of(new)
    return now is not None and _is_node_the_same(others, now)


def _names_others(schema: Object) -> bool:
    return isinstance(schema.get("additionalProperties"), dict)


def _has_default(schema: Object) -> bool:
    inner = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return "default" in schema or any(_has_default(each) for each in inner if isinstance(each, dict))


def _without(found: Object, names: frozenset[str] | set[str]) -> Object:
    return {name: value for name, value in found.items() if name not in names}
