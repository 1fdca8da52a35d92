"""The placement decision: which sync target a Placement's namespaces run on, and why.

Pure: the placements controller reads the objects, calls `decide`, and writes what it answers. The decision is recorded
on the Placement itself (annotations of model/marks, and status), so it survives with the status branch.

Rules. A decision is sticky: as long as its target is selected, stays on it. These start a move: the Placement's
selectors, the Location or the target's labels no longer select the target; `evictAfter` has passed; the target has not
answered for longer than the tolerance; the SyncTarget was deleted. A cordon (`unschedulable`) only forbids new
decisions, and so does a Location that the Placement's workspace may not use any more; where it may use none of its
target's, what has a copy there keeps it and nothing new is copied. A move names the new target and keeps the old one in
LEAVING until the syncer has found everything healthy at the new place and removed the old copies. With no other
candidate the decision stays as it is and a condition says what is missing. A target into which there is no way
(credentials missing, or refused) is neither chosen nor left.

Where a selected namespace holds state (plan/state.py), only the Placement's own workspace moves it: by an edit of the
spec that means other locations, or by the annotation MAY_LEAVE, which names the target. For whatever is done elsewhere
the decision stays as it is, also when its SyncTarget is gone, and a condition says what holds it and what to do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from apiserver.auth.workspaces import USER_PREFIX
from apiserver.model import clock, conditions, marks, selectors
from apiserver.model.conditions import NOT_ASKED, Condition, condition
from apiserver.model.identity import sync_target_key
from apiserver.model.kinds import GroupResource
from reconciler.plan import ownedits
from reconciler.plan.state import named

SYNC_TARGET, LEAVING = marks.SYNC_TARGET, marks.LEAVING

Object = dict[str, Any]


class Sight(Enum):
    """What this process knows of a target."""

    UNKNOWN = "unknown"
    """It has not answered this process yet: what is recorded about it counts."""
    SHUT = "shut"
    """There is no way in: its credentials are missing, or refused by us or by it. It takes nothing and keeps what it
    has."""
    ANSWERS = "answers"
    SILENT = "silent"


@dataclass(frozen=True, slots=True)
class Seen:
    """`silent`: seconds since it was last known not to be, or since the start of the process if that was later.
    `reason`: of a condition, where it is shut."""

    sight: Sight = Sight.UNKNOWN
    silent: float = 0.0
    why: str = NOT_ASKED
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    """A SyncTarget as placement sees it. `path`: its workspace. `accepts`: resource → identity hash ("" = any)."""

    key: str
    path: str
    cluster: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    unschedulable: bool = False
    evict_after: float | None = None
    accepts: Mapping[GroupResource, str] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)

    @staticmethod
    def of(obj: Object, cluster: str, path: str, seen: Seen) -> Target:
        """From a SyncTarget of the logical cluster `cluster`, whose workspace path is `path`."""
        spec, metadata = obj.get("spec") or {}, obj["metadata"]
        synced = (obj.get("status") or {}).get("syncedResources") or ()
        evict = spec.get("evictAfter")
        ready = conditions.is_true((obj.get("status") or {}).get("conditions"), "Ready")
        return Target(
            key=sync_target_key(cluster, metadata["name"]),
            path=path,
            cluster=cluster,
            name=metadata["name"],
            labels=metadata.get("labels") or {},
            unschedulable=bool(spec.get("unschedulable")),
            evict_after=_moment(evict),
            accepts={
                GroupResource(r.get("group", ""), r["resource"]): r.get("identityHash", "")
                for r in synced
                if r.get("state") == "Accepted"
            },
            seen=Seen(Sight.ANSWERS) if seen.sight is Sight.UNKNOWN and ready else seen,
        )

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


def _moment(text: Any) -> float | None:
    """Seconds since 1970; None where nothing that can be read is said, so that nothing is evicted for it."""
    try:
        return clock.parse(text).timestamp() if text else None
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a Placement's namespaces run. `location`: the Location's name in the workspace `path`; `key`, `target`: key
    and name of the sync target, `target_path`: its workspace."""

    path: str
    location: str
    key: str
    target: str
    target_path: str


@dataclass(frozen=True, slots=True)
class Situation:
    """What a decision is made from.

    `workspace`: the Placement's; `path`: the one that its locations are in; `locations`: those there that `workspace`
    may use; `barred`: the others, which only a Placement that runs there is told of; `targets`: the SyncTargets of
    `path`. `known`: by key, those that the Placement carries already, of whichever workspace. `needed`: the bound
    workload kinds of the Placement's workspace with their identity hashes. `load`: placements on each target by key,
    this one not counted. `bound`: whether any namespace is selected. `state`: what in these holds state, asked for only
    where it matters. `revoked`: there are Locations of the target that the Placement runs on, and `workspace` may use
    none of them. `now`: seconds since 1970. `tolerance`: seconds a target may be silent before it loses its
    placements.
    """

    workspace: str
    path: str
    locations: Sequence[Object]
    targets: Sequence[Target]
    now: float
    tolerance: float
    barred: Sequence[Object] = ()
    known: Mapping[str, Target] = field(default_factory=dict)
    needed: Mapping[GroupResource, str] = field(default_factory=dict)
    load: Mapping[str, int] = field(default_factory=dict)
    bound: bool = False
    state: Callable[[], Sequence[str]] = tuple
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class PlacementOutcome:
    """What `decide` answers. `again`: seconds after which time alone may change it. `made_from`: see plan/ownedits.
    `nothing_new`: what has a copy there stays, and nothing else comes."""

    decision: Decision | None
    leaving: tuple[str, ...]
    phase: str
    conditions: tuple[Condition, ...]
    again: float | None = None
    made_from: str = ""
    nothing_new: bool = False


@dataclass(frozen=True, slots=True)
class _Choice:
    location: str
    target: Target


def recorded(placement: Object) -> tuple[str, tuple[str, ...]]:
    """The decision that a Placement carries: key of its target ("" if none) and keys of those it is leaving."""
    annotations = placement["metadata"].get("annotations") or {}
    leaving = tuple(k for k in annotations.get(LEAVING, "").split(",") if k)
    return annotations.get(SYNC_TARGET, ""), leaving


def recorded_target(placement: Object) -> str:
    """The target of the decision that a Placement carries, as `path:name`."""
    said: Object = (placement.get("status") or {}).get("syncTarget") or {}
    return f"{said['path']}:{said['name']}" if said.get("path") and said.get("name") else ""


def decide(placement: Object, situation: Situation) -> PlacementOutcome:
    """The decision for this Placement (a stored object), sticky to the one it carries."""
    key, leaving = recorded(placement)
    by_key = {**situation.known, **{t.key: t for t in situation.targets}}
    leaving = tuple(k for k in leaving if k in by_key and k != key)
    locations, trouble = _locations(placement, situation)
    choices = _choices(locations, situation)
    current = by_key.get(key)
    place = _selected(placement, current, choices)
    if place is None and situation.barred:
        # It came there when its workspace might use the Location. That is over: nothing comes, nothing goes for it.
        matching = _matching(placement, situation.barred)
        place = _selected(placement, current, _choices(matching, situation))
    why = _why_move(key, current, place, situation)
    now = ownedits.made_from(placement)
    if current is not None and not why:
        assert place is not None
        decision = Decision(situation.path, place.location, current.key, current.name, current.path)
        outcome = _outcome(situation, decision, leaving, (), _again(current, situation), by_key)
        return replace(outcome, made_from=now, nothing_new=situation.revoked)
    rejected = [(c, _rejection(c.target, situation)) for c in choices if c.target.key != key]
    free = [c for c, reason in rejected if not reason]
    state = _held(placement, key, current, situation)
    if free and not state:
        chosen = _best(placement, free, situation.load, place.location if place else "")
        if current is not None:
            leaving = (*leaving, key)
        leaving = tuple(k for k in leaving if k != chosen.target.key)
        decision = Decision(situation.path, chosen.location, chosen.target.key, chosen.target.name, chosen.target.path)
        outcome = _outcome(situation, decision, leaving, (), _again(chosen.target, situation), by_key)
        return replace(outcome, made_from=now)
    stays = _staying(placement, current, place, situation, held=bool(state))
    if state:
        failed = "HoldsState", _what_holds(placement, state, why)
    else:
        failed = _explained(trouble if trouble[0] else _no_target(locations, rejected), current, why)
    again = None if current is None else _again(current, situation)
    outcome = _outcome(situation, stays, leaving, failed, again, by_key)
    if stays is None:
        return outcome
    return replace(outcome, made_from=ownedits.recorded(placement) or now, nothing_new=situation.revoked)


def _held(placement: Object, key: str, current: Target | None, situation: Situation) -> Sequence[str]:
    """What holds the namespaces where they are, although they should move: state, unless their own workspace moves
    them."""
    if not key or ownedits.may_leave(placement, str(current or recorded_target(placement))):
        return ()
    if ownedits.edited(placement, (*situation.locations, *situation.barred)):
        return ()
    return situation.state()


def _what_holds(placement: Object, state: Sequence[str], why: str) -> str:
    name, target = placement["metadata"]["name"], recorded_target(placement)
    text = f"{why}; it stays there, since {named(state)} hold state, which does not move by itself: "
    text += "edit spec.locationSelectors so that they mean another Location"
    if target:
        text += (
            f", or let it go with `kubectl annotate placement {name} {marks.MAY_LEAVE}={target}` (or that annotation "
        )
        text += "in its manifest)"
    return f"{text}. All copies there, volumes included, are removed once all is healthy at the new place"


def _locations(placement: Object, situation: Situation) -> tuple[list[Object], tuple[str, str]]:
    """The locations that the Placement selects, or reason and message why there are none. A Location that may not be
    used, a workspace without one, and no such workspace give one text: whose clusters are elsewhere is nobody's to find
    out."""
    spec = placement.get("spec") or {}
    wanted = spec.get("locationSelectors") or []
    of = (spec.get("locationResource") or {}).get("resource", "synctargets")
    if of != "synctargets":
        return [], ("LocationInvalid", f"spec.locationResource names {of}; only synctargets of workload.kcp.io can be")
    if not situation.locations:
        return [], (
            "LocationNotFound",
            f"{situation.workspace} may use no Location of {situation.path} (spec.locationWorkspace): there is none, "
            f"or RBAC there does not give User {USER_PREFIX}{situation.workspace} the verb use on it",
        )
    if not wanted:
        return [], (
            "LocationNoMatch",
            "spec.locationSelectors is empty and selects nothing; [{}] selects every Location",
        )
    if _selectors(placement) is None:
        return [], ("LocationInvalid", "spec.locationSelectors holds something that is not a label selector")
    found = _matching(placement, situation.locations)
    if not found:
        names = ", ".join(sorted(loc["metadata"]["name"] for loc in situation.locations))
        return [], (
            "LocationNoMatch",
            f"spec.locationSelectors matches no Location of {situation.path} (there: {names})",
        )
    return found, ("", "")


def _selectors(placement: Object) -> list[selectors.LabelSelector] | None:
    """None: one of them cannot be read."""
    try:
        return [selectors.from_object(s) for s in (placement.get("spec") or {}).get("locationSelectors") or []]
    except (KeyError, TypeError, AttributeError):
        return None


def _matching(placement: Object, locations: Sequence[Object]) -> list[Object]:
    """Those that spec.locationSelectors match, by name."""
    wanted = _selectors(placement) or []
    found = [loc for loc in locations if any(s.matches(loc["metadata"].get("labels")) for s in wanted)]
    return sorted(found, key=lambda loc: str(loc["metadata"]["name"]))


def _choices(locations: Sequence[Object], situation: Situation) -> list[_Choice]:
    return [_Choice(loc["metadata"]["name"], t) for loc in locations for t in instances(loc, situation.targets)]


def instances(location: Object, targets: Sequence[Target]) -> list[Target]:
    """The sync targets of a Location. No instanceSelector selects none, {} all of its workspace, as in kcp."""
    try:
        selector = selectors.from_object((location.get("spec") or {}).get("instanceSelector"))
    except (KeyError, TypeError, AttributeError):
        return []
    return [t for t in targets if selector.matches(t.labels)]


def available(target: Target) -> bool:
    """Answers and is not cordoned: counted in a Location's status.availableInstances."""
    return target.seen.sight is Sight.ANSWERS and not target.unschedulable


def _selected(placement: Object, current: Target | None, choices: Sequence[_Choice]) -> _Choice | None:
    """The current target among what is selected now, at its recorded location if that still holds it."""
    if current is None:
        return None
    mine = [c for c in choices if c.target.key == current.key]
    status: Object = (placement.get("status") or {}).get("selectedLocation") or {}
    return next((c for c in mine if c.location == status.get("locationName")), mine[0] if mine else None)


def _why_move(key: str, current: Target | None, place: _Choice | None, situation: Situation) -> str:
    """Why the current decision cannot stand; "" if it can (and for the first decision a text that says so)."""
    if not key:
        return "nothing was decided yet"
    if current is None:
        return f"the sync target that it ran on (key {key}) is not declared any more; its copies there are left alone"
    if place is None:
        return f"no selected Location holds sync target {current} any more"
    if current.seen.sight is Sight.SILENT and current.seen.silent >= situation.tolerance:
        return (
            f"sync target {current} has not answered for longer than {situation.tolerance:.0f} s ({current.seen.why})"
        )
    if current.evict_after is not None and current.evict_after <= situation.now:
        return f"sync target {current} is being drained (spec.evictAfter has passed)"
    return ""


def _rejection(target: Target, situation: Situation) -> str:
    """Why a target takes nothing new; "" if it does."""
    if target.seen.sight is not Sight.ANSWERS:
        return f"is not ready: {target.seen.why}"
    if target.unschedulable:
        return "is cordoned (spec.unschedulable)"
    if target.evict_after is not None and target.evict_after <= situation.now:
        return "is being drained (spec.evictAfter has passed)"
    missing = sorted(str(r) for r, identity in situation.needed.items() if not _accepted(target, r, identity))
    return f"does not serve {', '.join(missing)}" if missing else ""


def _accepted(target: Target, resource: GroupResource, identity: str) -> bool:
    theirs = target.accepts.get(resource)
    return theirs is not None and (not theirs or not identity or theirs == identity)


def _best(placement: Object, free: Sequence[_Choice], load: Mapping[str, int], location: str) -> _Choice:
    """Same Location first, then the fewest placements, then a hash: the same world gives the same answer."""
    metadata = placement["metadata"]
    name = f"{(metadata.get('annotations') or {}).get('kcp.io/cluster', '')}:{metadata['name']}"

    def rank(choice: _Choice) -> tuple[bool, int, str, str]:
        spread = hashlib.sha256(f"{name}\0{choice.target.key}".encode()).hexdigest()
        return choice.location != location, load.get(choice.target.key, 0), spread, choice.location

    return min(free, key=rank)


def _staying(
    placement: Object, current: Target | None, place: _Choice | None, situation: Situation, *, held: bool
) -> Decision | None:
    """`held`: also where the target is not declared any more."""
    status: Object = placement.get("status") or {}
    location: Object = status.get("selectedLocation") or {}
    path, name = str(location.get("path", "")), str(location.get("locationName", ""))
    if current is None:
        target: Object = status.get("syncTarget") or {}
        key = recorded(placement)[0]
        return Decision(path, name, key, str(target.get("name", "")), str(target.get("path", ""))) if held else None
    if place is not None:
        return Decision(situation.path, place.location, current.key, current.name, current.path)
    return Decision(path, name, current.key, current.name, current.path)


def _no_target(locations: Sequence[Object], rejected: Sequence[tuple[_Choice, str]]) -> tuple[str, str]:
    names = ", ".join(str(loc["metadata"]["name"]) for loc in locations)
    if not rejected:
        return "NoValidTarget", f"the instanceSelector of Location {names} selects no other sync target"
    reasons = dict.fromkeys(f"{c.target} {reason}" for c, reason in rejected)
    return "NoValidTarget", "; ".join(sorted(reasons))


def _explained(failed: tuple[str, str], current: Target | None, why: str) -> tuple[str, str]:
    reason, message = failed
    if current is None:
        return (reason, message if why.startswith("nothing") else f"{why}; {message}")
    return reason, f"{why}; it stays there, since there is no other: {message}"


def _outcome(
    situation: Situation,
    decision: Decision | None,
    leaving: tuple[str, ...],
    failed: tuple[str, str] | tuple[()],
    again: float | None,
    by_key: Mapping[str, Target],
) -> PlacementOutcome:
    if failed:
        reason, message = failed
        located = reason in ("NoValidTarget", "HoldsState")
        ready = condition("Ready", True) if located else condition("Ready", False, reason, message)
        scheduled = condition("Scheduled", False, reason if located else "ScheduleLocationNotFound", message)
    else:
        assert decision is not None
        ready = condition("Ready", True)
        target = by_key[decision.key]
        text = f"runs on sync target {target}, which Location {decision.location} of {decision.path} holds"
        text += " (selected by spec.locationSelectors)"
        if target.seen.sight is not Sight.ANSWERS:
            text += f"; the target is not ready: {target.seen.why}"
        if target.unschedulable:
            text += "; the target is cordoned, so it takes nothing new"
        if all(loc["metadata"]["name"] != decision.location for loc in situation.locations):
            text += f"; {situation.workspace} may not use that Location any more: no other Placement of it comes there"
        if situation.revoked:
            text += ", and nothing new is copied there: what has a copy keeps it"
        if leaving:
            left = ", ".join(sorted(str(by_key[k]) for k in leaving))
            text += f"; copies on {left} are removed once all is healthy here"
        scheduled = condition("Scheduled", True, "Scheduled", text)
    phase = "Pending" if decision is None else "Bound" if situation.bound else "Unbound"
    return PlacementOutcome(decision, leaving, phase, (ready, scheduled), again)


def _again(target: Target, situation: Situation) -> float | None:
    waits = []
    if target.seen.sight is Sight.SILENT and target.seen.silent < situation.tolerance:
        waits.append(situation.tolerance - target.seen.silent)
    if target.evict_after is not None and target.evict_after > situation.now:
        waits.append(target.evict_after - situation.now)
    return min(waits) if waits else None
