"""What git is to say of an object that came through the API. Called by whoever commits writes.

A file holds what somebody wrote, not what a server made of it: no status, no defaults, no bookkeeping. So a new object
goes into git as it was sent, and of a changed one only the change does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from reconciler.layout.alike import same
from reconciler.layout.manifest import OURS, SERVERS, by_others
from reconciler.plan.listitems import by_item, names
from reconciler.plan.merge import merged

Object = dict[str, Any]
Render = Callable[[Object], Object | None]
"""What a manifest is with its defaults, also where a field is missing that its kind demands; None where that fails."""
Take = Literal["new", "least", "parts", "whole"]
"""What is taken of a thing that the manifest does not have: nothing but its being there, since defaults may fill it
(with "new", and of what was not there before either), what changed of it, or all."""

_FIRST = ("apiVersion", "kind", "metadata")
_SPARING = ("new", "least")
_TAKES: tuple[Take, ...] = ("least", "parts", "whole")
_REPAIRS = 10
"""Steps in which the result is completed; each writes down what one field decided of others."""
_ABSENT = object()


def sent_form(sent: Object, stored: Object | None = None) -> Object:
    """An object as a client sent it, less what is the server's or means nothing.

    With `stored`, what the server made of it, a null stays where it was kept and becomes the empty text where it was
    read as that (labels, data); every other null goes. apiVersion, kind and metadata come first.
    """
    found = cut(sent)
    out = {key: found[key] for key in _FIRST if key in found} | found
    told: Object = _without_nulls(out, stored if stored is not None else {})
    return told


def declared_form(manifest: Object, live: Object, final: Object, render: Render | None = None) -> Object:
    """`manifest` with the difference from `live` to `final` made to it.

    `manifest` is what git says now, as written; `live` and `final` are the complete object before and after the write.
    What the write did not change stays as it is written, or unwritten. With `render` the result is tried: in it is
    whatever a commit of it takes to move `live` to `final`, and no default that comes of itself. Without, whole maps
    are taken where only a part may not be enough.

        manifest {a: 1}   live {a: 1, b: default}   final {a: 2, b: default}   →   {a: 2}

    A manifest in another version than `live` and `final` becomes all of `final`.

    What git never named and the write took away cannot be said in git; the result is silent about it.
    """
    manifest, live, final = cut(manifest), cut(live), cut(final)
    if "apiVersion" in manifest and manifest["apiVersion"] != final.get("apiVersion"):
        return sent_form(final, final)
    if render is not None:
        before = render(manifest)
        tried = [_Try(before, live, final, render, take) for take in _TAKES]
        found = next((form for t in tried if (form := t.completed(manifest)) is not None), None)
        nearly = next((t.nearly for t in tried if t.nearly is not None), None)
        if found is not None or nearly is not None:
            return found or nearly or {}
    return _changed(manifest, live, final, "whole")


@dataclass(slots=True)
class _Try:
    """`nearly` is a form of which a commit leaves nothing amiss but what git never named and so cannot take away."""

    before: Object | None
    live: Object
    final: Object
    render: Render
    take: Take
    nearly: Object | None = None

    def completed(self, manifest: Object) -> Object | None:
        """The form with whatever a commit of it takes to move `live` to `final`; None where that does not come out."""
        found = _changed(manifest, self.live, self.final, self.take)
        for _ in range(_REPAIRS):
            after = self.render(found)
            if after is None:
                return None
            result = cut(merged(self.before, after, self.live))
            if same(result, self.final):
                return found
            further = self._further(found, result)
            if further is None:
                self.nearly = found if _covers(result, self.final) else None
                return None
            found = further
        return None

    def _further(self, found: Object, result: Object) -> Object | None:
        ways: tuple[Take, ...] = ("new", "least") if self.take == "least" else (self.take,)
        forms = (_changed(found, result, self.final, way) for way in ways)
        return next((form for form in forms if not same(form, found)), None)


def _covers(result: Any, final: Any) -> bool:
    """Whether two objects differ only in keys that the second does not have."""
    if isinstance(result, dict) and isinstance(final, dict):
        return all(key in result and _covers(result[key], value) for key, value in final.items())
    return same(result, final)


def _changed(manifest: Object, live: Object, final: Object, take: Take) -> Object:
    out = _map(manifest, live, final, take)
    if "metadata" in out:  # nothing of it is a default, and much may be others'
        written, before, after = (side.get("metadata") or {} for side in (manifest, live, final))
        out["metadata"] = _map(written, before, after, "parts")
    return out


def _map(manifest: Object, live: Object, final: Object, take: Take) -> Object:
    out: Object = {}
    for key, value in manifest.items():
        before, after = live.get(key, _ABSENT), final.get(key, _ABSENT)
        if same(before, after):
            out[key] = value
        elif after is not _ABSENT:
            out[key] = _value(value, before, after, take)
    for key, after in final.items():
        before = live.get(key, _ABSENT)
        if key not in manifest and not same(before, after):
            if take == "new" and before is not _ABSENT and not isinstance(after, dict):
                continue  # a default, which may yet change with what is added beside it
            taken = _new(before, after, take)
            if taken is not _ABSENT:
                out[key] = taken
    return out


def _value(manifest: Any, live: Any, final: Any, take: Take) -> Any:
    if isinstance(manifest, dict) and isinstance(live, dict) and isinstance(final, dict):
        return _map(manifest, live, final, take)
    if isinstance(manifest, list) and isinstance(live, list) and isinstance(final, list):
        return by_item(manifest, live, final, partial(_value, take=take), least=take in _SPARING)
    return final


def _new(live: Any, final: Any, take: Take) -> Any:
    """What enters the manifest of something that it does not have; _ABSENT for nothing."""
    if take != "whole" and isinstance(live, dict) and isinstance(final, dict):
        return _map({}, live, final, take) or _ABSENT
    if take in _SPARING and isinstance(final, dict):
        return {}
    if take in _SPARING and isinstance(final, list):
        return names(final)
    return final


def cut(value: Object) -> Object:
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
    if kept.get("finalizers"):
        kept["finalizers"] = by_others(kept["finalizers"])
    for part in ("annotations", "labels", "finalizers"):
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
