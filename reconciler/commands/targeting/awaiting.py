"""Whether what a server tells of a sync target is told of what was just written, so that its Ready may be believed.

Called by `treeplane target add --wait`. A SyncTarget of the name may be there already: one that goes, as it was before
the commit, or with other credentials. Each of these says Ready for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from apiserver.model import marks
from reconciler.commands.targeting.seen import TargetSeen

Object = dict[str, Any]

_LOOK = 1.0
NOT_SERVED = "it is not served yet: git push"


class ServedAs(NamedTuple):
    """Which object of a name it is, and the commit that changed it last."""

    uid: str
    commit: str

    @staticmethod
    def of(seen: TargetSeen | None) -> ServedAs | None:
        if seen is None:
            return None
        metadata = seen.value["metadata"]
        annotations = metadata.get("annotations") or {}
        return ServedAs(str(metadata.get("uid") or ""), str(annotations.get(marks.SOURCE_COMMIT) or ""))


@dataclass(frozen=True, slots=True)
class WrittenTarget:
    """`value`: the SyncTarget as its file says it. `ends`: of the token that stands in its Secret, RFC 3339, "" where
    that is not known. `commit`: the one that changed the file, "" where it says what it said. `before`: what was served
    of it before that, None for nothing."""

    value: Object
    ends: str = ""
    commit: str = ""
    before: ServedAs | None = None

    def lacks(self, seen: TargetSeen | None) -> str:
        """Why this is not Ready, "" where it is."""
        if seen is None or not self._is_served(seen):
            return NOT_SERVED
        status = seen.value.get("status") or {}
        if status.get("observedGeneration") != seen.value["metadata"].get("generation", 1):
            return "it was not asked yet as it is now"
        if self.ends and seen.ends != self.ends:
            return f"it was not asked yet with the token that ends at {self.ends}"
        return "" if seen.ready == "True" else str(seen.condition("Ready").get("message") or "no reason is told")

    def _is_served(self, seen: TargetSeen) -> bool:
        """By the very commit, or, where that came to the branch as another one, by one that says the same."""
        served = ServedAs.of(seen)
        if not self.commit or (served is not None and served.commit == self.commit):
            return True
        return served != self.before and _says(seen.value, self.value)


def until_ready(look: Callable[[], TargetSeen | None], written: WrittenTarget, seconds: float) -> str:
    """Waits until nothing is lacking; what is, once the time is over."""
    until = time.monotonic() + seconds
    while why := written.lacks(look()):
        if time.monotonic() + _LOOK >= until:
            return why
        time.sleep(_LOOK)
    return ""


def _says(served: Object, written: Object) -> bool:
    return _holds(served.get("spec"), written.get("spec")) and _holds(
        served["metadata"].get("labels") or {}, written["metadata"].get("labels") or {}
    )


def _holds(whole: Any, part: Any) -> bool:
    """Whether all that `part` says stands in `whole`, which has defaults, too."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and _holds(whole[name], value) for name, value in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(_holds, whole, part))
    return bool(whole == part)
