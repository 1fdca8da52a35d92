"""Workspaces in a tenant's repository below one that is pinned: which there are, and what they hold, is as the commit
has it that the pin names."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.loadedfleet import A, LoadedFleet, configmap
from support.recoveries import assert_same, recover
from support.sourcedfleet import HEAD, SHOP, SourcedFleet, TenantRepos, sourcing

from apiserver.model import commits

Another = Callable[..., LoadedFleet]
OLD = {"deploy/old/workspace.yaml": "", "deploy/old/app.yaml": configmap(a="old")}
NEW = {"deploy/new/workspace.yaml": "", "deploy/new/app.yaml": configmap(a="new")}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SourcedFleet]:
    """root:a comes from `deploy/` of SHOP. root:a:kid stands there in each of its commits, root:a:old in the first
    alone, root:a:new from the second on."""
    made = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    made.begin()
    kid = {"deploy/kid/workspace.yaml": "", "deploy/kid/app.yaml": configmap(a="0")}
    made.tenants.push({"deploy/app.yaml": configmap(a="0"), **kid, **OLD})
    gone = dict.fromkeys(OLD)
    made.tenants.push({"deploy/app.yaml": configmap(a="1"), "deploy/kid/app.yaml": configmap(a="1"), **gone, **NEW})
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


def recovers(fleet: SourcedFleet, another: Another, name: str) -> None:
    """Loses all, and has it again once the source is fetched."""
    settle(fleet)
    fleet.publish()
    new = recover(fleet, another, name)
    assert isinstance(new, SourcedFleet)
    settle(new)
    assert_same(new, fleet)
    assert new.fleet().grafts == fleet.fleet().grafts
    assert new.writer().flush() is None


def settle(fleet: SourcedFleet) -> None:
    for _ in range(5):
        if not fleet.follow():
            return
    raise AssertionError("it never comes to rest")


def pin(fleet: SourcedFleet, number: int) -> None:
    serve = {"commit": fleet.tenants.at(SHOP).commits[number]}
    spec = {"source": {"repository": SHOP, "branch": "main", "path": "deploy"}, "serve": serve}
    fleet.commit({f"{A}/workspace.yaml": f"{HEAD}spec: {json.dumps(spec)}\n"})


def end(fleet: SourcedFleet) -> None:
    fleet.commit({f"{A}/workspace.yaml": sourcing()})


def below(fleet: SourcedFleet) -> set[str]:
    return {path for path in fleet.paths() if path.startswith("root:a:")}


def commit_of(fleet: SourcedFleet, path: str) -> str:
    return commits.parse(fleet.record(path).source["commit"]).id


def test_those_are_there_that_the_commit_has(fleet: SourcedFleet, another: Another) -> None:
    assert below(fleet) == {"root:a:kid", "root:a:new"}
    pin(fleet, 0)
    assert fleet.data("root:a") == fleet.data("root:a:kid") == {"a": "0"}
    assert fleet.data("root:a:old") == {"a": "old"}
    assert commit_of(fleet, "root:a:kid") == fleet.tenants.at(SHOP).commits[0]
    # What is not in that commit goes as anything that is taken away: once that is allowed.
    assert list(fleet.held()) == ["root:a:new"]
    assert fleet.data("root:a:new") == {"a": "new"}
    recovers(fleet, another, "before it is allowed")
    fleet.allow()
    assert (fleet.held(), below(fleet)) == ({}, {"root:a:kid", "root:a:old"})
    recovers(fleet, another, "pinned")


def test_what_is_pushed_meanwhile_is_not_looked_at(fleet: SourcedFleet, another: Another) -> None:
    pin(fleet, 1)
    fleet.push({"deploy/kid/app.yaml": "broken: [\n", **OLD, **dict.fromkeys(NEW)})
    assert (fleet.held(), below(fleet)) == ({}, {"root:a:kid", "root:a:new"})
    assert fleet.data("root:a:kid") == {"a": "1"}
    recovers(fleet, another, "pinned")


def test_its_end_is_one_difference(fleet: SourcedFleet, another: Another) -> None:
    uid = fleet.workspace("root:a:kid")["metadata"]["uid"]
    new = fleet.workspace("root:a:new")["metadata"]["uid"]
    pin(fleet, 0)
    end(fleet)
    assert list(fleet.held()) == ["root:a:old"]
    assert fleet.data("root:a") == fleet.data("root:a:kid") == {"a": "1"}
    assert fleet.workspace("root:a:kid")["metadata"]["uid"] == uid
    assert fleet.workspace("root:a:new")["metadata"]["uid"] == new, "nobody allowed that it goes, so it stayed"
    recovers(fleet, another, "before it is allowed")
    fleet.allow()
    assert (fleet.held(), below(fleet)) == ({}, {"root:a:kid", "root:a:new"})
    recovers(fleet, another, "at its end")


def test_a_suspension_leaves_all_as_it_is(fleet: SourcedFleet, another: Another) -> None:
    seen = fleet.store.revision()
    pin(fleet, 1)
    there = {c.key.resource for c in fleet.store.changes(seen) if c.key.cluster == fleet.record("root:a:kid").cluster}
    assert there == set()
    assert (fleet.held(), below(fleet)) == ({}, {"root:a:kid", "root:a:new"})
    recovers(fleet, another, "suspended")


def test_a_pin_that_is_refused_leaves_them(fleet: SourcedFleet) -> None:
    spec = {"source": {"repository": SHOP, "branch": "main", "path": "deploy"}, "serve": {"commit": "1" * 40}}
    fleet.commit({f"{A}/workspace.yaml": f"{HEAD}spec: {json.dumps(spec)}\n"})
    assert list(fleet.held()) == ["root:a"]
    assert below(fleet) == {"root:a:kid", "root:a:new"}
    assert fleet.data("root:a:kid") == {"a": "1"}
