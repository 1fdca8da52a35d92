"""Git as one field owner among others: the three-way merge of a new commit into a stored object.

Called by loading when a manifest changed. What git names, git wins; what it never named (status, finalizers, others'
labels) stays; what it dropped goes. Lists are git's as a whole: they are replaced, not merged.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

_SERVER_OWNED = ("status",)


def merged(old: Object | None, new: Object, stored: Object) -> Object:
    """`stored` moved from what git said before (`old`, None if nothing) to what it says now (`new`).

    All three are complete objects with defaults filled in; none is changed. Status is never git's.

        old {a: 1, b: 2}   new {a: 3}   stored {a: 1, b: 2, c: 9}   →   {a: 3, c: 9}
    """
    before = {k: v for k, v in (old or {}).items() if k not in _SERVER_OWNED}
    after = {k: v for k, v in new.items() if k not in _SERVER_OWNED}
    return _merge(before, after, stored)


def _merge(old: Object, new: Object, stored: Object) -> Object:
    out = {k: v for k, v in stored.items() if k in new or k not in old or _partly_foreign(old[k], v)}
    for key in old.keys() - new.keys():
        if key in out:
            kept = _without(old[key], out[key])
            if kept:
                out[key] = kept
            else:
                del out[key]
    for key, value in new.items():
        there = stored.get(key)
        if isinstance(value, dict) and isinstance(there, dict):
            before = old.get(key)
            out[key] = _merge(before if isinstance(before, dict) else {}, value, there)
        else:
            out[key] = value
    return out


def _partly_foreign(old: Any, stored: Any) -> bool:
    """Whether `stored` holds something that git never named, so that dropping git's part must keep the rest."""
    return isinstance(old, dict) and isinstance(stored, dict)


def _without(old: Any, stored: Any) -> Any:
    """`stored` less what `old` named."""
    if not (isinstance(old, dict) and isinstance(stored, dict)):
        return None
    out: Object = {}
    for key, value in stored.items():
        if key not in old:
            out[key] = value
        elif isinstance(value, dict) and isinstance(old[key], dict):
            kept = _without(old[key], value)
            if kept:
                out[key] = kept
    return out


def same_content(a: Object, b: Object) -> bool:
    """Whether two objects differ in nothing but status and metadata: what decides about `metadata.generation`."""
    skip = ("metadata", "status")
    return {k: v for k, v in a.items() if k not in skip} == {k: v for k, v in b.items() if k not in skip}
