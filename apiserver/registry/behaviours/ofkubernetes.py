"""Definitions that name a kind of Kubernetes' own, be it a CustomResourceDefinition or an APIResourceSchema.

Such a kind is served as Kubernetes serves it (kinds.py), so of what its definition says only names of versions count.
Called by definitions.py, which tells so, and by whoever tells it of what an export offers.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from apiserver.model.conditions import Condition, condition
from apiserver.registry.facts import load

Object = dict[str, Any]

SERVED_AS_KUBERNETES = "ServedAsKubernetes"
"""The condition that says so, of a definition that says something else."""

_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class _Known(NamedTuple):
    kind: str
    namespaced: bool
    versions: frozenset[str]


@cache
def _known() -> dict[tuple[str, str], _Known]:
    """Kubernetes' own kinds that are stored, by group and resource."""
    found: dict[tuple[str, str], _Known] = {}
    for fact in load.kubernetes()["resources"]:
        if {"create", "get"} <= set(fact["verbs"]):
            at, version = (fact["group"], fact["resource"]), frozenset((fact["version"],))
            before = found.get(at)
            versions = version | before.versions if before is not None else version
            found[at] = _Known(fact["kind"], fact["namespaced"], versions)
    return found


def versions_of(spec: Object) -> list[str]:
    """The served versions of a definition that are Kubernetes'; [] for what is none of its kinds: another resource,
    kind or scope, or no version that it has."""
    names = spec.get("names") or {}
    known = _known().get((spec.get("group") or "", names.get("plural") or ""))
    if known is None or (known.kind, known.namespaced) != (names.get("kind"), spec.get("scope") == "Namespaced"):
        return []
    return [name for name in _served(spec) if name in known.versions]


def ignored(spec: Object) -> str:
    """What a definition says that does not count, in words; "" where there is nothing, or it is none of Kubernetes'."""
    taken = versions_of(spec)
    if not taken:
        return ""
    others = [name for name in _served(spec) if name not in taken]
    if not others and all(_says_nothing(version) for version in spec.get("versions") or ()):
        return ""
    group = spec.get("group") or ""
    named = " and ".join(f"{group}/{version}" if group else version for version in taken)
    text = f"{spec['names']['kind']} of {named} is served as Kubernetes has it, whatever is said of its schema"
    return text + (f"; versions that are not served: {', '.join(others)}" if others else "")


def told(ignored: str, at: str) -> list[Condition]:
    """The condition for what `ignored` says of one definition, or of several."""
    return [condition(SERVED_AS_KUBERNETES, True, "SchemaIgnored", ignored, at=at)] if ignored else []


def _served(spec: Object) -> list[str]:
    return [str(v.get("name") or "") for v in spec.get("versions") or () if v.get("served")]


def _says_nothing(version: Object) -> bool:
    schema: Object = version.get("schema") or {}
    schema = schema.get("openAPIV3Schema") or schema
    said = {key: value for key, value in schema.items() if key != "description"}
    return said == _OPEN and not version.get("additionalPrinterColumns") and not version.get("selectableFields")
