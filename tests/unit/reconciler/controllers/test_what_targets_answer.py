"""What is told of a sync target and of its credentials, and what follows of that for what it runs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from support.targetloops import EAST, PLACEMENT, QUICK, WEST, FakeCluster, Loops, decided, declare

from apiserver.model import clock, conditions
from apiserver.model.keys import Key
from reconciler.controllers.bindings import NamespaceRole
from reconciler.controllers.heartbeats import Heartbeats
from reconciler.controllers.targets import Denied
from reconciler.plan.placement import Sight


def test_missing_credentials_are_a_condition_and_move_nothing(fleet: Any, loops: Loops, eventually: Any) -> None:
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: decided(fleet, key) == WEST)
    loops.missing.add("west")
    target = fleet.key("synctargets", "infra0", "west")

    def ready() -> str:
        found = conditions.get((fleet.get(target).get("status") or {}).get("conditions"), "Ready")
        return str(found and found["reason"])

    eventually(lambda: ready() == "CredentialsMissing")
    # Nothing else goes on saying what was so before.
    assert {c["status"] for c in fleet.get(target)["status"]["conditions"]} == {"Unknown"}
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws"}, spec={})
    eventually(lambda: loops.available("infra0", "aws") == 1)
    assert decided(fleet, key) == WEST
    loops.missing.clear()
    eventually(lambda: ready() == "Ready")


REFUSALS = {
    "its certificate": Denied("CertificateRefused", "its certificate is not trusted: expired"),
    "401": Denied("Unauthorized", "it does not accept the kubeconfig's credentials"),
    "403": Denied("Forbidden", "its credentials lack rights there"),
    "its address": Denied("AddressRefused", "10.0.0.1 is not allowed; --trust-targets root:infra"),
    "its kubeconfig": None,
}


@pytest.mark.parametrize("how", REFUSALS)
def test_a_target_that_is_refused_or_refuses_us_keeps_what_it_runs_and_takes_nothing(
    how: str, fleet: Any, quick: Loops, eventually: Any
) -> None:
    loops, error = quick, REFUSALS[how]
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    if error is None:
        loops.content["west"] = "exec"
    else:
        loops.clusters["west"].denied = error
    target = fleet.key("synctargets", "infra0", "west")

    def ready() -> dict[str, Any]:
        found = conditions.get((fleet.get(target).get("status") or {}).get("conditions"), "Ready")
        return found or {"status": ""}

    told = eventually(lambda: ready() if ready()["status"] == "Unknown" else None)
    wanted = error or Denied("KubeconfigRefused", "the kubeconfig is refused for `exec`")
    assert (told["reason"], told["message"]) == (wanted.reason, str(wanted))
    since = time.monotonic()
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws"}, spec={})
    eventually(lambda: loops.available("infra0", "aws") == 1)
    other = fleet.put("placements", "shop0", "other", spec={**PLACEMENT, "locationWorkspace": "root:infra"})
    eventually(lambda: decided(fleet, other) == EAST)
    eventually(lambda: time.monotonic() - since > QUICK.threshold + QUICK.tolerance + 0.2)
    eventually(lambda: not loops.busy())
    assert decided(fleet, key) == WEST
    assert loops.heartbeats.seen(WEST).sight is Sight.SHUT
    assert loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE, EAST: NamespaceRole.HERE}
    if error is None:
        loops.content.clear()
    else:
        loops.clusters["west"].denied = None
    eventually(lambda: ready()["status"] == "True")


def test_a_target_whose_credentials_have_ended_moves_nothing_however_long_it_is_silent(
    fleet: Any, quick: Loops, eventually: Any
) -> None:
    """Who lets nobody in any more may well hang up."""
    loops = quick
    key = declare(fleet, "west")
    loops.start()
    eventually(lambda: loops.bindings.roles("shop0", "web") == {WEST: NamespaceRole.HERE})
    loops.ends.over.add(WEST)
    loops.ends.near[WEST] = conditions.condition("CredentialsValid", False, "CredentialsEnded", "it ended")
    loops.clusters["west"].dead = True
    target = fleet.key("synctargets", "infra0", "west")

    def reasons() -> dict[str, str]:
        return {c["type"]: c["reason"] for c in (fleet.get(target).get("status") or {}).get("conditions", [])}

    ended = dict.fromkeys(("CredentialsValid", "HeartbeatHealthy", "Ready", "SyncerReady"), "CredentialsEnded")
    eventually(lambda: reasons() == ended)
    since = time.monotonic()
    fleet.put("synctargets", "infra0", "east", labels={"cloud": "aws"}, spec={})
    eventually(lambda: loops.available("infra0", "aws") == 1)
    eventually(lambda: time.monotonic() - since > QUICK.threshold + QUICK.tolerance + 0.2)
    eventually(lambda: not loops.busy())
    assert decided(fleet, key) == WEST
    assert loops.heartbeats.seen(WEST).sight is Sight.SHUT


def test_a_status_says_of_which_generation_and_which_credentials_it_is(
    fleet: Any, quick: Loops, eventually: Any
) -> None:
    """Of other credentials nothing is told before they have led to an answer: Ready is still said of those before."""
    loops = quick
    declare(fleet, "west")
    loops.ends.near[WEST] = conditions.condition("CredentialsValid", True, message="it ends")
    target = fleet.key("synctargets", "infra0", "west")
    fleet.objects.update(target, lambda obj: {**obj, "metadata": {**obj["metadata"], "generation": 1}})
    loops.start()

    def status() -> dict[str, Any]:
        found: dict[str, Any] = fleet.get(target).get("status") or {}
        return found

    def told() -> str:
        return str((conditions.get(status().get("conditions"), "CredentialsValid") or {}).get("message"))

    def ready() -> str:
        return str((conditions.get(status().get("conditions"), "Ready") or {}).get("status"))

    eventually(lambda: (ready(), told(), status().get("observedGeneration")) == ("True", "it ends", 1))

    def cordoned(obj: dict[str, Any]) -> dict[str, Any]:
        return {**obj, "spec": {**obj["spec"], "unschedulable": True}}

    fleet.objects.update(target, cordoned, generation=True)
    eventually(lambda: status()["observedGeneration"] == 2)
    dead = loops.clusters["far"] = FakeCluster("far")
    dead.dead = True
    connected = len(loops.told)
    loops.content["west"] = "far"
    eventually(lambda: len(loops.told) > connected, what="no beat is at the credentials before any more")
    loops.ends.near[WEST] = conditions.condition("CredentialsValid", True, message="the other ends")
    fleet.objects.update(target, lambda obj: {**obj, "spec": {**obj["spec"], "unschedulable": False}}, generation=True)
    eventually(lambda: ready() == "False")
    assert (told(), status()["observedGeneration"]) == ("it ends", 2)
    dead.dead = False
    eventually(lambda: (ready(), told(), status()["observedGeneration"]) == ("True", "the other ends", 3))


def test_what_is_told_of_credentials_is_written_when_it_changes_and_goes_with_its_cause(
    fleet: Any, loops: Loops, eventually: Any
) -> None:
    declare(fleet, "west")
    loops.start()
    target = fleet.key("synctargets", "infra0", "west")

    def told() -> str:
        status = fleet.get(target).get("status") or {}
        return str((conditions.get(status.get("conditions"), "CredentialsValid") or {}).get("message"))

    eventually(lambda: WEST in loops.ends.renewed)
    assert told() == "None"
    loops.ends.near[WEST] = conditions.condition("CredentialsValid", True, message="it ends")
    eventually(lambda: told() == "it ends")
    eventually(lambda: loops.beats_without_a_write(eventually))
    loops.ends.near.clear()
    eventually(lambda: told() == "None")


def test_another_token_has_nobody_connect_anew(fleet: Any, loops: Loops, eventually: Any) -> None:
    declare(fleet, "west")
    loops.start()
    eventually(lambda: (WEST, True) in loops.told)
    times, beats = len(loops.told), len(loops.ends.renewed)
    loops.content["west"] = "west+token"
    eventually(lambda: len(loops.ends.renewed) > beats + 3)
    assert len(loops.told) == times
    loops.content["west"] = "elsewhere"
    eventually(lambda: len(loops.told) > times)


def test_who_is_given_up_while_the_other_one_is_slow_to_answer_moves_once_it_does(
    fleet: Any, quick: Loops, eventually: Any
) -> None:
    """A silence that ends with the very answer that it began with stands in no status, and was decided on."""
    loops = quick
    key = declare(fleet, "east", "west")
    loops.start()
    eventually(lambda: loops.available("infra0", "aws") == 2)
    first = eventually(lambda: decided(fleet, key))
    gone, slow, other = ("west", "east", EAST) if first == WEST else ("east", "west", WEST)
    with loops.clusters[slow].hanging():
        eventually(lambda: loops.heartbeats.seen(other).sight is Sight.SILENT)
        loops.clusters[gone].dead = True
        eventually(lambda: "has not answered for longer" in str(fleet.get(key)["status"]))
        eventually(lambda: loops.available("infra0", "aws") == 0)
        assert decided(fleet, key) == first
    eventually(lambda: decided(fleet, key) == other)
    eventually(lambda: loops.available("infra0", "aws") == 1)


def test_one_whose_silence_was_noted_in_the_midst_of_a_slow_answer_is_ready_after_it(
    fleet: Any, quick: Loops, eventually: Any
) -> None:
    loops = quick
    declare(fleet, "west")
    loops.start()
    target = fleet.key("synctargets", "infra0", "west")

    def ready() -> str:
        found = conditions.get((fleet.get(target).get("status") or {}).get("conditions"), "Ready")
        return str(found and found["status"])

    eventually(lambda: ready() == "True" and loops.beats_without_a_write(eventually))
    with loops.clusters["west"].hanging():
        eventually(lambda: loops.heartbeats.seen(WEST).sight is Sight.SILENT)
        fleet.put("synctargets", "infra0", "west", labels={"cloud": "aws", "an": "edit"}, spec={})
        eventually(lambda: ready() == "False")
    eventually(lambda: ready() == "True")


def test_silence_is_counted_from_when_there_was_a_way_in(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    heartbeats = Heartbeats(60)
    heartbeats.shut("t", "CredentialsMissing", "no Secret")
    now[0] = 3600.0
    heartbeats.shut("t", "CredentialsMissing", "no Secret")
    assert heartbeats.seen("t").sight is Sight.SHUT
    now[0] = 3620.0
    heartbeats.failed("t", "connection refused")
    seen = heartbeats.seen("t")
    assert (seen.sight, seen.silent) == (Sight.UNKNOWN, 20.0)
    now[0] = 3661.0
    assert heartbeats.seen("t").sight is Sight.SILENT


def test_sync_targets_and_locations_say_what_they_ask_for_in_vain(fleet: Any, loops: Loops, eventually: Any) -> None:
    target = fleet.put("synctargets", "infra0", "west", spec={"cells": {"rack": "1"}})
    labels = [{"key": "rack", "values": ["1"]}]
    location = fleet.put("locations", "infra0", "aws", spec={"instanceSelector": {}, "availableSelectorLabels": labels})
    loops.start()

    def told(key: Key) -> str:
        found = conditions.get((fleet.get(key).get("status") or {}).get("conditions"), "Supported")
        return str(found and found["message"])

    def since(key: Key) -> str:
        found = conditions.get(fleet.get(key)["status"]["conditions"], "Supported")
        assert found is not None
        return str(found["lastTransitionTime"])

    eventually(lambda: "spec.cells" in told(target) and "spec.availableSelectorLabels" in told(location))
    for key in (target, location):
        assert since(key) == fleet.get(key)["metadata"]["creationTimestamp"]
    fleet.put("synctargets", "infra0", "west", spec={})
    fleet.put("locations", "infra0", "aws", spec={"instanceSelector": {}})
    eventually(lambda: (told(target), told(location)) == ("None", "None"))
    assert "conditions" not in fleet.get(location)["status"]
    before = clock.now()
    fleet.put("locations", "infra0", "aws", spec={"instanceSelector": {}, "availableSelectorLabels": labels})
    eventually(lambda: "spec.availableSelectorLabels" in told(location))
    assert since(location) >= before
