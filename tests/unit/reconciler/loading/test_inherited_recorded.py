"""A status commit that is made while the workspaces in a tenant's repository follow that, and is all that is left."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.happenings import Happening
from support.loadedfleet import LoadedFleet, configmap
from support.recoveries import assert_same, recover
from support.sourcedfleet import SourcedFleet, TenantRepos

Another = Callable[..., LoadedFleet]
NEW = {"deploy/new/workspace.yaml": "", "deploy/new/app.yaml": configmap(a="new")}
OLD = {"deploy/old/workspace.yaml": ""}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SourcedFleet]:
    """root:a comes from there, and root:a:old below it, which holds nothing."""
    made = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    made.begin()
    made.tenants.push({"deploy/app.yaml": configmap(a="0"), **OLD})
    made.source()
    yield made
    made.close()


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Another]:
    made: list[SourcedFleet] = []

    def open_another(fleet: SourcedFleet, name: str = "second", *, keys: Path | None = None) -> SourcedFleet:
        made.append(SourcedFleet(tmp_path / name, fleet.tenants, fleet.repo, keys))
        made[-1].by_id = True
        return made[-1]

    yield open_another
    for each in made:
        each.close()


def settle(fleet: SourcedFleet) -> None:
    for _ in range(5):
        if not fleet.follow():
            return
    raise AssertionError("it never comes to rest")


@pytest.mark.parametrize("is_here", [True, False], ids=["its store is lost", "all is lost"])
@pytest.mark.parametrize("writes", range(2, 7))
def test_who_comes_keeps_what_is_recorded_and_who_went_stays_away(
    fleet: SourcedFleet, another: Another, tmp_path: Path, writes: int, is_here: bool
) -> None:
    """Transactions are: root:a, that a step is under way, root:a:new, the end of root:a:old, where the step led."""
    fleet.publish()

    def record() -> None:
        if "root:a:new" in fleet.paths():
            key = fleet.key("root:a:new", "configmaps", "app")
            fleet.update(key, lambda obj: obj["metadata"].update(finalizers=["example.io/hold"]))
        fleet.publish()

    with Happening(fleet).after(writes, record):
        fleet.push({"deploy/app.yaml": configmap(a="1"), **NEW, **dict.fromkeys(OLD)})
    settle(fleet)
    assert {"root:a:new", "root:a:old"} & fleet.paths() == {"root:a:new"}
    if is_here:
        shutil.copytree(fleet.directory / "sources", tmp_path / "recovered" / "sources")
    new = recover(fleet, another)
    assert isinstance(new, SourcedFleet)
    settle(new)
    assert_same(new, fleet)
    assert new.fleet().grafts == fleet.fleet().grafts
    assert new.fleet().regrafting == {}
