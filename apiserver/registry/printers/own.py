"""Cells of our own kinds that no JSON path gives; their columns are those of their definitions."""

from __future__ import annotations

import re
from typing import Any

from apiserver.model import commits, conditions, marks
from apiserver.model.brief import brief, without_folders
from apiserver.model.errors import qualified
from apiserver.registry import pins
from apiserver.registry.printers.base import Object, joined

_COMMIT_LENGTH = 10
_HELD_WIDTH, _FAILURE_WIDTH = 40, 60
"""Characters of what tenants chose the words of."""
_HELD = re.compile(r"(?:held back at the last good commit|never had a good commit): ")
_SYNCED_SHOWN = 3


def commit(obj: Object) -> Any:
    commit = (obj["metadata"].get("annotations") or {}).get(marks.SOURCE_COMMIT, "")
    return commits.shortened(commit, _COMMIT_LENGTH) or None


def pinned(obj: Object) -> Any:
    return pins.in_short(obj)


def held(obj: Object) -> Any:
    """The first words of what is wrong with a newer commit, where something is."""
    said = conditions.get((obj.get("status") or {}).get("conditions"), pins.APPLIED)
    if said is None or said.get("status") != "False":
        return None
    text = _HELD.sub("", str(said.get("message") or said.get("reason") or "held"), count=1)
    return brief(without_folders(text), _HELD_WIDTH)


def on_target(obj: Object) -> Any:
    """Whether all of a Placement is on its sync target, with the first that is not."""
    said = conditions.get((obj.get("status") or {}).get("conditions"), "Synced")
    if said is None:
        return None
    if said.get("status") != "False":
        return str(said.get("status", "Unknown"))
    first, _, _ = str(said.get("message") or said.get("reason") or "").partition("; ")
    return brief(f"False: {first}", _FAILURE_WIDTH)


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
