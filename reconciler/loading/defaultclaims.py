"""Permission claims of the bindings that a workspace has for being of its type: those of the export are accepted.

They follow the export, but for a binding that came with the workspace alone (`InitializeOnly`): that accepts for good
what was claimed then, which the binding says in an annotation, since the status branch has to know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.model.origins import TYPED
from apiserver.model.storagenames import BINDINGS
from apiserver.registry.permissionclaims import accepted_by_default
from reconciler.loading.phases.judgement import Judgement
from reconciler.loading.render import DeclaredObject
from reconciler.loading.resolving import Resolving

Object = dict[str, Any]

ACCEPTED = "internal.treeplane.dev/accepted-claims"


def accept_claims(at: Judgement, here: Resolving) -> None:
    """Of the content's default bindings."""
    declared = at.content.declared
    typed = [(k, d) for k, d in declared.items() if k.resource == BINDINGS and d.manifest.origin == TYPED]
    for key, binding in typed:
        named = binding.obj["spec"]["reference"]["export"]
        reference = named.get("path") or at.case.path, named["name"]
        export = here.find(*reference)
        claims = accepted_by_default(export.claims) if export is not None else []
        if reference in at.typed.kind.initial:
            declared[key] = _for_good(at, key, binding, claims)
        else:
            declared[key] = _with(binding, claims, {})


def _for_good(at: Judgement, key: Key, binding: DeclaredObject, claims: list[Object]) -> DeclaredObject:
    record, recorded = at.grounds.store.get(key), at.case.recorded
    if record is not None:
        claims = orjson.loads(record.value)["spec"].get("permissionClaims") or []
    elif recorded is not None:
        left = (recorded.residue(key) or {}).get("metadata") or {}
        claims = orjson.loads((left.get("annotations") or {}).get(ACCEPTED) or "[]")
    return _with(binding, claims, {ACCEPTED: orjson.dumps(claims).decode()} if claims else {})


def _with(binding: DeclaredObject, claims: list[Object], annotations: Mapping[str, str]) -> DeclaredObject:
    obj = binding.obj
    metadata = {**obj["metadata"], "annotations": {**(obj["metadata"].get("annotations") or {}), **annotations}}
    return binding._replace(obj={**obj, "metadata": metadata, "spec": {**obj["spec"], "permissionClaims": claims}})
