"""Who puts a workspace at the path of one that leaves, or below that, is asked as anywhere: what he may not is held
once the other one has gone, in the running server and after a recovery."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from support.happenings import Happening, Killed
from support.loadedfleet import A, configmap
from support.ownedfleet import ADMIN, OwnedFleet
from support.recoveries import assert_same
from support.settling import Settling, keep
from support.widgets import crd, widget

from apiserver.model.tables import Table

NAME = "widgets.example.io"
DAVES = {f"{A}/workspace.yaml": "", f"{A}/new.yaml": configmap("new")}
KID = {f"{A}/kid/workspace.yaml": "", f"{A}/kid/new.yaml": configmap("new")}


@pytest.fixture
def leaving(tmp_path: Path) -> Iterator[OwnedFleet]:
    """root:a goes, by whoever may, and has a Widget that waits for a finalizer."""
    made = OwnedFleet(tmp_path / "fleet")
    made.begin({f"{A}/crd.json": crd(), f"{A}/w.json": widget(size=1)})
    keep(made, "root:a", "w", NAME)
    made.push(ADMIN, {A: None})
    digest = re.findall(r"Allow-Delete: ([0-9a-f]+)", str(made.held()))
    made.push(ADMIN, {"README.md": "on"}, f"Go\n\nAllow-Delete: {digest[0]}")
    assert made.record("root:a").leaves
    yield made
    made.close()


@pytest.fixture
def both(leaving: OwnedFleet, tmp_path: Path) -> Iterator[Callable[[], list[OwnedFleet]]]:
    """The running server, and one that recovers from what it recorded."""
    made: list[OwnedFleet] = []

    def find() -> list[OwnedFleet]:
        Settling()(leaving)
        leaving.publish()
        made.append(OwnedFleet(tmp_path / f"another{len(made)}", leaving))
        made[-1].load(made[-1].recorded())
        assert_same(leaving, made[-1])
        return [leaving, made[-1]]

    yield find
    for each in made:
        each.close()


def go(fleet: OwnedFleet) -> None:
    Settling().let_go(fleet, "root:a", "w", NAME)


def test_nobody_takes_the_path_of_one_that_leaves(leaving: OwnedFleet, both: Callable[[], list[OwnedFleet]]) -> None:
    done = leaving.pushed("dave", DAVES)
    leaving.load()
    leaving.push(ADMIN, {"README.md": "again"})
    for each in both():
        assert "is being deleted still" in str(each.held()["root:a"])
        go(each)
        assert "pushed by dave" in str(each.held()["root:a"])
        assert each.find("root:a", "configmaps", "new", "default") is None
    leaving.push(ADMIN, {"README.md": "let"}, f"Let him\n\nAllow-Push: {done}")
    assert leaving.held() == {}
    assert leaving.data("root:a", "new") == {"a": "b"}


def test_nor_what_is_below_it(leaving: OwnedFleet, both: Callable[[], list[OwnedFleet]]) -> None:
    leaving.push(ADMIN, DAVES)
    leaving.push("dave", KID)
    for each in both():
        go(each)
        assert list(each.held()) == ["root:a:kid"]
        assert "pushed by dave" in str(each.held()["root:a:kid"])
        assert each.data("root:a", "new") == {"a": "b"}


def test_what_is_taken_back_holds_nobody(leaving: OwnedFleet, both: Callable[[], list[OwnedFleet]]) -> None:
    leaving.push("dave", DAVES)
    leaving.push(ADMIN, {A: None})
    leaving.push(ADMIN, DAVES)
    for each in both():
        go(each)
        assert each.held() == {}
        assert each.data("root:a", "new") == {"a": "b"}


def test_what_somebody_lets_stand_meanwhile_holds_nobody(
    leaving: OwnedFleet, both: Callable[[], list[OwnedFleet]]
) -> None:
    leaving.push("dave", DAVES)
    leaving.push(ADMIN, {"README.md": "let"}, f"Let him\n\nAllow-Push: {leaving.repo.head}")
    for each in both():
        go(each)
        assert each.held() == {}


@pytest.mark.parametrize("loads", [False, True], ids=["the note is served", "a commit comes first"])
@pytest.mark.parametrize("writes", range(1, 7))
def test_a_server_that_is_killed_when_it_has_gone_asks_all_the_same(
    leaving: OwnedFleet, writes: int, loads: bool
) -> None:
    """Transactions are: the end of the one that leaves, root:a, root:a:kid, that nobody waits for them any more."""
    leaving.push(ADMIN, DAVES | KID)
    other = {f"{A}/two/workspace.yaml": "", f"{A}/two/new.yaml": configmap("new")}
    leaving.push("dave", other)
    cut_off(leaving, writes)
    if loads:
        leaving.push(ADMIN, {f"{A}/two/more.yaml": configmap("more")})
    Settling()(leaving)
    assert list(leaving.held()) == ["root:a:two"]
    assert "pushed by dave" in str(leaving.held()["root:a:two"])
    assert leaving.data("root:a", "new") == leaving.data("root:a:kid", "new") == {"a": "b"}
    assert list(leaving.store.scan_rows(Table.VACATED)) == []


def cut_off(fleet: OwnedFleet, writes: int) -> None:
    """The last finalizer goes, and the server is killed after so many transactions of what follows."""
    settling = Settling()
    settling(fleet)
    happening = Happening(fleet)

    def killed() -> None:
        raise Killed

    look_again = fleet.loader.look_again

    def cut(paths: Collection[str]) -> None:
        with happening.after(writes, killed):
            look_again(paths)

    fleet.loader.look_again = cut  # type: ignore[method-assign]
    with suppress(Killed):
        settling.let_go(fleet, "root:a", "w", NAME)
    fleet.loader = fleet.new_loader()
