"""Whether a Placement's own workspace asked for a move, or somebody else's. Pure; called by placement.py.

A decision records what of the Placement's spec it was made from. As long as that says the same, whatever makes the
decision wrong (labels of a Location or of a target, a drain, a loss) was done elsewhere. The record is on the status
branch, so a recovery tells the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import orjson

from apiserver.model import marks, selectors

Object = dict[str, Any]

_LONGEST = 4_000
"""Characters of a record; of a longer spec a digest is kept, so that each change of it is an edit."""


def made_from(placement: Object) -> str:
    """What of the Placement's spec says where it runs, as it is recorded."""
    spec = placement.get("spec") or {}
    where = {"selectors": spec.get("locationSelectors") or [], "workspace": spec.get("locationWorkspace") or ""}
    text = orjson.dumps(where, option=orjson.OPT_SORT_KEYS).decode()
    return text if len(text) <= _LONGEST else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def recorded(placement: Object) -> str:
    """What the Placement's decision was made from; "" if that was not recorded."""
    return str((placement["metadata"].get("annotations") or {}).get(marks.DECIDED_FROM, ""))


def edited(placement: Object, locations: Sequence[Object]) -> bool:
    """Whether the Placement's spec means other locations than when it was decided. `locations`: of the workspace that
    it names now. An edit that means the same ones (of what there is now) is none."""
    before, now = recorded(placement), made_from(placement)
    if not before or before == now:
        return False
    try:
        was, said = orjson.loads(before), orjson.loads(now)
        if was["workspace"] != said["workspace"]:
            return True
        return _matching(was["selectors"], locations) != _matching(said["selectors"], locations)
    except (ValueError, KeyError, TypeError, AttributeError):
        return True


def may_leave(placement: Object, target: str) -> bool:
    """Whether its owner lets its namespaces leave this sync target (`path:name`), state and all."""
    return bool(target) and (placement["metadata"].get("annotations") or {}).get(marks.MAY_LEAVE) == target


def _matching(wanted: Sequence[Object], locations: Sequence[Object]) -> set[str]:
    parsed = [selectors.from_object(s) for s in wanted]
    found = (loc for loc in locations if any(s.matches(loc["metadata"].get("labels")) for s in parsed))
    return {str(location["metadata"]["name"]) for location in found}
