"""One stored object, several versions: what the others look like.

Custom resources convert as strategy None does: apiVersion is replaced. Event is one resource in two groups whose fields
have different names. Called when a stored value is not in the version asked for, and before a value of a version that
is not the stored one is written.
"""

from __future__ import annotations

from typing import Any

from apiserver.registry.served import ServedKind

Object = dict[str, Any]

_CORE_TO_EVENTS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENTS_TO_CORE = {new: old for old, new in _CORE_TO_EVENTS.items()}


def convert(obj: Object, kind: ServedKind) -> Object:
    """`obj` in the version of `kind`; `obj` itself if it is in it already. The result may share parts with `obj`."""
    if obj.get("apiVersion") == kind.api_version:
        return obj
    if kind.resource == "events" and not kind.custom:
        names = _CORE_TO_EVENTS if kind.group else _EVENTS_TO_CORE
        obj = {names.get(k, k): v for k, v in obj.items()}
    return {**obj, "apiVersion": kind.api_version}
