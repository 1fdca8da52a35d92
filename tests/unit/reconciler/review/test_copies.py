"""What a change does to copies on sync targets: which get, change or lose what, and by which rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.moving import moving, uid_of
from support.syncedfleet import FREE, INFRA, SHOP, SyncedFleet, config, namespace, placement

from reconciler.commands.diff import compare
from reconciler.review.result import ChangeReview

WEST, EAST = "root:infra:west", "root:infra:east"
Copies = set[tuple[str, str, str]]


@pytest.fixture
def synced(tmp_path: Path, eventually: Any) -> Iterator[SyncedFleet]:
    """What root:shop has runs on west, as the status branch says; east is ready, too. No server runs any more."""
    fleet = SyncedFleet(tmp_path / "fleet")
    fleet.begin()
    west = fleet.clusters["west"]
    eventually(lambda: west.names("deployments") and "settings" in west.names("configmaps"))
    eventually(lambda: fleet.condition(fleet.target("east"), "Ready").get("status") == "True")
    fleet.stop()
    fleet.fleet.publish()
    yield fleet
    fleet.close()


class Proposing:
    def __init__(self, synced: SyncedFleet) -> None:
        self.repo, self.served = synced.fleet.repo, synced.fleet.repo.head
        self.fleet = synced.fleet

    def shop(self, **files: str | None) -> ChangeReview:
        return self.files({f"{SHOP}/{name}.yaml": text for name, text in files.items()})

    def files(self, files: dict[str, str | None]) -> ChangeReview:
        self.repo.commit(files)
        return compare(self.repo.path, f"{self.served}...main")


@pytest.fixture
def proposed(synced: SyncedFleet) -> Proposing:
    return Proposing(synced)


def copies(review: ChangeReview) -> Copies:
    return {(each.target, copy.verb, str(copy.object)) for each in review.targets for copy in each.copies}


def whys(review: ChangeReview) -> set[str]:
    return {copy.why for each in review.targets for copy in each.copies}


def test_a_copy_follows_its_object(proposed: Proposing) -> None:
    review = proposed.shop(settings=config("settings", a="c"), web=None, more=config("more"))
    assert copies(review) == {
        (WEST, "changes", "ConfigMap web/settings"),
        (WEST, "loses", "Deployment web/web"),
        (WEST, "gets", "ConfigMap web/more"),
    }
    held = "runs on sync target root:infra:west, which Location west of root:infra holds"
    assert {"it is deleted", f"{held} (selected by spec.locationSelectors)"} == whys(review)
    assert not review.notes


def test_a_placement_that_means_another_location_moves_all(proposed: Proposing) -> None:
    review = proposed.shop(placement=placement(where="east"))
    both = ("ConfigMap web/settings", "Deployment web/web")
    assert copies(review) == {(EAST, "gets", each) for each in both} | {(WEST, "loses", each) for each in both}
    assert any("copies on root:infra:west are removed once all is healthy here" in why for why in whys(review))


def test_a_location_that_means_another_target_moves_whoever_runs_there(proposed: Proposing) -> None:
    """Whose Placements are not touched: they are found by the workspace that they name."""
    kept = "\n---\n".join(
        text.replace("matchLabels: {name: west}", "matchLabels: {name: east}") if "kind: Location" in text else text
        for text in proposed.repo.files(proposed.served)[f"{INFRA}/west.yaml"].split("\n---\n")
    )
    review = proposed.files({f"{INFRA}/west.yaml": kept})
    assert (EAST, "gets", "Deployment web/web") in copies(review)
    assert (WEST, "loses", "Deployment web/web") in copies(review)


def test_a_namespace_that_is_selected_no_more(proposed: Proposing) -> None:
    review = proposed.shop(namespace=namespace(app="other"))
    assert copies(review) == {(WEST, "loses", "ConfigMap web/settings"), (WEST, "loses", "Deployment web/web")}
    assert whys(review) == {f"no Placement has its namespace run on {WEST} any more"}


def test_a_placement_that_selects_no_location_keeps_what_it_has_and_is_a_warning(proposed: Proposing) -> None:
    review = proposed.shop(placement=placement(where="nowhere"), more=config("more"))
    assert copies(review) == {(WEST, "gets", "ConfigMap web/more")}
    [warning] = review.warnings
    assert (warning.path, warning.file) == ("root:shop", f"{SHOP}/placement.yaml")
    assert "matches no Location of root:infra (there: east, west)" in warning.text
    new = proposed.shop(placement=placement(), second=placement("second", "nowhere", "more"))
    assert ["second" in each.text for each in new.warnings] == [True]


def test_a_target_that_goes_while_it_holds_copies_is_held(proposed: Proposing) -> None:
    review = proposed.files({f"{INFRA}/west.yaml": None})
    [refused] = review.refused.values()
    assert "it holds copies" in refused.why
    assert not copies(review)


def test_a_workspace_that_goes_takes_its_copies(proposed: Proposing) -> None:
    review = proposed.files({SHOP: None})
    assert copies(review) == {(WEST, "loses", "ConfigMap web/settings"), (WEST, "loses", "Deployment web/web")}
    assert whys(review) == {"it is deleted"}


def test_a_workspace_that_moves_keeps_them(proposed: Proposing) -> None:
    uid = uid_of(proposed.fleet, "root:shop")
    files = moving(proposed.fleet, SHOP, "workspaces/root/store", uid)
    said = FREE.replace("metadata: {", f"metadata: {{uid: {uid}, ")
    review = proposed.files({**files, "workspaces/root/store/workspace.yaml": said})
    assert not review.holds
    assert not copies(review)


def test_what_is_not_synced_has_no_copy(proposed: Proposing) -> None:
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: web}\nrules: []\n"
    elsewhere = config("elsewhere", "default", a="b")
    assert not copies(proposed.shop(role=role, elsewhere=elsewhere))


@pytest.mark.parametrize(
    "files",
    [
        {"settings": config("settings", a="c"), "web": None, "more": config("more", a="b")},
        {"placement": placement(where="east")},
        {"namespace": namespace(app="other")},
        {"placement": placement(where="nowhere"), "more": config("more", a="b")},
        {"placement": placement(where="east"), "settings": None, "more": config("more", a="b")},
    ],
    ids=["objects", "location", "selector", "nowhere", "all at once"],
)
def test_what_is_foreseen_of_copies_is_what_happens(
    synced: SyncedFleet, proposed: Proposing, eventually: Any, files: dict[str, str | None]
) -> None:
    """Once a server has served it, each target has what it has without it, and what it was to get, but not what it was
    to lose."""
    found = copies(proposed.shop(**files))
    before = {side: held(synced, side) for side in ("west", "east")}
    synced.start()
    synced.fleet.load()
    for side, target in (("west", WEST), ("east", EAST)):
        gets = {name for where, verb, name in found if (where, verb) == (target, "gets")}
        loses = {name for where, verb, name in found if (where, verb) == (target, "loses")}
        wanted = (before[side] | gets) - loses
        eventually(lambda side=side, wanted=wanted: held(synced, side) == wanted, 60)
    synced.stop()


def held(synced: SyncedFleet, side: str) -> set[str]:
    cluster = synced.clusters[side]
    kinds = {"configmaps": "ConfigMap", "deployments": "Deployment"}
    names = {f"{kind} web/{name}" for resource, kind in kinds.items() for name in cluster.names(resource)}
    return {name for name in names if "treeplane" not in name}
