"""The status that an object starts with, that follows from content, or that recovery puts back.

Called by phases.merging for every declared object, and by the controllers of what is made through the API.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from apiserver.model.conditions import Condition, condition
from apiserver.model.keys import Key
from apiserver.model.storagenames import BINDINGS, CRDS, EXPORTS, SCHEMAS, TYPES
from apiserver.registry import strategy
from apiserver.registry.claims import refused
from apiserver.registry.exportspec import offered
from apiserver.storage.protocol import Record
from reconciler.loading.case import Recorded
from reconciler.loading.content import WorkspaceContent
from reconciler.loading.effects import Effects
from reconciler.loading.render import DeclaredObject
from reconciler.plan import unsupported
from reconciler.plan.bindings import export_status

Object = dict[str, Any]


Otherwise = Callable[[DeclaredObject, Record | None], Object | None]
"""The status of an object (as it is stored, None if it is not) that follows from nothing: `beginning`, or `remembered`
with what is known of the workspace."""


def status_of(
    declared: DeclaredObject,
    stored: Record | None,
    content: WorkspaceContent,
    effects: Effects,
    otherwise: Otherwise,
) -> Object | None:
    """A status that follows from content, or that `otherwise` says; None: what is stored stays.

    One that follows from content is in no file, and its times are those that effects know.
    """
    resource, name = declared.key.resource, declared.key.name
    if resource == CRDS:
        return _definition_status(declared, stored, content, effects)
    if resource == BINDINGS and content.apis is not None:
        return effects.dated(complete(content.apis.bindings[name], resource, declared.obj), declared, stored)
    if resource == EXPORTS:
        identity = content.identities[name]
        if identity.hash:
            effects.summary.identities[name] = identity.hash
        keys = (Key(SCHEMAS, declared.key.cluster, "", each.schema) for each in offered(declared.obj))
        schemas = [found.obj for key in keys if (found := content.declared.get(key)) is not None]
        status = export_status({}, identity.hash, wrong=identity.wrong, schemas=schemas)
        return effects.dated(complete(status, resource, declared.obj), declared, stored)
    if resource == TYPES:
        return effects.dated({"conditions": type_conditions(declared.obj)}, declared, stored)
    return otherwise(declared, stored)


def complete(status: Object, resource: str, obj: Object, at: str = "") -> Object:
    """What follows for an object, with what it says that is not done; all of it since `at`, "" if that is to be said
    by effects."""
    told = unsupported.with_stated(status["conditions"], unsupported.stated(resource, obj))
    return {**status, "conditions": [{**each, "lastTransitionTime": at} for each in told]}


def type_conditions(kind: Object) -> list[Condition]:
    """Of a WorkspaceType, without their times. Programs wait for `Ready` before they use it. Where its workspaces are
    seen that initialize or terminate is filled in when it is read (endpoints/views)."""
    ready = [condition("Ready", True), condition("VirtualWorkspaceURLsReady", True)]
    return [*ready, *unsupported.stated(TYPES, kind)]


def beginning(declared: DeclaredObject, stored: Record | None) -> Object | None:
    """The status that an object of Treeplane's own making starts with."""
    return _shipped_status(declared) if stored is None else None


def remembered(recorded: Recorded, declared: DeclaredObject, stored: Record | None) -> Object | None:
    """The recorded one."""
    if stored is not None:
        return None
    left = recorded.residue(declared.key) or {}
    found: Object | None = left.get("status") or declared.obj.get("status")
    return found or _shipped_status(declared)


def _definition_status(
    declared: DeclaredObject, stored: Record | None, content: WorkspaceContent, effects: Effects
) -> Object:
    """Conditions that clients set stay as they are."""
    crd, name = _with_status(declared.obj, stored), declared.key.name
    status = strategy.crd_status(crd)
    if content.apis is not None and name in content.apis.refused:
        status = refused(status, content.apis.refused[name], (crd.get("status") or {}).get("conditions"))
    told = [each for each in status["conditions"] if each["type"] in strategy.CRD_CONDITIONS]
    own = {each["type"]: each for each in effects.dated({"conditions": told}, declared, stored)["conditions"]}
    return {**status, "conditions": [own.get(each["type"], each) for each in status["conditions"]]}


def _shipped_status(declared: DeclaredObject) -> Object | None:
    """Manifests in files never have one."""
    found: Object | None = None if declared.manifest.origin.path else declared.manifest.value.get("status")
    return found


def _with_status(obj: Object, stored: Record | None) -> Object:
    return obj if stored is None else {**obj, "status": orjson.loads(stored.value).get("status")}
