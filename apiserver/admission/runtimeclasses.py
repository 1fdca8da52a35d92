"""What a new Pod gets of its RuntimeClass: what running it costs besides, and on which nodes it may run."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from apiserver.admission.place import Place, name_of, spec_of
from apiserver.model.errors import StatusError, forbidden
from apiserver.registry import quantities

Object = dict[str, Any]

CLASSES = "runtimeclasses.node.k8s.io"


def complete(place: Place, pod: Object) -> None:
    """Raises StatusError 403 for a class that does not exist, or that says otherwise than the Pod."""
    spec = spec_of(pod)
    name = spec.get("runtimeClassName")
    found = place.get(CLASSES, name) if isinstance(name, str) else None
    if isinstance(name, str) and found is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    overhead = ((found or {}).get("overhead") or {}).get("podFixed")
    if overhead is None and spec.get("overhead") is not None:
        raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    if overhead is not None:
        if spec.get("overhead") and _amounts(spec["overhead"]) != _amounts(overhead):
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = dict(overhead)
    _schedule(pod, spec, (found or {}).get("scheduling") or {})


def _schedule(pod: Object, spec: Object, scheduling: Object) -> None:
    wanted = scheduling.get("nodeSelector") or {}
    selector = spec.get("nodeSelector") or {}
    if wanted and isinstance(selector, dict):
        for key, value in wanted.items():
            if selector.get(key, value) != value:
                raise _refused(
                    pod,
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {selector[key]}",
                )
        spec["nodeSelector"] = {**selector, **wanted}
    there = spec.get("tolerations") or []
    if isinstance(there, list):
        more = [t for t in scheduling.get("tolerations") or () if t not in there]
        if more:
            spec["tolerations"] = [*there, *more]


def _amounts(found: Any) -> dict[str, Decimal] | None:
    """None for what cannot be read, which the checks will name."""
    try:
        return {str(name): quantities.parse(amount) for name, amount in found.items()}
    except (AttributeError, ValueError, TypeError):
        return None


def _refused(pod: Object, why: str) -> StatusError:
    return forbidden("pods", "", name_of(pod), why)
