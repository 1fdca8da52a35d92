"""Kinds that definitions make: CustomResourceDefinitions of the workspace, and APIResourceSchemas that it binds.

Pure functions on the definitions' objects, which are taken to be valid (see strategy.prepare); results are shared by
content, since thousands of workspaces may hold the same definition.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from typing import Any

import orjson

from apiserver.model.keys import definition_of, storage_name
from apiserver.registry.printers.base import AGE, NAME
from apiserver.registry.schemas import custom_source
from apiserver.registry.served import ALL_VERBS, Column, Scale, ServedKind
from apiserver.registry.webhookspec import conversion_of

Object = dict[str, Any]

_KEEP = 2048
_AGE = replace(AGE, type="date", path=".metadata.creationTimestamp")
_made: OrderedDict[str, list[ServedKind]] = OrderedDict()
_lock = Lock()


def kinds_of_crd(crd: Object) -> list[ServedKind]:
    """One for each served version of a CustomResourceDefinition, established or not.

    A resource that is Kubernetes' own is made like any other here, and below; see kinds.py.
    """
    return _kinds(crd["spec"], "")


def kinds_of_schema(schema: Object, identity: str) -> list[ServedKind]:
    """One for each served version of an APIResourceSchema bound with that identity hash."""
    spec = schema["spec"]
    versions = [{**v, "schema": {"openAPIV3Schema": v.get("schema", {})}} for v in spec["versions"]]
    return _kinds({**spec, "versions": versions}, identity)


def _kinds(spec: Object, identity: str) -> list[ServedKind]:
    digest = hashlib.sha256(identity.encode() + b"\0" + orjson.dumps(spec)).hexdigest()
    with _lock:
        found = _made.get(digest)
    if found is None:
        conversion = conversion_of(spec)
        served = [_served(spec, v, identity, digest) for v in spec["versions"] if v.get("served")]
        found = [replace(kind, conversion=conversion) for kind in served] if conversion else served
        with _lock:
            _made[digest] = found
            if len(_made) > _KEEP:
                _made.popitem(last=False)
    return found


def _served(spec: Object, version: Object, identity: str, digest: str) -> ServedKind:
    names, group = spec["names"], spec["group"]
    subresources = version.get("subresources") or {}
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    deprecated = bool(version.get("deprecated"))
    storage = storage_name(group, names["plural"], identity)
    warning = f"{group}/{version['name']} {names['kind']} is deprecated"
    return ServedKind(
        group=group,
        version=version["name"],
        resource=names["plural"],
        singular=names.get("singular") or names["kind"].lower(),
        kind=names["kind"],
        list_kind=names.get("listKind") or f"{names['kind']}List",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        namespaced=spec.get("scope") == "Namespaced",
        verbs=ALL_VERBS,
        subresources=frozenset(s for s in ("status", "scale") if s in subresources),
        storage=storage,
        source=custom_source(schema, f"{digest}/{version['name']}"),
        columns=columns_of(version),
        custom=True,
        generation=True,
        storage_version=bool(version.get("storage")),
        deprecated=deprecated,
        deprecation_warning=(version.get("deprecationWarning") or warning) if deprecated else "",
        scale=_scale(subresources.get("scale")),
        selectable=tuple(f["jsonPath"].removeprefix(".") for f in version.get("selectableFields") or ()),
        digest=f"{digest}/{version['name']}",
        definition="" if identity else definition_of(storage),
    )


def columns_of(version: Object) -> tuple[Column, ...]:
    """Name and what the version declares; Age only where it declares nothing."""
    declared = version.get("additionalPrinterColumns") or ()
    if not declared:
        return (NAME, _AGE)
    columns = (
        Column(c["name"], c["type"], c.get("format", ""), c.get("description", ""), c.get("priority", 0), c["jsonPath"])
        for c in declared
    )
    return (NAME, *columns)


def _scale(scale: Object | None) -> Scale | None:
    if not scale:
        return None
    return Scale(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", ""))
