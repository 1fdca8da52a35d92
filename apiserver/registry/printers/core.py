"""Namespaces, data, accounts, events, quotas, RBAC, leases, CRDs."""

from __future__ import annotations

from typing import Any

from apiserver.registry.printers.base import (
    AGE,
    CREATED,
    NAME,
    Object,
    Printer,
    age,
    at,
    columns,
    name,
    since,
)
from apiserver.registry.served import Column


def _created(obj: Object) -> Any:
    return obj["metadata"].get("creationTimestamp")


def _data(obj: Object) -> int:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def _quota(obj: Object) -> list[Any]:
    hard, used = at(obj, "status", "hard", default={}), at(obj, "status", "used", default={})
    hard = hard or at(obj, "spec", "hard", default={})
    shown = [f"{key}: {used.get(key, '0')}/{hard[key]}" for key in sorted(hard)]
    limits = [s for s in shown if s.startswith("limits.")]
    requests = [s for s in shown if not s.startswith("limits.")]
    return [name(obj), ", ".join(requests), ", ".join(limits), age(obj)]


def _subjects(obj: Object, kind: str) -> str:
    found = [s for s in obj.get("subjects") or () if s.get("kind") == kind]
    prefix = kind == "ServiceAccount"
    return ", ".join(f"{s.get('namespace', '')}/{s['name']}" if prefix else s["name"] for s in found)


def _binding(obj: Object) -> list[Any]:
    role = f"{at(obj, 'roleRef', 'kind', default='')}/{at(obj, 'roleRef', 'name', default='')}"
    kinds = ("User", "Group", "ServiceAccount")
    return [name(obj), role, age(obj), *(_subjects(obj, kind) for kind in kinds)]


def _event(obj: Object) -> list[Any]:
    """Either of the two groups' forms."""
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    last = obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp")
    series = obj.get("series") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    seen = series.get("lastObservedTime") or last or first
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    reporter = obj.get("reportingComponent") or obj.get("reportingController"), obj.get("reportingInstance")
    parts = [source.get("component") or reporter[0], source.get("host") or reporter[1]]
    return [
        since(seen),
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{about.get('kind', '').lower()}/{about.get('name', '')}",
        about.get("fieldPath", ""),
        ", ".join(p for p in parts if p),
        (obj.get("message") or obj.get("note") or "").strip(),
        since(first),
        series.get("count") or obj.get("count") or obj.get("deprecatedCount") or 1,
        name(obj),
    ]


BINDING = Printer(columns(NAME, "Role", AGE, "*Users", "*Groups", "*ServiceAccounts"), _binding)
AS_CREATED = Printer(columns(NAME, CREATED), lambda obj: [name(obj), _created(obj)])
EVENT = Printer(
    columns(
        "Last Seen",
        "Type",
        "Reason",
        "Object",
        "*Subobject",
        "*Source",
        "Message",
        "*First Seen",
        "*Count",
        Column("Name", format="name", priority=1),
    ),
    _event,
)

CONFIG_MAP = Printer(columns(NAME, "Data", AGE), lambda o: [name(o), _data(o), age(o)])
LEASE = Printer(columns(NAME, "Holder", AGE), lambda o: [name(o), at(o, "spec", "holderIdentity", default=""), age(o)])
NAMESPACE = Printer(columns(NAME, "Status", AGE), lambda o: [name(o), at(o, "status", "phase", default=""), age(o)])
RESOURCE_QUOTA = Printer(columns(NAME, "Request", "Limit", AGE), _quota)
SECRET = Printer(columns(NAME, "Type", "Data", AGE), lambda o: [name(o), o.get("type", ""), _data(o), age(o)])
