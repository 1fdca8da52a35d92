"""Cells of our own kinds that no JSON path gives; their columns are those of their definitions."""

from __future__ import annotations

from typing import Any

from apiserver.model import commits, conditions, marks
from apiserver.model.errors import qualified
from apiserver.registry import pins
from apiserver.registry.printers.base import Object, joined

_COMMIT_LENGTH = 10
_SYNCED_SHOWN = 3


def commit(obj: Object) -> Any:
    commit = (obj["metadata"].get("annotations") or {}).get(marks.SOURCE_COMMIT, "")
    return commits.shortened(commit, _COMMIT_LENGTH) or None


def pinned(obj: Object) -> Any:
    return pins.in_short(obj)


def why(obj: Object) -> Any:
    """The message that explains a placement: of Scheduled, else of Ready."""
    found = (obj.get("status") or {}).get("conditions")
    for kind in ("Scheduled", "Ready"):
        message = (conditions.get(found, kind) or {}).get("message")
        if message:
            return message
    return None


def synced(obj: Object) -> Any:
    """The resources that a sync target takes, by name."""
    found = (obj.get("status") or {}).get("syncedResources") or ()
    taken = [r for r in found if r.get("state") == "Accepted"]
    return joined([qualified(r["resource"], r.get("group", "")) for r in taken], most=_SYNCED_SHOWN)
