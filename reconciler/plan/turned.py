"""Since when a workspace says what it says: the times of the conditions that the program computes.

A condition bears its object's creation time as long as it says what it said then. One that turned bears the time of
what had it turn: of the commit that was judged, the workspace's own or a provider's, or the real one, where no commit
did (something had gone that was waited for). A recovery judges what is, and finds no turn, so the summary has them:
`turned` says the time of each condition that does not bear its object's creation. Called by loading.

A step may judge a workspace more than once, for others or after a crash. What counts is what stood before the step:
what turns in it and back again never turned, since whoever judges but once finds that. So beside a turn stands what was
said before it (`step`), as long as its step may go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from apiserver.model.conditions import Condition
from reconciler.plan.summary import Summary

WORKSPACE = "Workspace"
"""What stands for the workspace itself: its Workspace and its LogicalCluster."""


def named(kind: str, name: str) -> str:
    """An object of a workspace, as its summary names it."""
    return f"{kind}/{name}"


class Now(NamedTuple):
    """`step`: which one it is, in words that no other has; `time`: of what turns in it (RFC 3339)."""

    step: str
    time: str


class SaidBefore(NamedTuple):
    """What a condition said, and since when; of one that was not there `status` is ""."""

    status: str
    time: str


def timed(
    known: Summary, now: Now, label: str, told: Iterable[Condition], stored: Iterable[Condition], born: str
) -> list[Condition]:
    """The conditions of an object that is stored with those of `stored`, with their times; `known` is kept up. `label`:
    the object, as the summary names it. `born`: its creation time."""
    there = {each["type"]: SaidBefore(each["status"], each.get("lastTransitionTime") or born) for each in stored}
    before = _before(known, now, label)
    out = []
    for each in told:
        kind = each["type"]
        was = before.get(kind) or there.get(kind) or SaidBefore("", "")
        if was.status != each["status"]:
            _keep(known, now, label, kind, was)
        out.append({**each, "lastTransitionTime": was.time if was.status == each["status"] else now.time})
    _note(known, label, {each["type"]: each["lastTransitionTime"] for each in out}, born)
    return out


def recorded(known: Summary, label: str, told: Iterable[Condition], born: str) -> list[Condition]:
    """The same of an object that is made as it was, or that is new."""
    times = known.turned.get(label) or {}
    return [{**each, "lastTransitionTime": times.get(each["type"], born)} for each in told]


def forget(known: Summary, label: str) -> None:
    """An object is there no more."""
    known.turned.pop(label, None)
    before = known.step.get("before", {})
    if label in before:
        known.step = {**known.step, "before": {each: said for each, said in before.items() if each != label}}


def _before(known: Summary, now: Now, label: str) -> dict[str, SaidBefore]:
    """What an object said before the step, of what turned in it."""
    said = known.step.get("before", {}) if known.step.get("of") == now.step else {}
    return {kind: SaidBefore(*each) for kind, each in said.get(label, {}).items()}


def _keep(known: Summary, now: Now, label: str, kind: str, was: SaidBefore) -> None:
    before = known.step["before"] if known.step.get("of") == now.step else {}
    said = {kind: [*was], **before.get(label, {})}
    known.step = {**known.step, "of": now.step, "before": {**before, label: said}}


def _note(known: Summary, label: str, times: dict[str, str], born: str) -> None:
    turned = {kind: time for kind, time in sorted(times.items()) if time != born}
    if turned:
        known.turned[label] = turned
    else:
        known.turned.pop(label, None)
