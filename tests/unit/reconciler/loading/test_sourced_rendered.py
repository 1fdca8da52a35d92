"""Directories of a tenant's repository that are rendered: as those of the fleet's, of nothing but what stands within
the source's path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import assert_same, recover
from support.sourcedfleet import OTHER, SourcedFleet, TenantRepos, sourcing

from apiserver.model import commits
from reconciler.loading import feeds

Another = Callable[..., LoadedFleet]
K = "deploy/k"
FILES = {f"{K}/kustomization.yaml": "namePrefix: k-\nresources: [x.yaml]\n", f"{K}/x.yaml": configmap("x", v="1")}
ENTRY = f"{K}/kustomization.yaml"


@pytest.fixture
def renders() -> FakeRenders:
    return FakeRenders()


@pytest.fixture
def fleet(tmp_path: Path, renders: FakeRenders) -> Iterator[SourcedFleet]:
    """root:a comes from `deploy/` of SHOP, which renders `deploy/k`."""
    made = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"), renders=renders)
    made.begin()
    made.tenants.push({**FILES, "deploy/app.yaml": configmap(a="shop")})
    made.source()
    yield made
    renders.go_on()
    made.close()


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Another]:
    made: list[SourcedFleet] = []

    def open_another(fleet: SourcedFleet, name: str = "second", *, keys: Path | None = None) -> SourcedFleet:
        made.append(SourcedFleet(tmp_path / name, fleet.tenants, fleet.repo, keys, fleet.renders))
        return made[-1]

    yield open_another
    for each in made:
        each.close()


def served(fleet: SourcedFleet, path: str = "root:a") -> str:
    return commits.parse(fleet.record(path).source.get("commit", "")).id


def error(fleet: SourcedFleet, path: str = "root:a") -> str:
    [said] = fleet.held()[path]
    return said


def recovers(fleet: SourcedFleet, another: Another) -> None:
    fleet.publish()
    new = recover(fleet, another)
    assert isinstance(new, SourcedFleet)
    new.follow()
    fleet.follow()
    assert_same(new, fleet)
    assert new.writer().flush() is None


def test_its_objects_are_what_comes_of_it(fleet: SourcedFleet, another: Another) -> None:
    assert (fleet.held(), fleet.data("root:a"), fleet.data("root:a", "k-x")) == ({}, {"a": "shop"}, {"v": "1"})
    annotations = fleet.get("root:a", "configmaps", "k-x")["metadata"]["annotations"]
    assert annotations["treeplane.dev/source-path"] == ENTRY
    assert annotations["treeplane.dev/source-commit"] == fleet.record("root:a").source["commit"]
    recovers(fleet, another)


def test_a_push_that_changes_it_has_it_rendered_again(fleet: SourcedFleet, another: Another) -> None:
    uid = fleet.get("root:a", "configmaps", "k-x")["metadata"]["uid"]
    fleet.push({f"{K}/x.yaml": configmap("x", v="2")})
    assert fleet.data("root:a", "k-x") == {"v": "2"}
    assert fleet.get("root:a", "configmaps", "k-x")["metadata"]["uid"] == uid
    fleet.push({ENTRY: "namePrefix: n-\nresources: [x.yaml]\n"})
    assert (fleet.data("root:a", "k-x"), fleet.data("root:a", "n-x")) == (None, {"v": "2"})
    fleet.push({"README.md": "new"})
    assert fleet.writer().flush() is not None
    recovers(fleet, another)


def test_what_is_named_within_its_path_is_seen(fleet: SourcedFleet) -> None:
    fleet.push(
        {
            "deploy/.treeplaneignore": "/base\n",
            "deploy/base/kustomization.yaml": "resources: [y.yaml]\n",
            "deploy/base/y.yaml": configmap("y", v="1"),
            ENTRY: "resources: [x.yaml, ../base]\n",
        }
    )
    assert (fleet.held(), fleet.data("root:a", "y")) == ({}, {"v": "1"})
    fleet.push({"deploy/base/y.yaml": configmap("y", v="2")})
    assert fleet.data("root:a", "y") == {"v": "2"}


def test_nothing_outside_of_its_path_is_seen(fleet: SourcedFleet, renders: FakeRenders, another: Another) -> None:
    """Neither of the repository, nor of what its own treeplane.yaml would share."""
    fleet.push(
        {
            "bases/kustomization.yaml": "resources: [s.yaml]\n",
            "bases/s.yaml": configmap("s"),
            "treeplane.yaml": f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases]}}}}\n",
            "workspaces/root/a/s.yaml": configmap("s"),
            ENTRY: "resources: [x.yaml, ../../bases, ../../workspaces/root/a/s.yaml]\n",
        }
    )
    assert error(fleet).startswith(f"{ENTRY}: cannot be rendered: ../../bases: no such file or directory")
    assert fleet.data("root:a", "k-x") == {"v": "1"}
    assert renders.seen[K] == [ENTRY, f"{K}/x.yaml"]
    recovers(fleet, another)


def test_nothing_of_the_fleet_is_seen(fleet: SourcedFleet, renders: FakeRenders) -> None:
    shared = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases]}}}}\n"
    base = {"bases/kustomization.yaml": "resources: [s.yaml]\n", "bases/s.yaml": configmap("s", v="1")}
    fleet.commit({"treeplane.yaml": shared, **base})
    fleet.tenants.push({ENTRY: "resources: [x.yaml, ../../bases]\n"})
    fleet.follow()
    assert "../../bases: no such file or directory" in error(fleet)
    asked = [*renders.asked]
    fleet.commit({"bases/s.yaml": configmap("s", v="2")})
    assert fleet.written() == []
    assert renders.asked == asked


def test_a_whole_repository_may_be_rendered(fleet: SourcedFleet, renders: FakeRenders) -> None:
    fleet.tenants.push({"kustomization.yaml": "resources: [in/y.yaml]\n", "in/y.yaml": configmap("y", v="1")}, OTHER)
    fleet.commit({f"{B}/app.yaml": None, f"{B}/workspace.yaml": sourcing(OTHER, "")})
    fleet.follow()
    assert (fleet.held(), fleet.data("root:b", "y")) == ({}, {"v": "1"})
    assert renders.seen[""] == ["in/y.yaml", "kustomization.yaml"]
    fleet.push({"Chart.yaml": "name: x\n", "templates/z.yaml": configmap("z"), "kustomization.yaml": None}, OTHER)
    assert (fleet.held(), fleet.data("root:b", "y"), fleet.data("root:b", "z")) == ({}, None, {"a": "b"})


@pytest.mark.parametrize("text", ["resources: [none.yaml]\n", "resources: []\n", "raw: ''\n"])
def test_what_cannot_be_rendered_holds_it_at_what_it_had(fleet: SourcedFleet, text: str, another: Another) -> None:
    fleet.push({ENTRY: text, "deploy/app.yaml": configmap(a="new")})
    assert error(fleet).startswith(f"{ENTRY}: cannot be rendered: ")
    assert (fleet.data("root:a"), fleet.data("root:a", "k-x")) == ({"a": "shop"}, {"v": "1"})
    recovers(fleet, another)
    fleet.push({ENTRY: FILES[ENTRY]})
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "new"})


def test_without_a_program_nothing_goes(fleet: SourcedFleet, renders: FakeRenders, another: Another) -> None:
    renders.fails.add(K)
    fleet.push({f"{K}/x.yaml": configmap("x", v="2"), "deploy/app.yaml": None})
    assert "there is no program here" in error(fleet)
    assert fleet.data("root:a", "k-x") == {"v": "1"}
    assert feeds.late(fleet.store) == {"root:a"}
    renders.fails.clear()
    fleet.recheck(feeds.late(fleet.store))
    assert (fleet.held(), fleet.data("root:a"), fleet.data("root:a", "k-x")) == ({}, None, {"v": "2"})
    recovers(fleet, another)


def test_a_server_that_cannot_render_brings_it_back_later(fleet: SourcedFleet, another: Another) -> None:
    fleet.publish()
    uid = fleet.get("root:a", "configmaps", "k-x")["metadata"]["uid"]
    new = another(fleet)
    assert isinstance(new, SourcedFleet)
    new.renders = FakeRenders()
    new.renders.away = True
    new.loader = new.new_loader()
    new.load(new.recorded())
    new.follow()
    assert not new.record("root:a").served
    new.renders.away = False
    new.recheck(feeds.late(new.store))
    new.follow()
    assert new.get("root:a", "configmaps", "k-x")["metadata"]["uid"] == uid
    assert_same(new, fleet)


def test_other_programs_render_it_again(fleet: SourcedFleet, renders: FakeRenders) -> None:
    renders.stamp = "2"
    assert feeds.others_by(fleet.store, renders.fingerprint) == {"root:a"}
    fleet.recheck(["root:a"])
    assert fleet.get("root:a", "configmaps", "k-x")["metadata"]["labels"] == {"stamp": "2"}


def test_it_comes_from_the_fleet_and_goes_back(fleet: SourcedFleet, another: Another) -> None:
    uid = fleet.get("root:a", "configmaps", "k-x")["metadata"]["uid"]
    fleet.commit(
        {
            f"{A}/workspace.yaml": "",
            f"{A}/app.yaml": configmap(a="home"),
            f"{A}/k/kustomization.yaml": "namePrefix: k-\nresources: [x.yaml, ../../../../bases]\n",
            f"{A}/k/x.yaml": configmap("x", v="home"),
            "treeplane.yaml": f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases]}}}}\n",
            "bases/kustomization.yaml": "resources: [s.yaml]\n",
            "bases/s.yaml": configmap("s", v="1"),
        }
    )
    assert (fleet.held(), fleet.data("root:a", "k-x")) == ({}, {"v": "home"})
    assert fleet.get("root:a", "configmaps", "k-x")["metadata"]["uid"] == uid
    fleet.commit({"bases/s.yaml": configmap("s", v="2")})
    assert fleet.data("root:a", "k-s") == {"v": "2"}
    fleet.commit({f"{A}/workspace.yaml": sourcing(), f"{A}/app.yaml": None, f"{A}/k": None})
    fleet.follow()
    assert (fleet.held(), fleet.data("root:a", "k-x"), fleet.data("root:a", "k-s")) == ({}, {"v": "1"}, None)
    assert feeds.noted(fleet.store, fleet.record("root:a").cluster) == feeds.Fed("1")
    recovers(fleet, another)
