"""Who is judged again for what he has rendered, and when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.loadedfleet import A, B, LoadedFleet, configmap

from reconciler.loading.renderedagain import RenderedAgain

PLACES = (f"{A}/k", f"{B}/k")


class Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def renders() -> FakeRenders:
    return FakeRenders()


@pytest.fixture
def fleet(tmp_path: Path, renders: FakeRenders) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet", renders=renders)
    files = {f"{place}/kustomization.yaml": "resources: [x.yaml]\n" for place in PLACES}
    made.begin({**files, **{f"{place}/x.yaml": configmap("x") for place in PLACES}})
    assert made.held() == {}
    yield made
    made.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def again(fleet: LoadedFleet, clock: Clock) -> RenderedAgain:
    return RenderedAgain(fleet.store, fleet.loader.sources, lambda: fleet.loader.tree_at(fleet.fleet()), clock)


def test_in_a_quiet_fleet_there_is_nobody(again: RenderedAgain, clock: Clock) -> None:
    assert again.due() == set()
    clock.at = 10_000.0
    assert again.due() == set()


def test_other_programs_have_all_judged_once(fleet: LoadedFleet, again: RenderedAgain, renders: FakeRenders) -> None:
    assert again.due() == set()
    renders.stamp = "2"
    assert again.due() == {"root:a", "root:b"}
    fleet.recheck(["root:a", "root:b"])
    assert again.due() == set()
    assert fleet.find("root:a", "configmaps", "version-2") is not None


def test_who_has_to_be_waited_for_is_named_later(again: RenderedAgain, renders: FakeRenders) -> None:
    again.due()
    renders.stamp, renders.slow = "2", {PLACES[0]}
    assert again.due() == {"root:b"}
    assert again.due() == set()
    renders.go_on()
    assert again.due() == {"root:a"}


def test_what_fails_is_tried_ever_more_seldom(
    fleet: LoadedFleet, again: RenderedAgain, clock: Clock, renders: FakeRenders
) -> None:
    again.due()
    renders.fails = {PLACES[0]}
    fleet.commit({f"{PLACES[0]}/x.yaml": configmap("x", v="2")})
    times = []
    while clock.at < 2000:
        clock.at += 10
        for path in again.due():
            times.append(clock.at)
            fleet.recheck([path])
    assert times == [30.0, 60.0, 120.0, 240.0, 480.0, 960.0, 1920.0]
    renders.fails.clear()
    fleet.recheck(["root:a"])
    renders.fails = {PLACES[1]}
    fleet.commit({f"{PLACES[1]}/x.yaml": configmap("x", v="2")})
    clock.at = 4000.0
    assert again.due() == {"root:b"}
    clock.at = 4030.0
    assert again.due() == {"root:b"}
