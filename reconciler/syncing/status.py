"""From a live object's status to the status of its upstream object: what changes it, and what is only noise. Pure."""

from __future__ import annotations

from typing import Any, Protocol

import orjson

from apiserver.model import nesting
from apiserver.model.errors import Cause
from reconciler.syncing.errors import Unfit

Object = dict[str, Any]

_LARGEST, _LEVELS = 512 * 1024, 100
"""Bytes and levels of a status."""
_TIMES = frozenset({"lastUpdateTime", "lastProbeTime", "lastHeartbeatTime", "lastTransitionTime"})


class StatusSchema(Protocol):
    """Of a kind."""

    def validate(self, value: Any) -> list[Cause]: ...


def lifted(upstream: Object, live: Object) -> Object | None:
    """The upstream object with the live one's status; None where that says nothing new.

    Generations are counted on each side for itself: the upstream object's counts as observed once the target's
    controllers have observed what they were given. `live` is in step with `upstream`.
    """
    status = live.get("status")
    if not isinstance(status, dict) or not status:
        return None
    status = dict(status)
    before = upstream.get("status") or {}
    if "observedGeneration" in status:
        seen = int(status["observedGeneration"]) >= int(live["metadata"].get("generation", 0))
        generation = int(upstream["metadata"].get("generation", 0))
        status["observedGeneration"] = generation if seen and generation else int(before.get("observedGeneration", 0))
    if isinstance(status.get("conditions"), list):
        generation = int(upstream["metadata"].get("generation", 0))
        status["conditions"] = [_condition(c, live, generation) for c in status["conditions"]]
    if _meaning(status) == _meaning(before):
        return None
    return {**upstream, "status": status}


def check(status: Any, schema: StatusSchema) -> None:
    """Raises Unfit for a status that goes neither into the store nor into git: no cluster has such a one."""
    if nesting.too_deep(status, _LEVELS) or len(orjson.dumps(status)) > _LARGEST:
        raise Unfit("its status on the target is larger than any, and stays there")
    wrong = [cause for cause in schema.validate({"status": status}) if cause.field.startswith("status")]
    if wrong:
        raise Unfit(f"its status on the target is not one of its kind, and stays there: {wrong[0].message}")


def _condition(condition: Any, live: Object, generation: int) -> Any:
    if not isinstance(condition, dict) or "observedGeneration" not in condition or not generation:
        return condition
    seen = int(condition["observedGeneration"]) >= int(live["metadata"].get("generation", 0))
    return {**condition, "observedGeneration": generation if seen else generation - 1}


def _meaning(value: Any) -> Any:
    """Without times that only mean "still so", and without the order of conditions."""
    if isinstance(value, dict):
        out = {k: _meaning(v) for k, v in value.items() if k not in _TIMES}
        if isinstance(out.get("conditions"), list):
            out["conditions"] = sorted(out["conditions"], key=str)
        return out
    if isinstance(value, list):
        return [_meaning(v) for v in value]
    return value
