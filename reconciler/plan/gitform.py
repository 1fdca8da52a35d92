"""What git is to say of an object that came through the API. Called by whoever commits writes.

A file holds what somebody wrote, not what a server made of it: no status, no defaults, no bookkeeping. So a new object
goes into git as it was sent, and of a changed one only the change does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from reconciler.layout.alike import same
from reconciler.layout.manifest import OURS, SERVERS
from reconciler.plan.listitems import by_item
from reconciler.plan.merge import merged

Object = dict[str, Any]
Render = Callable[[Object], Object]
"""What a manifest is with its defaults."""

_FIRST = ("apiVersion", "kind", "metadata")
_REPAIRS = 8
"""Steps in which the result is completed; each writes down what one field decided of others."""
_ABSENT = object()


def sent_form(sent: Object, stored: Object | None = None) -> Object:
    """An object as a client sent it, less what is the server's or means nothing.

    With `stored`, what the server made of it, a null stays where it was kept and becomes the empty text where it was
    read as that (labels, data); every other null goes. apiVersion, kind and metadata come first.
    """
    cut = _cut(sent)
    out = {key: cut[key] for key in _FIRST if key in cut} | cut
    found: Object = _without_nulls(out, stored if stored is not None else {})
    return found


def declared_form(manifest: Object, live: Object, final: Object, render: Render | None = None) -> Object:
    """`manifest` with the difference from `live` to `final` made to it.

    `manifest` is what git says now, as written; `live` and `final` are the complete object before and after the write.
    What the write did not change stays as it is written, or unwritten. With `render` the result is tried: whatever it
    takes for a commit of it to move `live` to `final` is added to it, which is little (a default that another field
    decided). Without, whole maps are taken where only a part may not be enough.

        manifest {a: 1}   live {a: 1, b: default}   final {a: 2, b: default}   →   {a: 2}

    What git never named and the write took away cannot be said in git; the result is silent about it.
    """
    manifest, live, final = _cut(manifest), _cut(live), _cut(final)
    if render is None:
        return _changed(manifest, live, final, whole=True)
    before = render(manifest)
    for whole in (False, True):
        found = _changed(manifest, live, final, whole=whole)
        for _ in range(_REPAIRS):
            result = _cut(merged(before, render(found), live))
            if same(result, final):
                return found
            previous, found = found, _changed(found, result, final, whole=whole)
            if same(found, previous):
                break
    return _changed(manifest, live, final, whole=True)


def _changed(manifest: Object, live: Object, final: Object, *, whole: bool) -> Object:
    """`whole`: of a map that the manifest does not have all is taken, and not only what changed.

    Never so in the metadata, of which nothing is a default, and much may be others'.
    """
    out = _map(manifest, live, final, whole)
    if "metadata" in out:
        written, before, after = (side.get("metadata") or {} for side in (manifest, live, final))
        out["metadata"] = _map(written, before, after, whole=False)
    return out


def _map(manifest: Object, live: Object, final: Object, whole: bool) -> Object:
    out: Object = {}
    for key, value in manifest.items():
        before, after = live.get(key, _ABSENT), final.get(key, _ABSENT)
        if same(before, after):
            out[key] = value
        elif after is not _ABSENT:
            out[key] = _value(value, before, after, whole)
    for key, after in final.items():
        before = live.get(key, _ABSENT)
        if key not in manifest and not same(before, after):
            taken = _new(before, after, whole)
            if taken is not _ABSENT:
                out[key] = taken
    return out


def _value(manifest: Any, live: Any, final: Any, whole: bool) -> Any:
    if isinstance(manifest, dict) and isinstance(live, dict) and isinstance(final, dict):
        return _map(manifest, live, final, whole)
    if isinstance(manifest, list) and isinstance(live, list) and isinstance(final, list):
        return by_item(manifest, live, final, partial(_value, whole=whole))
    return final


def _new(live: Any, final: Any, whole: bool) -> Any:
    """What enters the manifest of something that it does not have; _ABSENT for nothing."""
    if whole or not (isinstance(live, dict) and isinstance(final, dict)):
        return final
    return _map({}, live, final, whole) or _ABSENT


def _cut(value: Object) -> Object:
    """An object less what servers alone set, and less what says nothing."""
    out = {key: part for key, part in value.items() if key != "status"}
    metadata = out.get("metadata")
    if not isinstance(metadata, dict):
        return out
    kept = {key: part for key, part in metadata.items() if key not in SERVERS}
    if kept.get("name"):
        kept.pop("generateName", None)
    annotations = kept.get("annotations")
    if annotations:
        kept["annotations"] = {key: text for key, text in annotations.items() if key not in OURS}
    for part in ("annotations", "labels"):
        if part in kept and not kept[part]:
            del kept[part]
    return {**out, "metadata": kept}


def _without_nulls(value: Any, stored: Any) -> Any:
    if isinstance(value, list):
        there = stored if isinstance(stored, list) and len(stored) == len(value) else [None] * len(value)
        return [_without_nulls(item, beside) for item, beside in zip(value, there, strict=True)]
    if not isinstance(value, dict):
        return value
    out: Object = {}
    for key, part in value.items():
        beside = stored.get(key, _ABSENT) if isinstance(stored, dict) else _ABSENT
        if part is not None:
            out[key] = _without_nulls(part, beside)
        elif beside is None or beside == "":
            out[key] = beside
    return out
