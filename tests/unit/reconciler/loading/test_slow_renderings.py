"""A rendering that takes long: who needs it is judged last, and others go before the rest of its commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.loadedfleet import A, B, LoadedFleet, configmap

from apiserver.model.commits import own
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.expected import TOGETHER, ExpectedRenderings
from reconciler.loading.trial import NotTried, Trial

K = f"{A}/k"
BESIDE = f"{A}/child"


@pytest.fixture
def renders() -> FakeRenders:
    return FakeRenders()


@pytest.fixture
def fleet(tmp_path: Path, renders: FakeRenders) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet", renders=renders)
    made.begin({f"{K}/kustomization.yaml": "resources: [x.yaml]\n", f"{K}/x.yaml": configmap("x", v="1")})
    assert made.held() == {}
    yield made
    renders.go_on()
    made.close()


def test_all_of_a_commit_are_begun_before_any_is_waited_for(fleet: LoadedFleet, renders: FakeRenders) -> None:
    renders.expected.clear()
    fleet.commit({f"{place}/x.yaml": configmap("x", v="2") for place in (K,)} | {f"{B}/app.yaml": configmap(a="c")})
    assert renders.expected == [K]


def test_what_a_workspace_renders_has_so_long_together(fleet: LoadedFleet, renders: FakeRenders) -> None:
    """A few of it are under way at a time; the rest is late once the first has come and time is over."""
    places = [f"{A}/k{number}" for number in range(8)]
    files = {f"{place}/kustomization.yaml": "resources: [x.yaml]\n" for place in places}
    fleet.repo.commit({**files, **{f"{place}/x.yaml": configmap(place[-2:]) for place in places}})
    clock, sources = [0.0], fleet.loader.sources
    expected = ExpectedRenderings(sources, lambda: clock[0])
    renders.expected.clear()
    renders.slow = {*places[1:]}
    tree = WorkspaceTree(fleet.mirror.repository, fleet.mirror.repository.commit(fleet.repo.head).tree)
    expected.begin(tree, [tree.find("root:a")])
    assert renders.expected == [K, *places[:3]]
    assert not expected.is_there("root:a")
    assert renders.expected == [K, *places[:5]]
    clock[0] = TOGETHER
    assert not expected.is_there("root:a")
    clock[0] = TOGETHER + 1
    assert expected.is_there("root:a")
    place = tree.find("root:a")
    assert place is not None
    source = sources.of(tree, place)
    late = {piece.name.split("/")[-2] for piece in source.pieces() if not piece.lasting}
    assert late == {f"k{number}" for number in range(1, 8)}
    expected.begin(tree, [place])
    renders.go_on()
    assert all(piece.lasting for piece in source.pieces())


def test_nobody_waits_for_a_strangers_rendering(fleet: LoadedFleet, renders: FakeRenders) -> None:
    """The rest of its commit is there, and the next commit too, while it is rendered."""
    renders.slow = {K}
    fleet.repo.commit({f"{K}/x.yaml": configmap("x", v="2"), f"{B}/app.yaml": configmap(a="first")})
    first, seen = fleet.repo.head, list[object]()

    def meanwhile() -> None:
        if not seen:
            fleet.repo.commit({f"{B}/app.yaml": configmap(a="second")})
            fleet.loader.overtake(own(fleet.repo.head))
            seen.append(fleet.data("root:b"))
            seen.append(fleet.data("root:a", "x"))
            renders.go_on()

    fleet.loader.meanwhile = meanwhile
    loaded = fleet.loader.load(own(first))
    assert seen == [{"a": "second"}, {"v": "1"}]
    assert fleet.data("root:a", "x") == {"v": "2"}
    assert fleet.data("root:b") == {"a": "second"}
    assert len(loaded.steps) == 2
    assert fleet.fleet().commit == own(fleet.repo.head)


def test_who_is_asked_for_while_it_is_rendered_waits_for_its_turn(fleet: LoadedFleet, renders: FakeRenders) -> None:
    renders.slow = {K}
    fleet.repo.commit({f"{K}/x.yaml": configmap("x", v="2")})
    first, seen = fleet.repo.head, list[object]()

    def meanwhile() -> None:
        if not seen:
            fleet.repo.commit({f"{A}/app.yaml": configmap(a="late")})
            found = fleet.loader.overtake(own(fleet.repo.head))
            seen.extend([found is not None and bool(found.waits_for), fleet.data("root:a")])
            renders.go_on()

    fleet.loader.meanwhile = meanwhile
    fleet.loader.load(own(first))
    assert seen == [True, {"a": "b"}]
    assert fleet.data("root:a") == {"a": "late"}
    assert fleet.data("root:a", "x") == {"v": "2"}


def test_a_push_is_not_judged_where_that_takes_long(fleet: LoadedFleet, renders: FakeRenders) -> None:
    """It is taken then, and judged when it is loaded; nobody who pushes waits for a program."""
    old = fleet.repo.head
    renders.slow = {K}
    new = fleet.repo.commit({f"{K}/x.yaml": configmap("x", v="2")})
    trial = Trial(fleet.loader, fleet.secrets.of, fleet.keys / "identities", seconds=0.2)
    with fleet.store.view() as view, pytest.raises(NotTried, match="it takes longer than is waited for"):
        trial.run(view, fleet.mirror.repository, old, new)
    renders.go_on()
    with fleet.store.view() as view:
        assert not trial.run(view, fleet.mirror.repository, old, new).holds


def test_what_a_workspace_stands_in_is_waited_for_first(fleet: LoadedFleet, renders: FakeRenders) -> None:
    fleet.commit({f"{BESIDE}/workspace.yaml": "", f"{BESIDE}/app.yaml": configmap()})
    renders.slow = {K}
    go_on = threading.Timer(0.2, renders.go_on)
    go_on.start()
    fleet.commit({f"{K}/x.yaml": configmap("x", v="2"), f"{BESIDE}/app.yaml": configmap(a="c")})
    go_on.join()
    assert fleet.held() == {}
    assert fleet.data("root:a", "x") == {"v": "2"}
    assert fleet.data("root:a:child") == {"a": "c"}
