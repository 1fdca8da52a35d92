"""What comes of a program takes nothing of other workspaces where whoever pushes is asked about that: a commit does not
wait for programs, so nobody could be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.loadedfleet import configmap
from support.offering import OFFERED, R
from support.ownedfleet import OwnedFleet, granting
from support.recoveries import assert_same
from support.shipped import WORKLOAD
from support.shipped import binding as shipped
from support.widgets import binding, export, schema

from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loader

RENDERS = FakeRenders()
PLACE = f"{R}/a/k"
TAKES = {f"{PLACE}/kustomization.yaml": "resources: [x.yaml, take.yaml]\n", f"{PLACE}/x.yaml": configmap("x")}
REFUSED = (
    f"{PLACE}/kustomization.yaml: APIBinding widgets takes something of root:b, and comes of kustomize: where "
    "spec.safety.owners is true, that has to be written as it is (write it in a file of its own, outside of what is "
    "rendered)"
)


class RenderingFleet(OwnedFleet):
    """`renders` does not change with the fleet."""

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        self.renders = RENDERS
        return super().new_loader(branch)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., RenderingFleet]]:
    made: list[RenderingFleet] = []

    def new(like: OwnedFleet | None = None) -> RenderingFleet:
        made.append(RenderingFleet(tmp_path / f"fleet{len(made)}", like))
        return made[-1]

    yield new
    for each in made:
        each.close()


def test_a_binding_that_a_program_writes_is_held_whoever_pushed_it(make: Callable[..., RenderingFleet]) -> None:
    fleet = make()
    # alice may bind it: it is for what nobody can look at that she is refused.
    fleet.begin({**OFFERED, f"{R}/b/takers.yaml": granting("bind", "apiexports.apis.kcp.io", "alice")})
    fleet.push("alice", {**TAKES, f"{PLACE}/take.yaml": binding("root:b")})
    assert fleet.held() == {"root:a": [REFUSED]}
    fleet.publish()
    again = make(fleet)
    again.load(again.recorded())
    assert_same(again, fleet)
    fleet.push("alice", {f"{PLACE}/kustomization.yaml": "resources: [x.yaml]\n"})
    assert fleet.held() == {}
    fleet.push("alice", {f"{R}/a/take.yaml": binding("root:b")})
    assert fleet.held() == {}


def test_what_cannot_be_rendered_when_it_is_pushed_is_not_taken_later(make: Callable[..., RenderingFleet]) -> None:
    fleet = make()
    fleet.begin(OFFERED)
    RENDERS.fails.add(PLACE)
    try:
        fleet.push("alice", {**TAKES, f"{PLACE}/take.yaml": binding("root:b")})
        assert "there is no program here" in fleet.held()["root:a"][0]
    finally:
        RENDERS.fails.clear()
    fleet.recheck(["root:a"])
    assert fleet.held() == {"root:a": [REFUSED]}


def test_what_a_workspace_takes_of_itself_may_be_rendered(make: Callable[..., RenderingFleet]) -> None:
    fleet = make()
    fleet.begin(OFFERED)
    own = {f"{R}/a/schema.json": schema(), f"{R}/a/export.json": export()}
    fleet.push("alice", {**own, **TAKES, f"{PLACE}/take.yaml": binding("root:a")})
    assert fleet.held() == {}


def test_what_ships_may_be_taken_by_what_is_rendered(make: Callable[..., RenderingFleet]) -> None:
    fleet = make()
    fleet.begin(OFFERED)
    fleet.push("alice", {**TAKES, f"{PLACE}/take.yaml": shipped(WORKLOAD)})
    assert fleet.held() == {}


def test_what_was_served_before_anybody_was_asked_stays(make: Callable[..., RenderingFleet]) -> None:
    fleet = make()
    fleet.begin({**OFFERED, **TAKES, f"{PLACE}/take.yaml": binding("root:b")})
    assert fleet.held() == {}
    fleet.push("alice", {f"{PLACE}/x.yaml": configmap("x", a="c")})
    assert fleet.held() == {}
    fleet.recheck(["root:a"])
    assert fleet.held() == {}
