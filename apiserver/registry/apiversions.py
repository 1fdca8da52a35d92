"""APIExport and APIBinding between v1alpha2, in which they are stored, and v1alpha1.

v1alpha1 names schemas alone (`latestResourceSchemas`), and its permission claims are for everything: it has neither
verbs nor selectors, but says `all` or names objects. What one version cannot say stands, as in kcp, in annotations of
the other, so that a client of either reads and writes without losing anything. A claim is recognised by its group,
resource and identity hash. What annotations say is the client's: of what is not a claim nothing is taken. Called by
conversion.py through the kinds' entries. Nothing given is changed; results may share parts with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson

from apiserver.registry.exportspec import schema_names

Object = dict[str, Any]

_PREFIX = "apis.v1alpha2.kcp.io/"
_EVERYTHING = ["*"]
_OLDER = "v1alpha1"
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


class _Claims(NamedTuple):
    """One list of claims: where it stands, and the annotations that hold what v1alpha1 cannot say of it and what
    v1alpha2 cannot. `scoped`: they have a selector."""

    section: str
    field: str
    newer: str
    older: str
    scoped: bool


_OF_EXPORT = (_Claims("spec", "permissionClaims", "permission-claims", "v1alpha1-permission-claims", False),)
_OF_BINDING = (
    _Claims("spec", "permissionClaims", "acceptable-permission-claims", "v1alpha1-permission-claims", True),
    _Claims("status", "exportPermissionClaims", "status-export-permission-claims",
            "v1alpha1-status-export-permission-claims", False),
    _Claims("status", "appliedPermissionClaims", "status-applied-permission-claims",
            "v1alpha1-status-applied-permission-claims", True),
)  # fmt: skip


def export(obj: Object, api_version: str) -> Object:
    """An APIExport in that version."""
    if not _turns(obj, api_version):
        return {**obj, "apiVersion": api_version}
    made = _claims(obj, api_version, _OF_EXPORT)
    spec = dict(made.get("spec") or {})
    if api_version.endswith(_OLDER):
        resources = spec.pop("resources", None)
        if resources is not None:
            spec["latestResourceSchemas"] = [each["schema"] for each in resources]
    else:
        names = spec.pop("latestResourceSchemas", None)
        if names is not None:
            spec["resources"] = [_resource(name) for name in names]
    return {**made, "spec": spec} if "spec" in made else made


def binding(obj: Object, api_version: str) -> Object:
    """An APIBinding in that version."""
    if not _turns(obj, api_version):
        return {**obj, "apiVersion": api_version}
    return _claims(obj, api_version, _OF_BINDING)


def _turns(obj: Object, api_version: str) -> bool:
    """Whether it is another version, and not the same of another name of the group."""
    return str(obj.get("apiVersion")).endswith(_OLDER) is not api_version.endswith(_OLDER)


def _resource(schema: str) -> Object:
    group, resource = schema_names(schema)
    return {"name": resource, "group": group, "schema": schema, "storage": {"crd": {}}}


def _claims(obj: Object, api_version: str, places: Iterable[_Claims]) -> Object:
    older = api_version.endswith(_OLDER)
    made: Object = {**obj, "apiVersion": api_version}
    notes = dict(obj["metadata"].get("annotations") or {})
    for place in places:
        told = notes.pop(_PREFIX + (place.older if older else place.newer), "")
        section = made.get(place.section) or {}
        found = section.get(place.field)
        if not found:
            continue
        turned, lost = (_to_older if older else _to_newer)(found, told, place)
        made[place.section] = {**section, place.field: turned}
        if lost:
            notes[_PREFIX + (place.newer if older else place.older)] = orjson.dumps(lost).decode()
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    made["metadata"] = {**metadata, "annotations": notes} if notes else metadata
    return made


def _to_older(claims: list[Object], told: str, place: _Claims) -> tuple[list[Object], list[Object]]:
    """The claims as v1alpha1 has them, and those that it does not say whole."""
    known = {_named(claim): claim for claim in _read(told, _is_older)}
    turned = [_older(claim, known.get(_named(claim))) for claim in claims]
    return turned, [_stateless(claim) for claim in claims if not _same(_newer(_older(claim, None), None, place), claim)]


def _to_newer(claims: list[Object], told: str, place: _Claims) -> tuple[list[Object], list[Object]]:
    known = {_named(claim): claim for claim in _read(told, _is_scoped if place.scoped else _is_claim)}
    turned = [_newer(claim, known.get(_named(claim)), place) for claim in claims]
    return turned, [_stateless(claim) for claim in claims if not _same(_older(_newer(claim, None, place), None), claim)]


def _named(claim: Object) -> tuple[str, str, str]:
    return claim.get("group") or "", claim.get("resource") or "", claim.get("identityHash") or ""


def _same(claim: Object, other: Object) -> bool:
    return _plain(claim) == _plain(other)


def _plain(claim: Object) -> Object:
    return {key: value for key, value in _stateless(claim).items() if value not in ("", None)}


def _stateless(claim: Object) -> Object:
    return {key: value for key, value in claim.items() if key != "state"}


def _older(claim: Object, told: Object | None) -> Object:
    """`told`: what v1alpha1 said of the same claim."""
    kept = {key: claim[key] for key in ("group", "resource", "identityHash", "state") if claim.get(key)}
    how: Object = {"all": True}
    if told is not None:
        how = {key: told[key] for key in ("all", "resourceSelector") if key in told}
    return {"group": "", **kept, **how}


def _newer(claim: Object, told: Object | None, place: _Claims) -> Object:
    """`told`: what v1alpha2 said of the same claim."""
    kept = {key: claim[key] for key in ("group", "resource", "identityHash", "state") if claim.get(key)}
    made: Object = {"group": "", "identityHash": "", **kept, "verbs": list((told or {}).get("verbs") or _EVERYTHING)}
    if place.scoped:
        made["selector"] = (told or {}).get("selector") or {"matchAll": True}
    elif told is not None and "defaultSelector" in told:
        made["defaultSelector"] = told["defaultSelector"]
    return made


def _read(text: str, sound: Callable[[Object], bool]) -> list[Object]:
    """The claims in an annotation; nothing of one that holds anything else."""
    if not isinstance(text, str) or not text:
        return []
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return []
    whole = isinstance(found, list) and all(isinstance(c, dict) and _names_something(c) and sound(c) for c in found)
    return found if whole else []


def _names_something(claim: Object) -> bool:
    return all(isinstance(claim.get(key, ""), str) for key in ("group", "resource", "identityHash"))


def _is_older(claim: Object) -> bool:
    chosen = claim.get("resourceSelector", [])
    shaped = isinstance(chosen, list) and all(isinstance(c, dict) and _all_text(c.values()) for c in chosen)
    return isinstance(claim.get("all", True), bool) and shaped


def _is_claim(claim: Object) -> bool:
    verbs = claim.get("verbs")
    said = isinstance(verbs, list) and bool(verbs) and _all_text(verbs)
    return said and ("defaultSelector" not in claim or _is_selector(claim["defaultSelector"]))


def _is_scoped(claim: Object) -> bool:
    return _is_claim(claim) and _is_selector(claim.get("selector"))


def _is_selector(found: object) -> bool:
    if not isinstance(found, dict) or found.keys() - {"matchAll", "matchLabels", "matchExpressions"}:
        return False
    labels, expressions = found.get("matchLabels", {}), found.get("matchExpressions", [])
    return (
        isinstance(found.get("matchAll", True), bool)
        and isinstance(labels, dict)
        and _all_text(labels.values())
        and isinstance(expressions, list)
        and all(map(_is_requirement, expressions))
    )


def _is_requirement(found: object) -> bool:
    return (
        isinstance(found, dict)
        and isinstance(found.get("key"), str)
        and found.get("operator") in _OPERATORS
        and isinstance(found.get("values", []), list)
        and _all_text(found.get("values", []))
    )


def _all_text(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)
