"""Field ownership: who set which field, kept in metadata.managedFields, and server-side apply on top of it.

Called by the registry for every write of an embedded target and by the endpoints' PATCH. Pure: objects in, new objects
out. `apply` is for apply-patches, `record_update` for everything else (create, update, other patches).

    new = apply(live, manifest, schema, ApplyOptions("kubectl", force=False, api_version="apps/v1", now=now()))
    record_update(old, new, schema, "kubectl-edit", "apps/v1", now())     # sets new["metadata"]["managedFields"]

Applying the same again changes nothing: not the object, not an entry, not a time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from apiserver.schema import apply as applying
from apiserver.schema import fieldset, managed, typed
from apiserver.schema.apply import ApplyOptions
from apiserver.schema.defaults import copy_json
from apiserver.schema.managed import UPDATE, Managed, ManagedFieldsEntry
from apiserver.schema.node import Node
from apiserver.schema.reset import Reset
from apiserver.schema.structural import Schema
from apiserver.schema.versions import Comparison, Others, alike

__all__ = ["ApplyOptions", "apply", "record_update"]

Json = dict[str, Any]


def apply(live: Json | None, applied: Json, schema: Schema, options: ApplyOptions) -> Json:
    """The object after `applied` was applied to `live` (None: it is created), with its managedFields.

    The result shares nothing with the arguments; default and validate it next. It equals `live` if nothing changed.
    Raises StatusError: 409 with a cause for each conflicting field, 400 if `applied` has managedFields, 500 (as
    Kubernetes) for fields the schema does not declare.
    """
    result: Json = copy_json(applying.apply(live, applied, schema.root, options))
    return result


def record_update(
    old: Json | None,
    new: Json,
    schema: Schema,
    manager: str,
    api_version: str,
    now: str,
    subresource: str = "",
    reset: tuple[str, ...] = (),
    others: Others = alike,
) -> None:
    """Sets new["metadata"]["managedFields"] for a write that is no apply; `old` None: it is created.

    `manager` gets what it added or changed, and others lose it; what went is lost to all. managedFields that the
    request itself set (through the main endpoint) are the ground; an empty list, or a list of one empty entry, stops
    the keeping of ownership, as does an object that had none. `reset` and
    `others` as in ApplyOptions.
    """
    metadata: Json = new.setdefault("metadata", {})
    given = metadata.pop("managedFields", None)
    owners = _ground(old, given, subresource)
    if owners is None or (old is not None and not owners):
        return
    root = typed.of_object(schema.root)
    before = applying.without_managed(old) if old is not None else _blank(schema)
    compared = Comparison(before, new, root, api_version, others)
    kept = Reset.of(reset, subresource)
    touched = kept.filter(fieldset.union(compared.own.added, compared.own.modified))
    owners = _without(owners, compared, kept)
    mine = fieldset.difference(touched, managed.NEVER_OWNED)
    if mine:
        me = managed.owner(manager, UPDATE, api_version, subresource)
        before_me = owners[me].fields if me in owners else {}
        owners[me] = ManagedFieldsEntry(fieldset.union(mine, before_me), api_version, now)
    entries = managed.encode(managed.capped(owners))
    if entries:
        metadata["managedFields"] = entries


def _ground(old: Json | None, given: Any, subresource: str) -> Managed | None:
    """The owners before the write; None if ownership is reset."""
    live = old.get("metadata", {}).get("managedFields") if old is not None else None
    if subresource == "" and given is not None:
        if given in ([], [{}]):
            return None if old is not None else {}
        try:
            owners = managed.decode(given)
        except ValueError:
            owners = {}
        if owners:
            return owners
    try:
        return managed.decode(live)
    except ValueError:
        return {}


@lru_cache(1024)
def _blank(schema: Schema) -> Json:
    """What a create is compared with: of a built-in kind the empty structs, lists and maps that Go prints in every
    object. Not to be changed."""
    return _zero(schema.root) if schema.builtin else {}


def _zero(node: Node) -> Json:
    out: Json = dict.fromkeys(node.nulls)
    for key in node.defaulted:
        field = node.properties[key]
        if field.default == {}:
            out[key] = _zero(field)
        elif not field.default:
            out[key] = field.default
    return out


def _without(owners: Managed, compared: Comparison, kept: Reset) -> Managed:
    out: Managed = {}
    for who, entry in owners.items():
        changes = compared.of(entry.api_version)
        touched = kept.filter(fieldset.union(changes.added, changes.modified))
        changed = fieldset.intersection(entry.fields, touched)
        fields = fieldset.difference(fieldset.difference(entry.fields, changed), kept.filter(changes.removed))
        if fields:
            out[who] = entry.owning(fields)
    return out
