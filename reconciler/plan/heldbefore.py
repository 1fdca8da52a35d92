"""How a workspace was held at the commit that all of its fleet was past when it went on.

While commits are on their way, a status commit names the last one that all workspaces are past. One that was held there
and went on with what is on its way offered others what it was served with then, and not what that commit says of it. So
its summary says how it was held, beside what else stood before its step (`step`), and a recovery makes its likeness so.
So it says whether its pin was over there, and which commit of its source was served, where that turned on the way.
Called by loading.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from apiserver.model import commits
from apiserver.model.commits import CommitRef
from reconciler.plan.summary import Summary

_HELD = "held"
_OVER = "over"
_CONTENT = "content"
_AT, _WAS = "at", "was"
_SAID = ("served", "held", "before", "claims", "errors", "damaged")


def note(known: Summary, passed: CommitRef) -> None:
    """It goes on. `passed`: the commit that all of the fleet is past. The first time after that counts."""
    if known.step.get(_HELD, {}).get(_AT) == str(passed):
        return
    step = {name: value for name, value in known.step.items() if name != _HELD}
    if known.served is not None:
        said = known.as_json()
        step[_HELD] = {_AT: str(passed), **{name: said[name] for name in _SAID if name in said}}
    known.step = step


def note_over(known: Summary, over: str, passed: CommitRef) -> None:
    """Its pin is over from now on, or not any more (see Summary.over)."""
    if known.over != over and known.step.get(_OVER, {}).get(_AT) != str(passed):
        known.step = {**known.step, _OVER: {_AT: str(passed), _WAS: known.over}}
    known.over = over


def note_content(known: Summary, content: CommitRef, passed: CommitRef, at: CommitRef) -> None:
    """It is served with that commit of its source from now on (NONE: it has none), as of the fleet's commit `at`. Where
    that is what all of the fleet is past, nobody sees any more what was served before."""
    if known.content != content:
        if at == passed:
            known.step = {name: value for name, value in known.step.items() if name != _CONTENT}
        elif known.step.get(_CONTENT, {}).get(_AT) != str(passed):
            known.step = {**known.step, _CONTENT: {_AT: str(passed), _WAS: str(known.content)}}
    known.content = content


def likeness(known: Summary, passed: CommitRef, later: Collection[CommitRef] = ()) -> Summary:
    """What stood in the place of a summary at the commit that all of the fleet was past, as far as others saw it.
    `later`: the commits that were on their way then. One that is served at such a commit by now went on, and was held
    for another one of them since."""
    over: dict[str, str] = known.step.get(_OVER) or {}
    if over.get(_AT) == str(passed):
        known = replace(known, over=over[_WAS])
    content: dict[str, str] = known.step.get(_CONTENT) or {}
    if content.get(_AT) == str(passed):
        known = replace(known, content=commits.parse(content[_WAS]))
    held: dict[str, Any] = known.step.get(_HELD) or {}
    if held.get(_AT) != str(passed):
        if known.served not in later:
            return known
        held = {}
    said = {name: value for name, value in known.as_json().items() if name not in _SAID}
    return replace(Summary.from_json({**said, **held}), at=known.at)


def served(said: dict[str, Any]) -> str:
    """The commit that a summary, as it is recorded, names for one that was held; "" for any other."""
    held: dict[str, str] = (said.get("step") or {}).get(_HELD) or {}
    return held.get("served") or ""
