"""Status conditions: set one without touching the others, and without a write when nothing was said anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Condition = dict[str, Any]

NOT_ASKED = "it has not been asked yet"
"""What is said of a sync target, in conditions of others, too, before it answered or did not for the first time."""


def condition(
    kind: str, status: bool | None, reason: str = "", message: str = "", *, at: str = "", generation: int | None = None
) -> Condition:
    """A condition object. `status` None is Unknown; `at` is its lastTransitionTime (RFC 3339)."""
    out: Condition = {"type": kind, "status": {True: "True", False: "False", None: "Unknown"}[status]}
    out["lastTransitionTime"] = at
    out["reason"] = reason or kind
    out["message"] = message
    if generation is not None:
        out["observedGeneration"] = generation
    return out


def merged(existing: Iterable[Condition] | None, new: Iterable[Condition]) -> list[Condition]:
    """`existing` with `new` set, sorted by type; lastTransitionTime is kept where the status did not change."""
    by_type = {c["type"]: c for c in existing or ()}
    for c in new:
        old = by_type.get(c["type"])
        if old is not None and old.get("status") == c["status"]:
            c = {**c, "lastTransitionTime": old.get("lastTransitionTime", c["lastTransitionTime"])}
        by_type[c["type"]] = c
    return [by_type[t] for t in sorted(by_type)]


def appended(existing: Iterable[Condition] | None, new: Iterable[Condition]) -> list[Condition]:
    """As `merged`, in Kubernetes' order: each where it was, what is new at the end."""
    first, later = list(existing or ()), list(new)
    found = {c["type"]: c for c in merged(first, later)}
    return [found[kind] for kind in dict.fromkeys(c["type"] for c in (*first, *later))]


def get(conditions: Iterable[Condition] | None, kind: str) -> Condition | None:
    return next((c for c in conditions or () if c.get("type") == kind), None)


def is_true(conditions: Iterable[Condition] | None, kind: str) -> bool:
    found = get(conditions, kind)
    return found is not None and found.get("status") == "True"
