"""Placement decisions: sticky, explained, and never a reason to lose what runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.model import conditions, marks
from apiserver.model.kinds import GroupResource
from reconciler.plan import ownedits
from reconciler.plan.placement import (
    LEAVING,
    SYNC_TARGET,
    PlacementOutcome,
    Seen,
    Sight,
    Situation,
    Target,
    decide,
    recorded,
)

NOW, TOLERANCE = 1_000_000.0, 360.0
ANSWERS = Seen(Sight.ANSWERS, 0.0, "")
DEPLOYMENTS = GroupResource("apps", "deployments")


def target(name: str, *, seen: Seen = ANSWERS, labels: dict[str, str] | None = None, **more: Any) -> Target:
    more.setdefault("accepts", {DEPLOYMENTS: "hash"})
    return Target(f"key-{name}", "root:infra", "infra0", name, labels or {"cloud": "aws"}, seen=seen, **more)


def location(name: str = "aws", labels: dict[str, str] | None = None, selector: Any = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"instanceSelector": {} if selector is None else selector}
    return {"metadata": {"name": name, "labels": labels or {"cloud": "aws"}}, "spec": spec}


def placement(selectors: Any = None, *, key: str = "", leaving: str = "", name: str = "p") -> dict[str, Any]:
    annotations = {SYNC_TARGET: key, LEAVING: leaving}
    return {
        "metadata": {"name": name, "annotations": {k: v for k, v in annotations.items() if v}},
        "spec": {"locationSelectors": [{"matchLabels": {"cloud": "aws"}}] if selectors is None else selectors},
        "status": {"selectedLocation": {"path": "root:infra", "locationName": "aws"}} if key else {},
    }


def situation(*targets: Target, **more: Any) -> Situation:
    more.setdefault("locations", [location()])
    more.setdefault("needed", {DEPLOYMENTS: "hash"})
    return Situation(workspace="root:shop", path="root:infra", targets=targets, now=NOW, tolerance=TOLERANCE, **more)


def reason(outcome: PlacementOutcome, kind: str) -> tuple[str, str, str]:
    found = conditions.get(outcome.conditions, kind)
    assert found is not None
    return found["status"], found["reason"], found["message"]


def test_the_first_decision_takes_the_target_with_the_fewest_placements() -> None:
    outcome = decide(placement(), situation(target("a"), target("b"), load={"key-a": 1}, bound=True))
    assert outcome.decision is not None
    assert (outcome.decision.key, outcome.decision.location, outcome.phase) == ("key-b", "aws", "Bound")
    status, _, message = reason(outcome, "Scheduled")
    assert status == "True"
    assert "root:infra:b" in message
    assert "Location aws" in message


def test_a_decision_stays_although_another_target_is_emptier() -> None:
    outcome = decide(placement(key="key-a"), situation(target("a"), target("b"), load={"key-a": 9}))
    assert outcome.decision is not None
    assert (outcome.decision.key, outcome.leaving) == ("key-a", ())
    assert outcome.phase == "Unbound"


def test_a_cordon_forbids_new_decisions_and_moves_nothing() -> None:
    cordoned = target("a", unschedulable=True)
    stays = decide(placement(key="key-a"), situation(cordoned, target("b")))
    assert stays.decision is not None
    assert stays.decision.key == "key-a"
    assert "cordoned" in reason(stays, "Scheduled")[2]
    refused = decide(placement(), situation(cordoned))
    assert refused.decision is None
    assert reason(refused, "Scheduled")[:2] == ("False", "NoValidTarget")
    assert "root:infra:a is cordoned" in reason(refused, "Scheduled")[2]


def test_silence_moves_after_the_tolerance_only() -> None:
    early = Seen(Sight.SILENT, TOLERANCE - 10, "timed out")
    late = Seen(Sight.SILENT, TOLERANCE + 1, "timed out")
    waits = decide(placement(key="key-a"), situation(target("a", seen=early), target("b")))
    assert waits.decision is not None
    assert (waits.decision.key, waits.again) == ("key-a", 10)
    moves = decide(placement(key="key-a"), situation(target("a", seen=late), target("b")))
    assert moves.decision is not None
    assert (moves.decision.key, moves.leaving) == ("key-b", ("key-a",))
    alone = decide(placement(key="key-a"), situation(target("a", seen=late)))
    assert alone.decision is not None
    assert alone.decision.key == "key-a"
    assert "has not answered" in reason(alone, "Scheduled")[2]


def test_missing_credentials_neither_take_nor_lose_workloads() -> None:
    unknown = Seen(Sight.SHUT, 10**9, "Secret infra/kube is missing")
    stays = decide(placement(key="key-a"), situation(target("a", seen=unknown), target("b")))
    assert stays.decision is not None
    assert stays.decision.key == "key-a"
    assert decide(placement(), situation(target("a", seen=unknown))).decision is None


def test_a_label_edit_moves_and_keeps_the_old_copies_until_then() -> None:
    locations = [location(selector={"matchLabels": {"cloud": "aws"}})]
    outcome = decide(
        placement(key="key-a"), situation(target("a", labels={"cloud": "no"}), target("b"), locations=locations)
    )
    assert outcome.decision is not None
    assert (outcome.decision.key, outcome.leaving) == ("key-b", ("key-a",))
    alone = decide(placement(key="key-a"), situation(target("a", labels={"cloud": "no"}), locations=locations))
    assert alone.decision is not None
    assert (alone.decision.key, alone.decision.location) == ("key-a", "aws")
    assert "it stays there" in reason(alone, "Scheduled")[2]


def test_draining_moves_when_its_time_has_come() -> None:
    soon = decide(placement(key="key-a"), situation(target("a", evict_after=NOW + 5), target("b")))
    assert soon.decision is not None
    assert (soon.decision.key, soon.again) == ("key-a", 5)
    now = decide(placement(key="key-a"), situation(target("a", evict_after=NOW), target("b")))
    assert now.decision is not None
    assert now.decision.key == "key-b"


def test_a_target_must_serve_what_the_workspace_binds() -> None:
    other = target("a", accepts={DEPLOYMENTS: "of someone else"})
    outcome = decide(placement(), situation(other, target("b", accepts={})))
    assert outcome.decision is None
    assert "root:infra:b does not serve deployments.apps" in reason(outcome, "Scheduled")[2]


def test_reasons_why_there_is_no_location() -> None:
    def ready(outcome: PlacementOutcome) -> tuple[str, str, str]:
        assert outcome.phase == "Pending"
        assert reason(outcome, "Scheduled")[1] == "ScheduleLocationNotFound"
        return reason(outcome, "Ready")

    assert ready(decide(placement(), situation(locations=[])))[1] == "LocationNotFound"
    assert ready(decide(placement([]), situation(target("a"))))[1] == "LocationNoMatch"
    none = ready(decide(placement([{"matchLabels": {"cloud": "gcp"}}]), situation(target("a"))))
    assert none[1] == "LocationNoMatch"
    assert "there: aws" in none[2]
    assert ready(decide(placement([{"matchExpressions": [{}]}]), situation(target("a"))))[1] == "LocationInvalid"


def test_no_instance_selector_selects_no_target() -> None:
    bare = {"metadata": {"name": "aws", "labels": {"cloud": "aws"}}, "spec": {}}
    outcome = decide(placement(), situation(target("a"), locations=[bare]))
    assert outcome.decision is None
    assert reason(outcome, "Scheduled")[1] == "NoValidTarget"


def test_a_deleted_sync_target_is_replaced_and_not_waited_for() -> None:
    outcome = decide(placement(key="key-gone", leaving="key-old"), situation(target("a")))
    assert outcome.decision is not None
    assert (outcome.decision.key, outcome.leaving) == ("key-a", ())


def test_moving_back_takes_the_target_off_the_list_of_those_left() -> None:
    silent = Seen(Sight.SILENT, TOLERANCE, "timed out")
    outcome = decide(placement(key="key-b", leaving="key-a"), situation(target("a"), target("b", seen=silent)))
    assert outcome.decision is not None
    assert (outcome.decision.key, outcome.leaving) == ("key-a", ("key-b",))


def test_a_target_of_another_workspace_is_known_but_not_chosen() -> None:
    elsewhere = target("far")
    outcome = decide(placement(key="key-far"), situation(known={"key-far": elsewhere}))
    assert outcome.decision is not None
    assert outcome.decision.key == "key-far"
    moved = decide(placement(key="key-far"), situation(target("a"), known={"key-far": elsewhere}))
    assert moved.decision is not None
    assert (moved.decision.key, moved.leaving) == ("key-a", ("key-far",))


SEEN = st.builds(Seen, st.sampled_from(Sight), st.floats(0, 2 * TOLERANCE), st.just("why"))
TARGETS = st.lists(
    st.builds(
        target,
        st.sampled_from("abcdef"),
        seen=SEEN,
        labels=st.sampled_from([{"cloud": "aws"}, {"cloud": "gcp"}]),
        unschedulable=st.booleans(),
        evict_after=st.none() | st.floats(NOW - 100, NOW + 100),
        accepts=st.sampled_from([{}, {DEPLOYMENTS: "hash"}]),
    ),
    unique_by=lambda t: t.key,
    max_size=5,
)
LOCATIONS = st.lists(
    st.builds(
        location,
        st.sampled_from(["aws", "gcp"]),
        st.sampled_from([{"cloud": "aws"}, {"cloud": "gcp"}]),
        st.sampled_from([{}, {"matchLabels": {"cloud": "aws"}}]),
    ),
    unique_by=lambda loc: loc["metadata"]["name"],
    max_size=2,
)
KEYS = st.sampled_from(["", "key-a", "key-b", "key-gone"])


@given(TARGETS, LOCATIONS, KEYS, st.sampled_from(["", "key-a", "key-c,key-d"]))
def test_whatever_the_world_a_living_target_is_never_dropped_unrecorded(
    targets: list[Target], locations: list[dict[str, Any]], key: str, leaving: str
) -> None:
    before = placement(key=key, leaving=leaving)
    outcome = decide(before, situation(*targets, locations=locations))
    alive = {t.key for t in targets}
    held = {outcome.decision.key if outcome.decision else "", *outcome.leaving}
    assert ({key, *recorded(before)[1]} & alive) <= held
    assert {"Ready", "Scheduled"} == {c["type"] for c in outcome.conditions}
    assert all(c["message"] for c in outcome.conditions if c["status"] == "False")


@given(TARGETS, LOCATIONS, KEYS)
def test_deciding_again_decides_the_same(targets: list[Target], locations: list[dict[str, Any]], key: str) -> None:
    world = situation(*targets, locations=locations)
    first = decide(placement(key=key), world)
    after = placement(key=first.decision.key if first.decision else "", leaving=",".join(first.leaving))
    if first.decision:
        after["status"] = {"selectedLocation": {"path": first.decision.path, "locationName": first.decision.location}}
    second = decide(after, world)
    assert (second.decision, second.leaving, second.phase) == (first.decision, first.leaving, first.phase)


@given(TARGETS, LOCATIONS)
def test_the_order_of_what_is_listed_does_not_matter(targets: list[Target], locations: list[dict[str, Any]]) -> None:
    forward = decide(placement(), situation(*targets, locations=locations))
    backward = decide(placement(), situation(*reversed(targets), locations=locations[::-1]))
    assert forward == backward


def test_without_use_a_placement_stays_says_so_and_goes_nowhere_for_it() -> None:
    barred, free = location("aws"), location("other", selector={"matchLabels": {"cloud": "b"}})
    others = (target("a"), target("b", labels={"cloud": "b"}))
    stays = decide(placement(key="key-a"), situation(*others, locations=[free], barred=[barred]))
    assert stays.decision is not None
    assert (stays.decision.key, stays.decision.location, stays.leaving) == ("key-a", "aws", ())
    status, _, message = reason(stays, "Scheduled")
    assert (status, "root:shop may not use that Location any more" in message) == ("True", True)
    assert "not use" not in reason(decide(placement(key="key-a"), situation(target("a"))), "Scheduled")[2]
    # A new one is told of the barred Location as of one that is not there.
    assert decide(placement(), situation(target("a"), locations=[])).decision is None


def test_without_use_what_moves_a_placement_moves_it_still() -> None:
    gone = target("a", seen=Seen(Sight.SILENT, TOLERANCE + 1, "timed out"))
    free = location("other", selector={"matchLabels": {"cloud": "b"}})
    moves = decide(
        placement(key="key-a"),
        situation(gone, target("b", labels={"cloud": "b"}), locations=[free], barred=[location("aws")]),
    )
    assert moves.decision is not None
    assert (moves.decision.key, moves.leaving) == ("key-b", ("key-a",))


# -- state ------------------------------------------------------------------------------------------------------------

STATE = ("PersistentVolumeClaim web/data",)
US = location("america", {"cloud": "gcp"}, {"matchLabels": {"cloud": "gcp"}})
OTHER = location("other", {"cloud": "aws"}, {"matchLabels": {"cloud": "gcp"}})


def decided_on(name: str = "west", **more: Any) -> dict[str, Any]:
    """A Placement that runs on a target, with all that its decision recorded."""
    made = placement(key=f"key-{name}", **more)
    made["metadata"]["annotations"][marks.DECIDED_FROM] = ownedits.made_from(made)
    made["status"]["syncTarget"] = {"path": "root:infra", "name": name, "key": f"key-{name}"}
    return made


FOREIGN: dict[str, dict[str, Any]] = {
    "the target's labels": {"targets": (target("west", labels={"cloud": "no"}), target("east"))},
    "the Location's labels": {
        "targets": (target("west"), target("east", labels={"cloud": "gcp"})),
        "locations": [
            location("aws", {"cloud": "no"}),
            location("other", {"cloud": "aws"}, US["spec"]["instanceSelector"]),
        ],
    },
    "the Location's end": {
        "targets": (target("west"), target("east", labels={"cloud": "gcp"})),
        "locations": [OTHER],
    },
    "a drain": {"targets": (target("west", evict_after=NOW - 1), target("east"))},
    "silence": {"targets": (target("west", seen=Seen(Sight.SILENT, TOLERANCE + 1, "gone")), target("east"))},
    "the end of the SyncTarget": {"targets": (target("east"),)},
}


@pytest.mark.parametrize("how", FOREIGN)
def test_what_holds_state_does_not_move_for_what_others_do(how: str) -> None:
    more = {"locations": [location(selector={"matchLabels": {"cloud": "aws"}})], **FOREIGN[how]}
    targets = more.pop("targets")
    stateless = decide(decided_on(), situation(*targets, **more))
    assert stateless.decision is not None
    assert stateless.decision.key == "key-east", "nothing holds it"
    outcome = decide(decided_on(), situation(*targets, state=lambda: STATE, **more))
    assert outcome.decision is not None
    assert (outcome.decision.key, outcome.leaving) == ("key-west", ())
    status, why, message = reason(outcome, "Scheduled")
    assert (status, why) == ("False", "HoldsState")
    assert "PersistentVolumeClaim web/data hold state" in message
    assert "kubectl annotate placement p treeplane.dev/may-leave=root:infra:west" in message
    assert outcome.made_from == ownedits.made_from(decided_on())


@pytest.mark.parametrize("how", FOREIGN)
def test_its_owner_may_let_it_leave_that_very_target(how: str) -> None:
    more = {"locations": [location(selector={"matchLabels": {"cloud": "aws"}})], **FOREIGN[how]}
    targets = more.pop("targets")
    let = decided_on()
    let["metadata"]["annotations"][marks.MAY_LEAVE] = "root:infra:west"
    there = situation(*targets, state=lambda: STATE, **more)
    moved = decide(let, there)
    assert moved.decision is not None
    assert moved.decision.key == "key-east"
    let["metadata"]["annotations"][marks.MAY_LEAVE] = "root:infra:another"
    held = decide(let, there)
    assert held.decision is not None
    assert held.decision.key == "key-west"


def test_permission_to_leave_is_no_reason_to() -> None:
    let = decided_on()
    let["metadata"]["annotations"][marks.MAY_LEAVE] = "root:infra:west"
    outcome = decide(let, situation(target("west"), target("east"), state=lambda: STATE))
    assert outcome.decision is not None
    assert outcome.decision.key == "key-west"


def test_an_edit_of_its_own_moves_it() -> None:
    there = situation(
        target("west"), target("east", labels={"cloud": "gcp"}), state=lambda: STATE,
        locations=[location(selector={"matchLabels": {"cloud": "aws"}}), US],
    )  # fmt: skip
    edit = decided_on()
    edit["spec"]["locationSelectors"] = [{"matchLabels": {"cloud": "gcp"}}]
    outcome = decide(edit, there)
    assert outcome.decision is not None
    assert (outcome.decision.key, outcome.leaving) == ("key-east", ("key-west",))
    assert outcome.made_from == ownedits.made_from(edit)


def test_an_edit_that_had_to_wait_is_carried_out_when_it_can_be() -> None:
    """There was no target for it; others' changes are still not its own."""
    cordoned = target("east", labels={"cloud": "gcp"}, unschedulable=True)
    places = [location(selector={"matchLabels": {"cloud": "aws"}}), US]
    edit = decided_on()
    edit["spec"]["locationSelectors"] = [{"matchLabels": {"cloud": "gcp"}}]
    waiting = decide(edit, situation(target("west"), cordoned, locations=places, state=lambda: STATE))
    assert waiting.decision is not None
    assert waiting.decision.key == "key-west"
    assert waiting.made_from == ownedits.made_from(decided_on())
    east = target("east", labels={"cloud": "gcp"})
    moved = decide(edit, situation(target("west"), east, locations=places, state=lambda: STATE))
    assert moved.decision is not None
    assert moved.decision.key == "key-east"


def test_an_edit_that_means_the_same_does_not_make_anothers_change_its_own() -> None:
    edit = decided_on()
    edit["spec"]["locationSelectors"] = [{"matchLabels": {"cloud": "aws"}}, {"matchLabels": {"cloud": "nowhere"}}]
    drained = target("west", evict_after=NOW - 1)
    outcome = decide(edit, situation(drained, target("east"), state=lambda: STATE))
    assert outcome.decision is not None
    assert outcome.decision.key == "key-west"


def test_state_is_asked_for_only_where_it_matters() -> None:
    def asked() -> tuple[str, ...]:
        raise AssertionError

    for found in (placement(), decided_on()):
        assert decide(found, situation(target("west"), target("east"), state=asked)).decision is not None


@given(
    edits=st.lists(
        st.sampled_from(["label target", "label location", "drain", "silence", "remove target", "cordon", "nothing"]),
        max_size=6,
    )
)
def test_whatever_others_do_in_whatever_order_state_stays(edits: list[str]) -> None:
    west, there, places = target("west"), True, [location(selector={"matchLabels": {"cloud": "aws"}})]
    found = decided_on()
    for edit in edits:
        match edit:
            case "label target":
                west = replace(west, labels={"cloud": "no"})
            case "label location":
                places = [location(labels={"cloud": "no"})]
            case "drain":
                west = replace(west, evict_after=NOW - 1)
            case "silence":
                west = replace(west, seen=Seen(Sight.SILENT, TOLERANCE + 1, "gone"))
            case "remove target":
                there = False
            case "cordon":
                west = replace(west, unschedulable=True)
        targets = (west, target("east")) if there else (target("east"),)
        outcome = decide(found, situation(*targets, locations=places, state=lambda: STATE))
        assert outcome.decision is not None
        assert (outcome.decision.key, outcome.leaving) == ("key-west", ())
        found["metadata"]["annotations"][marks.DECIDED_FROM] = outcome.made_from
