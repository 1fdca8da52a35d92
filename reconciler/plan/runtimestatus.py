"""What of the status of a Workspace and a LogicalCluster no commit tells: runtime decided it, at its real time.

The rest of such a status is computed for each commit that is judged (plan/computed). What is told here outlives that:
it is taken over from what is stored, stands in the object's residue on the status branch, and comes back from there at
a recovery. Called by loading (`overlaid`) and by residue (`lasting`).

Whoever decides something of a workspace at runtime writes it into the status of its Workspace, its LogicalCluster or
both, through the store like any controller, with the time at which it came to that (clock.now()), and need do no more
where it is

- a condition of a type that plan/computed does not compute (`computed.CONDITIONS`), set with conditions.merged;
- a field that is in FIELDS. One that runtime has emptied stays there as [] or {}: where it is missing, the computed
  value counts;
- a condition that is computed at first and that runtime takes over: it counts as runtime's once its reason is in
  REASONS.

What follows from such a decision (a phase, say) is computed on top of it, and stands in no residue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from apiserver.model import conditions
from apiserver.model.conditions import Condition
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry.lifecycles import DONE
from reconciler.plan import computed

Object = dict[str, Any]

RESOURCES = frozenset({WORKSPACES, LOGICAL_CLUSTERS})
"""Whose statuses are of both parts."""
FIELDS = frozenset({"initializers", "terminators"})
"""Of a status, what runtime has the last word on."""
REASONS = frozenset({DONE})
"""Of computed conditions, with which they are runtime's."""

_CONDITION = b'"lastTransitionTime":'  # as a text in JSON it would have a backslash
_SAID = tuple(f'"{each}"'.encode() for each in sorted(FIELDS | REASONS))


def part(status: Object) -> Object:
    """What of a status runtime decided."""
    found: Object = {name: status[name] for name in sorted(FIELDS) if name in status}
    told = [each for each in status.get("conditions") or () if _is_decided(each)]
    return found | ({"conditions": told} if told else {})


def overlaid(status: Object, before: Object | None) -> Object:
    """A computed status with what runtime decided. `before`: the status that is stored or recorded."""
    decided = part(before or {})
    told: Iterable[Condition] = decided.pop("conditions", ())
    new = {**status, **decided}
    taken = {each["type"]: each for each in (*new["conditions"], *told)}
    return {**new, "conditions": [taken[kind] for kind in sorted(taken)]}


def lasting(obj: Object) -> Object:
    """Of an object as it is stored, what the status branch has to know. That the fleet is followed, and always was,
    goes without saying; what else is said of it is told anew by whoever meets it, with another text perhaps each time
    it is recorded."""
    found = part(obj.get("status") or {})
    # Whether a source is followed, and written to, is told anew by whoever does it, and may change with each look.
    told = [each for each in found.get("conditions", ()) if each["type"] not in computed.OF_SOURCES]
    found = {name: value for name, value in found.items() if name != "conditions"}
    found |= {"conditions": told} if told else {}
    fleet = conditions.get(found.get("conditions"), computed.FLEET_FOLLOWED)
    if fleet is not None:
        usual = ("True", obj["metadata"]["creationTimestamp"])
        told = [each for each in found.pop("conditions") if each is not fleet]
        if (fleet["status"], fleet["lastTransitionTime"]) != usual:
            told.append({**fleet, "message": ""})
        found |= {"conditions": told} if told else {}
    return found


def without(status: Object, kinds: Collection[str]) -> Object:
    """A status that says nothing of these kinds of conditions."""
    told = status.get("conditions") or ()
    left = [each for each in told if each["type"] not in kinds]
    return {**status, "conditions": left} if len(left) < len(told) else status


def says_nothing(value: bytes) -> bool:
    """Whether an object, as it is stored, certainly says nothing of the kind: there are two for each workspace."""
    return value.count(_CONDITION) == len(computed.CONDITIONS) and not any(each in value for each in _SAID)


def _is_decided(condition: Condition) -> bool:
    return condition["type"] not in computed.CONDITIONS or condition.get("reason") in REASONS
