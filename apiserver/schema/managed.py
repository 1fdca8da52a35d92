"""metadata.managedFields: who owns which fields, as entries. Read and written by apply.py and ownership.py.

An entry is known by (manager, operation, apiVersion, subresource); for Apply the apiVersion does not count. Entries are
kept in Kubernetes' order: Apply before Update, then by time, manager, apiVersion, subresource.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from apiserver.model import clock
from apiserver.schema import fieldset
from apiserver.schema.fieldset import MEMBER, Fields

Json = dict[str, Any]

APPLY = "Apply"
UPDATE = "Update"
MAX_UPDATE_ENTRIES = 10
ANCIENT = "ancient-changes"

_META = ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
         "resourceVersion")  # fmt: skip
NEVER_OWNED: Fields = {
    "f:apiVersion": MEMBER,
    "f:kind": MEMBER,
    "f:metadata": {fieldset.SELF: MEMBER, **{f"f:{name}": MEMBER for name in _META}},
}
"""What no manager owns: what names the object, and what the server alone sets."""


class Owner(NamedTuple):
    """Who made a change, and how."""

    manager: str
    operation: str
    api_version: str
    subresource: str


@dataclass(frozen=True, slots=True)
class ManagedFieldsEntry:
    """What an owner owns. `time` is RFC 3339 or empty; `api_version` is that of the last change."""

    fields: Fields
    api_version: str
    time: str = ""

    def owning(self, fields: Fields) -> ManagedFieldsEntry:
        return replace(self, fields=fields)


Managed = dict[Owner, ManagedFieldsEntry]


def owner(manager: str, operation: str, api_version: str, subresource: str = "") -> Owner:
    return Owner(manager or "unknown", operation, "" if operation == APPLY else api_version, subresource)


def decode(entries: Any) -> Managed:
    """From metadata.managedFields. Raises ValueError for entries that are not well-formed."""
    out: Managed = {}
    for index, entry in enumerate(entries or ()):
        if not isinstance(entry, dict) or entry.get("operation") not in (APPLY, UPDATE):
            raise ValueError("operation must be `Apply` or `Update`")
        if not entry.get("apiVersion"):
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError(f"invalid fieldsType in managed fields entry {index}")
        fields = entry.get("fieldsV1") or {}
        if not _is_set(fields):
            raise ValueError(f"fieldsV1 of managed fields entry {index} is not a set of fields")
        version = entry["apiVersion"]
        if not all(isinstance(entry.get(k) or "", str) for k in ("apiVersion", "manager", "subresource", "time")):
            raise ValueError(f"managed fields entry {index} has a field that is no string")
        who = owner(entry.get("manager") or "", entry["operation"], version, entry.get("subresource") or "")
        out[who] = ManagedFieldsEntry(fieldset.canonical(fields), version, entry.get("time") or "")
    return out


def _is_set(fields: Any) -> bool:
    return isinstance(fields, dict) and all(
        (k == fieldset.SELF or k[1:2] == ":") and (v == {} or _is_set(v)) for k, v in fields.items()
    )


def encode(managed: Managed) -> list[Json]:
    """As metadata.managedFields, in order. Owners of nothing are left out."""
    return [_encoded(who, managed[who]) for who in sorted(managed, key=lambda w: _order(w, managed[w]))
            if managed[who].fields]  # fmt: skip


def _encoded(who: Owner, entry: ManagedFieldsEntry) -> Json:
    out: Json = {"manager": who.manager, "operation": who.operation, "apiVersion": entry.api_version}
    if entry.time:
        out["time"] = entry.time
    out["fieldsType"] = "FieldsV1"
    out["fieldsV1"] = fieldset.canonical(entry.fields)
    if who.subresource:
        out["subresource"] = who.subresource
    return out


def _seconds(time: str) -> int:
    try:
        return int(clock.parse(time).timestamp()) if time else 0
    except ValueError:
        return 0


def _order(who: Owner, entry: ManagedFieldsEntry) -> tuple[str, int, str, str, str]:
    return (who.operation, _seconds(entry.time), who.manager, entry.api_version, who.subresource)


def capped(managed: Managed) -> Managed:
    """At most ten Update entries: the oldest of one apiVersion are put together as `ancient-changes`."""
    updaters = [w for w in managed if w.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATE_ENTRIES
    if excess <= 0:
        return managed
    out = dict(managed)
    first: dict[str, Owner] = {}
    for who in sorted(updaters, key=lambda w: (_seconds(managed[w].time), w)):
        if excess <= 0:
            break
        entry = managed[who]
        bucket = owner(ANCIENT, UPDATE, entry.api_version)
        if entry.api_version not in first:
            first[entry.api_version] = who
            continue
        if bucket not in out:
            out[bucket] = out.pop(first[entry.api_version])
        if who != bucket:
            merged = fieldset.union(out[bucket].fields, entry.fields)
            out[bucket] = ManagedFieldsEntry(merged, entry.api_version, entry.time)
            del out[who]
            excess -= 1
    return out
