"""The class of service of a Pod, as Kubernetes works it out of what its containers ask for and are limited to."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import Any

from apiserver.registry import quantities

Object = dict[str, Any]

BEST_EFFORT, BURSTABLE, GUARANTEED = "BestEffort", "Burstable", "Guaranteed"
_COUNTED = ("cpu", "memory")


def qos_class(spec: Object) -> str:
    """Of a Pod's spec that is valid."""
    whole = spec.get("resources")
    asking = [whole] if whole else [
        c.get("resources") or {} for field in ("containers", "initContainers") for c in spec.get(field) or ()
    ]  # fmt: skip
    requests: Counter[str] = Counter()
    limits: Counter[str] = Counter()
    limited = True
    for resources in asking:
        requests += _amounts(resources.get("requests"))
        found = _amounts(resources.get("limits"))
        limits += found
        limited = limited and all(name in found for name in _COUNTED)
    if not requests and not limits:
        return BEST_EFFORT
    return GUARANTEED if limited and requests == limits else BURSTABLE


def _amounts(found: Object | None) -> Counter[str]:
    """CPU and memory that are more than nothing."""
    amounts: Counter[str] = Counter()
    for name in _COUNTED:
        amount = _parsed((found or {}).get(name, 0))
        if amount > 0:
            amounts[name] = amount  # type: ignore[assignment]
    return amounts


def _parsed(quantity: Any) -> Decimal:
    try:
        return quantities.parse(quantity)
    except ValueError:
        return Decimal(0)
