"""What a commit takes from a target goes, whenever server and target are there to do it; nothing else does."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.syncedfleet import SyncedFleet, config, namespace, placement

from apiserver.model import marks
from apiserver.model.identity import sync_target_key
from apiserver.model.kinds import GroupResource
from apiserver.registry.served import ServedKind
from reconciler.loading.case import Case, Verdict
from reconciler.loading.judge import Judge
from reconciler.loading.placed import Placed
from reconciler.syncing.apply import Applier
from reconciler.syncing.upstream import Item, Outrun


@pytest.fixture
def synced(tmp_path: Path) -> Iterator[SyncedFleet]:
    made = SyncedFleet(tmp_path / "synced")
    yield made
    made.close()


def runs(fleet: SyncedFleet, *names: str, on: str = "west") -> Callable[[], bool]:
    return lambda: fleet.clusters[on].names("configmaps") - {"treeplane-inventory"} == set(names)


def placed(fleet: SyncedFleet, commit: str = "") -> bool:
    """The inventory names the commit."""
    west = fleet.clusters["west"]
    held = "treeplane-inventory" in west.names("configmaps") and west.find("configmaps", "treeplane-inventory")["data"]
    return bool(held) and held["commit"] == (commit or str(fleet.fleet.record("root:shop").commit))


def runs_on(fleet: SyncedFleet) -> str:
    """What the Namespace says of targets, which another thread writes than the one that brings up what they say."""
    return str(fleet.namespace()["metadata"].get("annotations", {}).get(marks.RUNS_ON, ""))


HOW = {
    "its Placement": {"placement": None},
    "its label": {"namespace": namespace(app="other")},
    "the selector": {"placement": placement(app="other")},
    "the namespace": {"namespace": None, "web": None, "settings": None},
}


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("when", ["at once", "target away", "server away", "store lost", "both, and the store lost"])
def test_what_a_commit_took_away_goes_whenever_that_was(
    how: str, when: str, synced: SyncedFleet, eventually: Any
) -> None:
    synced.begin()
    eventually(lambda: runs(synced, "settings")() and placed(synced))
    west = synced.clusters["west"]
    west.away = when in ("target away", "both, and the store lost")
    if when not in ("at once", "target away"):
        synced.stop()
    synced.commit(**HOW[how])
    if "store lost" in when:
        synced.lose()
    elif when == "server away":
        synced.start()
    if west.away:
        eventually(lambda: synced.syncing is not None)
        assert runs(synced, "settings")()
        west.away = False
    eventually(lambda: not west.names("namespaces"))
    assert not west.names("deployments")


def test_a_namespace_stays_while_it_cannot_be_seen_whether_others_keep_something_there(
    synced: SyncedFleet, eventually: Any, caplog: pytest.LogCaptureFixture
) -> None:
    synced.begin()
    eventually(lambda: runs(synced, "settings")() and placed(synced))
    west = synced.clusters["west"]
    west.unseen.add("networkpolicies")
    synced.commit(placement=None)
    eventually(lambda: "cannot be seen whether others keep something in it" in caplog.text)
    assert runs(synced)()
    assert west.names("namespaces")
    west.unseen.clear()
    eventually(lambda: not west.names("namespaces"))


def test_its_objects_lose_their_status_and_the_namespace_says_why(synced: SyncedFleet, eventually: Any) -> None:
    synced.begin()
    eventually(lambda: (synced.deployment() or {}).get("status", {}).get("availableReplicas") == 2)
    eventually(lambda: runs_on(synced) == sync_target_key(synced.fleet.record("root:infra").cluster, "west"))
    west = synced.clusters["west"]
    west.away = True
    synced.commit(placement=None)

    def told() -> str:
        found = synced.condition(synced.namespace(), "NamespaceScheduled")
        return str(found["message"]) if found.get("reason") == "NotSelected" else ""

    eventually(lambda: "sync target root:infra:west may still have copies of it" in told())
    assert (synced.deployment() or {})["status"]["availableReplicas"] == 2, "it may still be so"
    west.away = False
    eventually(lambda: not (synced.deployment() or {}).get("status"))
    eventually(lambda: told() == "no Placement of its workspace selects it, so it runs nowhere")
    assert marks.RUNS_ON not in synced.namespace()["metadata"]["annotations"]
    synced.commit(placement=placement())
    eventually(lambda: (synced.deployment() or {}).get("status", {}).get("availableReplicas") == 2)
    eventually(lambda: synced.condition(synced.namespace(), "NamespaceScheduled")["status"] == "True")


def test_a_status_outlives_a_silent_target_and_a_loss_and_no_withdrawal(synced: SyncedFleet, eventually: Any) -> None:
    synced.begin()
    eventually(lambda: (synced.deployment() or {}).get("status", {}).get("availableReplicas") == 2)
    eventually(lambda: runs_on(synced))
    west = synced.clusters["west"]
    west.away = True
    synced.lose()
    assert (synced.deployment() or {})["status"]["availableReplicas"] == 2
    synced.commit(placement=None)
    eventually(lambda: synced.condition(synced.namespace(), "NamespaceScheduled").get("reason") == "NotSelected")
    assert (synced.deployment() or {})["status"]["availableReplicas"] == 2
    synced.lose()
    west.away = False
    eventually(lambda: not west.names("namespaces"))
    eventually(lambda: not (synced.deployment() or {}).get("status"))


def test_what_moves_by_its_label_goes_when_it_is_healthy_where_it_runs_now(
    synced: SyncedFleet, eventually: Any
) -> None:
    synced.begin(**{"workspaces/root/shop/second.yaml": placement("second", "east", "other")})
    eventually(lambda: runs(synced, "settings")() and placed(synced))
    east = synced.clusters["east"]
    east.away = True
    synced.commit(namespace=namespace(app="other"))
    assert synced.syncing is not None
    syncer = synced.syncing.syncers()[sync_target_key(synced.fleet.record("root:infra").cluster, "west")]
    waits = GroupResource("", "configmaps")
    eventually(lambda: any(item.kind == waits for item in syncer.queue.pending()), what="it waits for the other")
    assert not [word for word in synced.clusters["west"].writes if word.startswith("-")]
    east.away = False
    eventually(lambda: runs(synced, "settings", on="east")() and not synced.clusters["west"].names("namespaces"))


def test_what_no_commit_explains_is_reported_and_stays(synced: SyncedFleet, eventually: Any) -> None:
    """The branch is another one, which knows of no such Placement: nobody took anything away."""
    synced.begin()
    eventually(lambda: runs(synced, "settings")() and placed(synced))
    west = synced.clusters["west"]
    inventory = west.find("configmaps", "treeplane-inventory")
    where = f"/api/v1/namespaces/{inventory['metadata']['namespace']}/configmaps/treeplane-inventory"
    synced.stop()
    for commit in ("0" * 40, ""):
        body = {**inventory, "data": {**inventory["data"], "commit": commit}}
        body["metadata"] = {
            k: v for k, v in body["metadata"].items() if k in ("name", "namespace", "labels", "annotations")
        }
        west.write(where, body, dry_run=False)
        synced.commit(placement=None)
        synced.start()

        def unexplained() -> bool:
            return "configmaps web/settings" in str(synced.condition(synced.target(), "InventoryExplained"))

        eventually(unexplained)
        assert runs(synced, "settings")()
        synced.stop()


@pytest.mark.parametrize("what", ["nothing", "its Placement", "the namespace"])
def test_a_workspace_that_is_not_served_takes_nothing_away(
    what: str, synced: SyncedFleet, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a recovery that could not bring it back it stands there with nothing in it, which is no deletion, whatever
    the head says."""
    synced.begin()
    west = synced.clusters["west"]
    eventually(lambda: runs(synced, "settings")() and placed(synced) and west.names("deployments"))
    judge = Judge.judge

    def fails(self: Judge, case: Case) -> Verdict:
        if case.path == "root:shop":
            raise ZeroDivisionError
        return judge(self, case)

    with monkeypatch.context() as broken:
        broken.setattr(Judge, "judge", fails)
        before = len(west.writes)
        synced.lose()
        assert not synced.fleet.record("root:shop").served
        synced.commit(**HOW.get(what, {"more": config("more", c="d")}))
        eventually(lambda: "configmaps web/settings" in str(synced.condition(synced.target(), "InventoryExplained")))
        assert west.writes[before:] == []
    # Once it is brought back, what the head says counts.
    synced.commit(other=config("other", "default"))
    eventually(runs(synced, "settings", "more") if what == "nothing" else runs(synced))


def test_what_nothing_explained_is_looked_at_again_when_the_workspace_places_otherwise(
    synced: SyncedFleet, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long ago that was: a Placement may come and go before its decision is on record."""
    synced.begin()
    west = synced.clusters["west"]
    eventually(lambda: runs(synced, "settings")() and placed(synced) and west.names("deployments"))
    synced.stop()
    explained = False
    withdrawn = Placed.withdrawn
    monkeypatch.setattr(Placed, "withdrawn", lambda self, *what: explained and withdrawn(self, *what))
    synced.commit(placement=None)
    synced.start()
    key = sync_target_key(synced.fleet.record("root:infra").cluster, "west")

    def given_up() -> bool:
        syncer = synced.syncing.syncers().get(key) if synced.syncing is not None else None
        return syncer is not None and min(syncer.site.ledger.leftovers.values(), default=0) > 6

    eventually(given_up, 20)
    explained = True
    assert runs(synced, "settings")()
    synced.commit(second=placement("second", "east", "other"))
    eventually(lambda: not west.names("namespaces"))


def test_nothing_is_written_that_the_inventorys_commit_does_not_know(
    synced: SyncedFleet, eventually: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object is on its way while a commit takes it out of git, and another one, read later, comes first."""
    apply, reading, gone = Applier.apply, threading.Event(), threading.Event()

    def late(self: Applier, item: Item, kind: ServedKind, obj: dict[str, Any], commit: str) -> None:
        if item.name == "web" and not gone.is_set():
            raise Outrun("let the other be read first")
        if item.name == "settings":
            reading.set()
            gone.wait(60)
            eventually(lambda: "treeplane-inventory" in synced.clusters["west"].names("configmaps"))
        apply(self, item, kind, obj, commit)

    monkeypatch.setattr(Applier, "apply", late)
    synced.begin()
    assert reading.wait(60)
    synced.commit(settings=None)
    gone.set()
    eventually(lambda: placed(synced))
    assert "+configmaps/settings" not in synced.clusters["west"].writes


def test_a_placement_that_still_places_it_is_no_reason(synced: SyncedFleet, eventually: Any) -> None:
    """Two Placements of one target: the end of one changes nothing."""
    synced.begin(**{"workspaces/root/shop/spare.yaml": placement("spare")})
    eventually(lambda: runs(synced, "settings")() and placed(synced))
    synced.stop()
    synced.commit(placement=None)
    synced.start()
    eventually(lambda: placed(synced))
    eventually(
        lambda: synced.clusters["west"].find("configmaps", "treeplane-inventory")["data"]["placements"] == "spare"
    )
    assert runs(synced, "settings")()


ACTIONS = st.sampled_from(
    ["-placement", "+placement", "-label", "+label", "-settings", "+settings", "-more", "+more",
     "stop", "start", "away", "back", "lose"]
)  # fmt: skip
EDITS: dict[str, dict[str, str | None]] = {
    "-placement": {"placement": None}, "+placement": {"placement": placement()},
    "-label": {"namespace": namespace(app="other")}, "+label": {"namespace": namespace(app="web")},
    "-settings": {"settings": None}, "+settings": {"settings": config("settings", a="b")},
    "-more": {"more": None}, "+more": {"more": config("more", c="d")},
}  # fmt: skip


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=st.lists(ACTIONS, max_size=10))
def test_whatever_happens_in_whatever_order_targets_end_as_git_says(
    actions: list[str], tmp_path: Path, eventually: Any
) -> None:
    synced = SyncedFleet(tmp_path / "history")
    try:
        synced.begin()
        west, there = synced.clusters["west"], {"placement", "label", "settings"}
        for action in actions:
            match action:
                case "stop":
                    synced.stop()
                case "start":
                    synced.start()
                case "lose":
                    synced.lose()
                case "away" | "back":
                    west.away = action == "away"
                case _:
                    there = there - {action[1:]} if action[0] == "-" else there | {action[1:]}
                    synced.commit(**EDITS[action])
        west.away = False
        synced.start()
        wanted = there & {"settings", "more"} if {"placement", "label"} <= there else set()
        eventually(runs(synced, *wanted), 20, f"{sorted(wanted)} after {actions}")
        if not wanted:
            eventually(lambda: {"placement", "label"} <= there or not west.names("namespaces"), 20, str(actions))
        eventually(lambda: synced.condition(synced.target(), "InventoryExplained").get("status", "True") == "True")
        if not {"placement", "label"} <= there:
            eventually(lambda: not (synced.deployment() or {}).get("status"))
        # Whichever commit the inventory names, git tells from there what goes while nobody is there.
        synced.stop()
        synced.commit(**dict.fromkeys(wanted))
        synced.start()
        eventually(runs(synced), 20, f"nothing after {actions}")
    finally:
        synced.close()
        shutil.rmtree(tmp_path / "history")
