"""The priority of a Pod, worked out of its PriorityClass, and that there is one default class at most."""

from __future__ import annotations

from typing import Any

from apiserver.admission.place import Place, name_of, spec_of
from apiserver.model.errors import StatusError, forbidden
from apiserver.registry import priorities

Object = dict[str, Any]

CLASSES = "priorityclasses.scheduling.k8s.io"
_COMPUTED = "must not be provided in pod spec; priority admission controller computed"


def complete(place: Place, pod: Object) -> None:
    """Sets a new Pod's priorityClassName (of the default class), priority and preemptionPolicy. Raises StatusError 403
    for a class that does not exist, and for a priority or policy that is not the class's."""
    spec = spec_of(pod)
    name, value, policy = _class(place, pod, spec)
    if name:
        spec["priorityClassName"] = name
    given = spec.get("priority")
    if given is not None and given != value:
        why = f"the integer value of priority ({given}) {_COMPUTED} {value} from the given PriorityClass name"
        raise _refused(pod, why)
    spec["priority"] = value
    given = spec.get("preemptionPolicy")
    if given is not None and given != policy:
        why = f"the string value of PreemptionPolicy ({given}) {_COMPUTED} {policy} from the given PriorityClass name"
        raise _refused(pod, why)
    spec["preemptionPolicy"] = policy


def _class(place: Place, pod: Object, spec: Object) -> tuple[str, int, str]:
    """Name, value and preemption policy."""
    name = str(spec.get("priorityClassName") or "")
    if not name:
        default = _default(place)
        return _values(default) if default else ("", priorities.DEFAULT, priorities.PREEMPT)
    found = place.get(CLASSES, name)
    if found is not None:
        return _values(found)
    if name in priorities.SYSTEM:
        return name, priorities.SYSTEM[name][0], priorities.PREEMPT
    raise _refused(pod, f"no PriorityClass with name {name} was found")


def _values(found: Object) -> tuple[str, int, str]:
    policy = str(found.get("preemptionPolicy") or priorities.PREEMPT)
    return str(found["metadata"]["name"]), int(found.get("value") or 0), policy


def _default(place: Place) -> Object | None:
    """Of several that say so, the lowest."""
    found = [c for c in place.marked(CLASSES, b'"globalDefault":true') if c.get("globalDefault") is True]
    return min(found, key=lambda c: (c.get("value") or 0, c["metadata"]["name"]), default=None)


def vet(place: Place, new: Object, live: Object | None) -> None:
    """Raises StatusError 403 for a second default class."""
    if new.get("globalDefault") is not True:
        return
    default, name = _default(place), new["metadata"]["name"]
    if default is not None and (live is None or default["metadata"]["name"] != name):
        why = f"PriorityClass {default['metadata']['name']} is already marked as default. Only one default can exist"
        raise forbidden("priorityclasses", "scheduling.k8s.io", name, why)


def _refused(pod: Object, why: str) -> StatusError:
    return forbidden("pods", "", name_of(pod), why)
