"""What of a workspace's status runtime decided outlives what is computed, and is what the status branch gets of it."""

from __future__ import annotations

from typing import Any

import pytest

from apiserver.model.commits import own
from apiserver.model.conditions import condition
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry.codec import encode
from apiserver.registry.lifecycles import DONE
from reconciler.plan import computed, residue, runtimestatus
from reconciler.plan.computed import FLEET_FOLLOWED, WorkspaceFacts
from reconciler.plan.residue import IdentitySource

Object = dict[str, Any]
BORN, LATER = "2026-01-01T00:00:00Z", "2026-05-05T00:00:00Z"
FACTS = WorkspaceFacts("root:shop", "abcdefghijklmnop", "universal", "root", BORN)
KEY = Key(LOGICAL_CLUSTERS, FACTS.cluster, "", "cluster")
HOME = IdentitySource("fleet", own("a" * 40))
QUOTA = condition("QuotaFits", False, "TooMuch", "too much", at=LATER)
FLEET = condition(FLEET_FOLLOWED, False, "Held", "commit 1 is held", at=LATER)
ALWAYS_FOLLOWED = condition(FLEET_FOLLOWED, True, "Followed", "the branch is followed", at=BORN)


def cluster(*told: Object, **more: Any) -> Object:
    """As it is stored."""
    made = computed.logical_cluster(FACTS)
    metadata = {"name": "cluster", "uid": "u", "creationTimestamp": BORN, "generation": 1}
    metadata |= {"annotations": {**made["metadata"]["annotations"], "kcp.io/cluster": FACTS.cluster}}
    status = runtimestatus.overlaid(computed.status(FACTS), {"conditions": [*told]})
    return {**made, "metadata": metadata, "status": {**status, **more}}


def left(obj: Object) -> Object | None:
    found = residue.of(KEY, obj, HOME)
    assert found is None or found["metadata"] == {"name": "cluster"}
    return found["status"] if found is not None else None


def test_what_is_computed_leaves_nothing() -> None:
    assert left(cluster()) is None
    assert runtimestatus.overlaid(computed.status(FACTS), cluster()["status"]) == computed.status(FACTS)


@pytest.mark.parametrize("more", [{"initializers": ["root:a"]}, {"initializers": []}, {"terminators": ["root:a"]}])
def test_fields_are_kept_also_where_nothing_is_left_of_them(more: Object) -> None:
    obj = cluster(**more)
    assert left(obj) == more
    assert runtimestatus.overlaid({**computed.status(FACTS), "initializers": ["x", "root:a"]}, obj["status"])[
        "initializers"
    ] == more.get("initializers", ["x", "root:a"])


def test_conditions_are_kept_with_their_times() -> None:
    obj = cluster(QUOTA)
    assert left(obj) == {"conditions": [QUOTA]}
    types = [each["type"] for each in obj["status"]["conditions"]]
    assert types == sorted(types)
    held = computed.status(FACTS._replace(problems=("a.yaml:1: wrong",)))
    assert runtimestatus.overlaid(held, obj["status"])["conditions"] == sorted(
        [*held["conditions"], QUOTA], key=lambda each: str(each["type"])
    )


def test_one_that_is_computed_at_first_is_runtimes_once_its_reason_says_so() -> None:
    assert left(cluster(condition("WorkspaceInitialized", True, "Loaded", at=LATER))) is None
    done = condition("WorkspaceInitialized", True, DONE, at=LATER)
    obj = cluster(done)
    assert left(obj) == {"conditions": [done]}
    assert done in runtimestatus.overlaid(computed.status(FACTS), obj["status"])["conditions"]


def test_of_the_fleet_only_what_differs_from_always_and_no_text() -> None:
    assert left(cluster(ALWAYS_FOLLOWED)) is None
    assert left(cluster(FLEET)) == {"conditions": [{**FLEET, "message": ""}]}
    again = {**ALWAYS_FOLLOWED, "lastTransitionTime": LATER}
    assert left(cluster(again, QUOTA)) == {"conditions": [{**again, "message": ""}, QUOTA]}


@pytest.mark.parametrize(
    ("obj", "is_none"),
    [
        (cluster(), True),
        (cluster(FLEET), False),
        (cluster(initializers=[]), False),
        ({**cluster(), "metadata": {**cluster()["metadata"], "finalizers": ["a/b"]}}, False),
        ({**cluster(), "metadata": {**cluster()["metadata"], "generation": 2}}, False),
    ],
)
def test_what_leaves_none_is_seen_at_a_glance(obj: Object, is_none: bool) -> None:
    assert residue.is_none(KEY, encode(obj)) is is_none
    if is_none:
        assert residue.of(KEY, obj, HOME) is None


def test_a_text_is_not_taken_for_a_condition() -> None:
    obj = cluster()
    obj["status"]["conditions"][0]["message"] = 'x"lastTransitionTime":"y'
    assert residue.is_none(KEY, encode(obj))
