"""Small commits go before the rest of a large one, and all ends as if each had waited for its turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML
from support.happenings import PUSHES, Happening
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import Another, assert_same

from apiserver.model.commits import CommitRef, own
from reconciler.commands import answers
from reconciler.loading.pauses import Pauses

R = "workspaces/root"
Files = dict[str, str | None]

MANY: Files = {f"{R}/m{number}/{name}": text for number in range(6) for name, text in (
    ("workspace.yaml", ""), ("app.yaml", configmap()),
)}  # fmt: skip


def at_pauses(fleet: LoadedFleet, work: Callable[[int], Any]) -> None:
    """Calls `work` with the number of each pause of what is loaded from here on."""
    count = iter(range(1_000_000))
    fleet.loader.pauses = Pauses(lambda: 0.0, 0.0)
    fleet.loader.meanwhile = lambda: work(next(count))


def overtaking(happening: Happening, pushes: dict[int, list[Files]]) -> None:
    """While something is loaded, these are pushed at these pauses; what is left of them afterwards."""

    def work(pause: int) -> None:
        for files in pushes.pop(pause, ()):
            happening.push(files)
        happening.fleet.loader.overtake(own(happening.fleet.repo.head))

    at_pauses(happening.fleet, work)
    happening.fleet.load()
    happening.fleet.loader.meanwhile = None
    for each in pushes.values():
        for files in each:
            happening.push(files)
    happening.fleet.load()


def agree(one: LoadedFleet, other: LoadedFleet) -> None:
    assert_same(one, other)
    for name in ("commit", "error", "claims", "kept", "writes", "arriving"):
        assert getattr(one.fleet(), name) == getattr(other.fleet(), name), name
    assert one.fleet().arriving == ()


NUMBERS = st.integers(0, 23)
NAMES = st.sampled_from([*PUSHES])
LARGE = st.lists(st.tuples(NAMES, NUMBERS), min_size=1, max_size=5)
LATER = st.lists(st.tuples(st.integers(0, 12), NAMES, NUMBERS), max_size=6)


@contextmanager
def stores(factory: pytest.TempPathFactory) -> Iterator[tuple[LoadedFleet, LoadedFleet]]:
    folder = factory.mktemp("overtaking")
    first = LoadedFleet(folder / "one")
    second = LoadedFleet(folder / "two", repo=first.repo, keys=first.keys)
    try:
        yield first, second
    finally:
        first.close()
        second.close()


def merged(large: list[tuple[str, int]]) -> Files:
    out: Files = {**MANY, f"{R}/b/large.yaml": configmap("large"), f"{R}/large.yaml": configmap("large")}
    for name, number in large:
        out |= PUSHES[name](number)
    return out


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(LARGE, LATER)
@example([("provide", 0)], [(0, "space", 0), (0, "remove space", 0)])
@example([("change", 0)], [(0, "rename", 0), (1, "rename", 1), (0, "change", 0)])
@example([("withdraw", 0), ("unbind", 1), ("bind", 0)], [(0, "change", 0)])
def test_what_overtakes_ends_as_what_waited(
    tmp_path_factory: pytest.TempPathFactory, large: list[tuple[str, int]], later: list[tuple[int, str, int]]
) -> None:
    with stores(tmp_path_factory) as (one, other):
        happening = Happening(one)
        happening.begin()
        other.load()
        happening.push(merged(large))
        pushes: dict[int, list[Files]] = {}
        for pause, name, number in later:
            pushes.setdefault(pause, []).append(PUSHES[name](number))
        overtaking(happening, pushes)
        other.load()
        agree(one, other)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(LARGE, LATER, st.integers(0, 25))
def test_a_server_that_dies_while_it_is_overtaken_ends_as_one_that_did_not(
    tmp_path_factory: pytest.TempPathFactory,
    large: list[tuple[str, int]],
    later: list[tuple[int, str, int]],
    writes: int,
) -> None:
    with stores(tmp_path_factory) as (one, other):
        happening = Happening(one)
        happening.begin()
        other.load()
        happening.push(merged(large))
        pushes: dict[int, list[Files]] = {}
        for pause, name, number in later:
            pushes.setdefault(pause, []).append(PUSHES[name](number))

        def work(pause: int) -> None:
            for files in pushes.pop(pause, ()):
                happening.push(files)
            one.loader.overtake(own(one.repo.head))

        at_pauses(one, work)
        happening.die(writes)
        one.load()
        other.load()
        agree(one, other)


def test_a_change_is_there_before_the_rest_of_a_large_commit(empty: LoadedFleet, another: Another) -> None:
    happening = Happening(empty)
    happening.begin()
    happening.push(merged([]))
    seen: list[tuple[bool, bool]] = []
    told: list[list[str]] = []

    def work(pause: int) -> None:
        if pause == 1:
            happening.push({f"{R}/a/small.yaml": configmap("small"), f"{R}/m5/app.yaml": configmap(n="small")})
            happening.push({f"{R}/new/workspace.yaml": "", f"{R}/new/app.yaml": configmap()})
        loaded = empty.loader.overtake(own(empty.repo.head))
        told.extend([*answers.told(loaded)] for _ in range(loaded is not None))
        small = empty.store.get(empty.key("root:a", "configmaps", "small", "default")) is not None
        seen.append((small and empty.record("root:new") is not None, "root:m4" in empty.paths()))

    at_pauses(empty, work)
    loaded = empty.load()
    assert seen[1] == (True, False)
    assert [step.judged > 0 for step in loaded.steps] == [True, True, True]
    assert [lines[0] for lines in told] == [f"commit {empty.repo.head:.10} is served: 1 created, 2 configured"]
    other = another(empty, "other", keys=empty.keys)
    other.load()
    assert empty.fleet().commit == other.fleet().commit
    assert empty.held() == {}


@pytest.mark.parametrize(
    "files",
    [
        {"treeplane.yaml": TREEPLANE_YAML + "spec: {safety: {maxDeletedObjects: 3}}\n"},
        {f"{R}/b": None},
        {f"{R}/b/workspace.yaml": None},
        {f"{R}/n{number}/workspace.yaml": "" for number in range(1001)},
    ],
    ids=["the fleet's settings", "the end of a workspace", "a workspace.yaml that goes", "another large one"],
)
def test_what_concerns_all_waits_for_its_turn(empty: LoadedFleet, files: Files) -> None:
    happening = Happening(empty)
    happening.begin()
    happening.push(merged([]))
    large = own(empty.repo.head)
    tips: list[CommitRef] = []

    def work(pause: int) -> None:
        if pause == 0:
            happening.push(files)
            happening.push({f"{R}/a/small.yaml": configmap("small")})
        empty.loader.overtake(own(empty.repo.head))
        tips.append(empty.loader.tip().commit)

    at_pauses(empty, work)
    empty.load()
    assert set(tips[:5]) == {large}
    assert empty.fleet().commit == own(empty.repo.head)


def test_a_provider_waits_and_so_does_who_asks_for_it(empty: LoadedFleet) -> None:
    happening = Happening(empty)
    happening.begin()
    happening.push(merged([]))
    found: list[Any] = []

    def work(pause: int) -> None:
        if pause == 0:
            happening.push(PUSHES["provide"](4) | PUSHES["bind twice"](1) | {f"{R}/c/x.yaml": configmap("x")})
        empty.loader.overtake(own(empty.repo.head))
        names = {key.name for key in empty.everything()}
        found.append(("v0" in {n.partition(".")[0] for n in names}, "x" in names))

    at_pauses(empty, work)
    empty.load()
    assert found[0][1]
    assert not found[0][0]
    assert empty.fleet().commit == own(empty.repo.head)


def test_half_of_the_time_is_the_large_commits() -> None:
    clock = [0.0]
    pauses, done = Pauses(lambda: clock[0], 0.5), list[float]()

    def work() -> None:
        done.append(clock[0])
        clock[0] += 3
        pauses.take(work)  # a pause within a pause is none

    for _ in range(20):
        pauses.take(work)
        clock[0] += 1
    assert done[:4] == [0, 6, 12, 18]


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(LARGE, LATER, st.integers(0, 12))
@example([("move", 0)], [(0, "use defined", 0)], 0)
@example([("provide", 0), ("leave behind", 2)], [], 1)
@example([("change", 0)], [(0, "take each other's", 0), (0, "withdraw", 0)], 9)
@example([("turn", 1)], [(0, "break", 0)], 0)
@example([("withdraw", 0), ("unbind", 1), ("bind", 0)], [(0, "change", 0)], 0)
def test_what_is_recorded_while_a_commit_is_overtaken_recovers_what_ran_on(
    tmp_path_factory: pytest.TempPathFactory,
    large: list[tuple[str, int]],
    later: list[tuple[int, str, int]],
    recorded: int,
) -> None:
    with stores(tmp_path_factory) as (one, other):
        happening = Happening(one)
        happening.begin()
        happening.push(merged(large))
        pushes: dict[int, list[Files]] = {}
        for pause, name, number in later:
            pushes.setdefault(pause, []).append(PUSHES[name](number))

        def work(pause: int) -> None:
            for files in pushes.pop(pause, ()):
                happening.push(files)
            one.loader.overtake(own(one.repo.head))
            if pause == recorded:
                one.publish()

        at_pauses(one, work)
        one.load()
        one.loader.meanwhile = None
        one.load()
        found = other.recorded()
        assert found is not None
        other.load(found)
        assert_same(other, one, at=False)
