"""Event: one resource in two groups, whose fields have different names. Called by conversion.py."""

from __future__ import annotations

from typing import Any

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


def event(obj: Object, api_version: str) -> Object:
    """An Event as the group of that apiVersion has it."""
    names = _CORE_TO_EVENTS if "/" in api_version else _EVENTS_TO_CORE
    return {**{names.get(key, key): value for key, value in obj.items()}, "apiVersion": api_version}
