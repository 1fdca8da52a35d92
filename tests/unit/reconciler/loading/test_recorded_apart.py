"""A workspace that is held is recorded where it stood when it was served; where that directory is another's by now,
apart, so that a recovery has both."""

from __future__ import annotations

import pytest
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import Another, assert_recovers

from reconciler.statusbranch.format import is_apart

X, Y = "workspaces/root/x", "workspaces/root/y"
C = f"{X}/c"
"""Of root:c as long as root/x only groups; of root:x:c from when that is a workspace."""
REGROUPED = {
    C: None,
    f"{Y}/c/workspace.yaml": "",
    f"{Y}/c/app.yaml": configmap(size="2"),
    f"{Y}/c/bad.yaml": "kind: [",
}
ANOTHERS = {f"{X}/workspace.yaml": "", f"{C}/workspace.yaml": "", f"{C}/other.yaml": configmap("other")}


@pytest.fixture
def grouped(fleet: LoadedFleet) -> LoadedFleet:
    fleet.commit({f"{C}/workspace.yaml": "", f"{C}/app.yaml": configmap(size="1")})
    assert fleet.data("root:c") == {"size": "1"}
    return fleet


@pytest.mark.parametrize("together", [True, False], ids=["with one commit", "with two"])
@pytest.mark.parametrize("recorded", [True, False], ids=["recorded between", "recorded at the end"])
def test_one_that_is_held_while_its_directory_becomes_anothers(
    grouped: LoadedFleet, another: Another, together: bool, recorded: bool
) -> None:
    if recorded:
        grouped.publish()
    if together:
        grouped.commit(REGROUPED | ANOTHERS)
    else:
        grouped.commit(REGROUPED)
        if recorded:
            grouped.publish()
        grouped.commit(ANOTHERS)
    assert list(grouped.held()) == ["root:c"]
    assert grouped.data("root:c") == {"size": "1"}
    assert grouped.data("root:x:c", "other") == {"a": "b"}
    assert is_apart(grouped.record("root:c").directory)
    new = assert_recovers(grouped, another)

    for each in (grouped, new):
        each.load()
    grouped.commit({f"{Y}/c/bad.yaml": None})
    new.load()
    for each in (grouped, new):
        assert each.held() == {}
        assert each.record("root:c").directory == f"{Y}/c"
        assert each.data("root:c") == {"size": "2"}
    assert_recovers(grouped, another, "again")


def test_one_that_is_held_again_and_again_stays_apart(grouped: LoadedFleet, another: Another) -> None:
    grouped.commit(REGROUPED | ANOTHERS)
    grouped.commit({f"{Y}/c/bad.yaml": "kind: {"})
    grouped.recheck(["root:c"])
    assert list(grouped.held()) == ["root:c"]
    assert is_apart(grouped.record("root:c").directory)
    assert_recovers(grouped, another)


def test_one_whose_directory_was_anothers_for_a_while(grouped: LoadedFleet, another: Another) -> None:
    grouped.commit(REGROUPED | ANOTHERS)
    grouped.delete({X: None})
    assert set(grouped.paths()) >= {"root:c"}
    assert "root:x:c" not in grouped.paths()
    assert_recovers(grouped, another)
    grouped.delete({f"{Y}/c": None})
    assert "root:c" not in grouped.paths()
    assert grouped.held() == {}
    assert_recovers(grouped, another, "again")


def test_one_that_is_held_and_then_taken_away(grouped: LoadedFleet, another: Another) -> None:
    grouped.commit(REGROUPED | ANOTHERS)
    grouped.commit({f"{Y}/c": None})
    assert "Allow-Delete" in str(grouped.held()["root:c"])
    assert grouped.data("root:c") == {"size": "1"}
    assert_recovers(grouped, another)
    grouped.allow()
    assert "root:c" not in grouped.paths()
    assert_recovers(grouped, another, "again")
