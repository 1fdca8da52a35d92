"""What kcp's kinds let one say and Treeplane does not do: the condition `Supported`, on the object that says it.

Called by loading for what git declares and by the controllers of sync targets and locations. It stands only where there
is something to say. Which fields these are is in the kinds' entries (registry/builtins/unsupported).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from apiserver.model.conditions import Condition, appended, condition
from apiserver.registry.builtins.catalogue import ENTRIES

Object = dict[str, Any]

SUPPORTED = "Supported"
_REASON = "NotSupported"


def stated(resource: str, obj: Object, at: str = "") -> list[Condition]:
    """What an object of this storage resource has to say of fields that do nothing: `Supported`, False and naming them.
    [] where all of it is done. `at`: its time (RFC 3339), if the caller does not know better."""
    entry, spec = ENTRIES.get(resource), obj.get("spec") or {}
    fields = entry.unsupported if entry is not None else ()
    said = [f"{field.path} ({field.instead})" for field in fields if field.said(spec)]
    if not said:
        return []
    told = condition(SUPPORTED, False, _REASON, f"not supported yet: {', '.join(said)}", at=at)
    return [told]


def with_stated(existing: Iterable[Condition], told: Iterable[Condition]) -> list[Condition]:
    """`existing` conditions with those of `stated` in their place, and without a `Supported` that is said no more. What
    was so before is so since then."""
    before, new = list(existing), list(told)
    kinds = {c["type"] for c in new}
    return appended([c for c in before if c["type"] != SUPPORTED or SUPPORTED in kinds], new)
