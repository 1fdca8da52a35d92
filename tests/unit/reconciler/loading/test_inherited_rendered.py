"""Workspaces in a tenant's repository below a source's path that have something rendered: as the one above has, of what
stands within the source's path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import A, LoadedFleet, configmap
from support.recoveries import assert_same, recover
from support.sourcedfleet import OTHER, SHOP, SourcedFleet, TenantRepos, sourcing

from reconciler.layout import contenttree
from reconciler.loading import feeds, sourcelist
from reconciler.loading.remotes import UNKNOWN

Another = Callable[..., SourcedFleet]
KID, K = "deploy/kid", "deploy/kid/k"
ENTRY = f"{K}/kustomization.yaml"
FILES = {
    f"{KID}/workspace.yaml": "",
    f"{KID}/app.yaml": configmap(a="kid"),
    ENTRY: "namePrefix: k-\nresources: [x.yaml]\n",
    f"{K}/x.yaml": configmap("x", v="1"),
}
BASE = {
    "deploy/.treeplaneignore": "/base\n",
    "deploy/base/kustomization.yaml": "resources: [y.yaml]\n",
    "deploy/base/y.yaml": configmap("y", v="1"),
    ENTRY: "resources: [x.yaml, ../../base]\n",
}


class ApartFleet(SourcedFleet):
    is_apart = True


@pytest.fixture
def renders() -> FakeRenders:
    return FakeRenders()


@pytest.fixture(params=[SourcedFleet, ApartFleet], ids=["at once", "apart"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path, renders: FakeRenders) -> Iterator[SourcedFleet]:
    """root:a comes from `deploy/` of SHOP; root:a:kid stands below, which renders `deploy/kid/k`."""
    made = request.param(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"), renders=renders)
    made.begin()
    made.tenants.push({"deploy/app.yaml": configmap(a="shop"), **FILES})
    made.source()
    settle(made)
    yield made
    renders.go_on()
    made.close()


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Another]:
    made: list[SourcedFleet] = []

    def open_another(fleet: SourcedFleet, name: str = "second", *, keys: Path | None = None) -> SourcedFleet:
        made.append(type(fleet)(tmp_path / name, fleet.tenants, fleet.repo, keys, fleet.renders))
        made[-1].by_id = True
        return made[-1]

    yield open_another
    for each in made:
        each.close()


def settle(fleet: SourcedFleet) -> None:
    """Follows until nothing is new."""
    for _ in range(6):
        if not fleet.follow():
            return
    raise AssertionError("it never comes to rest")


def push(fleet: SourcedFleet, files: dict[str, str | None], url: str = SHOP) -> None:
    fleet.tenants.push(files, url)
    settle(fleet)


def error(fleet: SourcedFleet, path: str = "root:a:kid") -> str:
    [said] = fleet.held()[path]
    return said


def recovers(fleet: SourcedFleet, another: Another, name: str = "recovered") -> SourcedFleet:
    settle(fleet)
    fleet.publish()
    new = recover(fleet, another, name)
    assert isinstance(new, SourcedFleet)
    settle(new)
    assert_same(new, fleet)
    assert rows(new) == rows(fleet)
    assert new.writer().flush() is None
    return new


def rows(fleet: LoadedFleet) -> dict[str, feeds.Fed | None]:
    return {record.path: feeds.noted(fleet.store, record.cluster) for record in fleet.records()}


def test_its_objects_are_what_comes_of_it(fleet: SourcedFleet, another: Another) -> None:
    assert (fleet.held(), fleet.data("root:a:kid"), fleet.data("root:a:kid", "k-x")) == ({}, {"a": "kid"}, {"v": "1"})
    annotations = fleet.get("root:a:kid", "configmaps", "k-x")["metadata"]["annotations"]
    assert annotations["treeplane.dev/source-path"] == ENTRY
    assert annotations["treeplane.dev/source-commit"] == fleet.record("root:a:kid").source["commit"]
    assert fleet.data("root:a", "k-x") is None
    recovers(fleet, another)


def test_a_push_that_changes_it_has_it_rendered_again(
    fleet: SourcedFleet, renders: FakeRenders, another: Another
) -> None:
    uid = fleet.get("root:a:kid", "configmaps", "k-x")["metadata"]["uid"]
    push(fleet, {f"{K}/x.yaml": configmap("x", v="2")})
    assert (fleet.held(), fleet.data("root:a:kid", "k-x")) == ({}, {"v": "2"})
    assert fleet.get("root:a:kid", "configmaps", "k-x")["metadata"]["uid"] == uid
    asked, at = [*renders.asked], fleet.record("root:a:kid").source["commit"]
    push(fleet, {"deploy/app.yaml": configmap(a="new")})
    assert (renders.asked, fleet.record("root:a:kid").source["commit"]) == (asked, at)
    recovers(fleet, another)
    push(fleet, {K: None})
    assert fleet.data("root:a:kid", "k-x") is None
    assert rows(fleet)["root:a:kid"] is None
    recovers(fleet, another, "again")


def test_what_is_named_within_the_sources_path_is_seen(fleet: SourcedFleet, another: Another) -> None:
    push(fleet, BASE)
    assert (fleet.held(), fleet.data("root:a:kid", "y")) == ({}, {"v": "1"})
    assert fleet.data("root:a", "y") is None
    assert rows(fleet)["root:a:kid"] == feeds.Fed("1", there=("deploy/base",))
    push(fleet, {"deploy/base/y.yaml": configmap("y", v="2")})
    assert (fleet.held(), fleet.data("root:a:kid", "y")) == ({}, {"v": "2"})
    recovers(fleet, another)
    push(fleet, {"deploy/base": None})
    assert error(fleet).startswith(f"{ENTRY}: cannot be rendered: ../../base: no such file or directory")
    recovers(fleet, another, "again")
    push(fleet, {name: text for name, text in BASE.items() if "/base/" in name})
    assert (fleet.held(), fleet.data("root:a:kid", "y")) == ({}, {"v": "1"})


def test_what_it_names_may_come_to_be_another_workspaces(fleet: SourcedFleet, another: Another) -> None:
    push(fleet, {**BASE, "deploy/.treeplaneignore": "/in/base\n", "deploy/base": None, **moved("deploy/in/base")})
    assert (fleet.held(), fleet.data("root:a:kid", "y")) == ({}, {"v": "1"})
    push(fleet, {"deploy/in/workspace.yaml": ""})
    assert "../../in/base: no such file or directory" in error(fleet)
    assert fleet.data("root:a:kid", "y") == {"v": "1"}
    recovers(fleet, another)


def moved(to: str) -> dict[str, str | None]:
    """The base in another directory."""
    found = {f"{to}/{name.rpartition('/')[2]}": text for name, text in BASE.items() if "/base/" in name}
    return {**found, ENTRY: f"resources: [x.yaml, ../../{to.partition('/')[2]}]\n"}


@pytest.mark.parametrize("name", ["../../two/base", "../deep/base", "../../../outside", "../..", "../../../bases"])
def test_nothing_else_is_seen(fleet: SourcedFleet, renders: FakeRenders, name: str, another: Another) -> None:
    """Neither of workspaces beside or below it, nor outside of the path, nor of the fleet."""
    shared = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases, outside, deploy/two/base]}}}}\n"
    base = {"kustomization.yaml": "resources: [s.yaml]\n", "s.yaml": configmap("s")}
    fleet.commit({"treeplane.yaml": shared, **{f"bases/{file}": text for file, text in base.items()}})
    there = ("deploy/two/base", f"{KID}/deep/base", "outside")
    files = {f"{at}/{file}": text for at in there for file, text in base.items()}
    markers = {"deploy/two/workspace.yaml": "", f"{KID}/deep/workspace.yaml": "", "treeplane.yaml": shared}
    push(fleet, {**files, **markers, ENTRY: f"resources: [x.yaml, {name}]\n"})
    assert error(fleet).startswith(f"{ENTRY}: cannot be rendered: ")
    assert fleet.data("root:a:kid", "k-x") == {"v": "1"}
    assert renders.seen[K] == [ENTRY, f"{K}/x.yaml"]
    recovers(fleet, another)
    asked = [*renders.asked]
    fleet.commit({"bases/s.yaml": configmap("s", v="2")})
    assert (fleet.written(), renders.asked) == ([], asked)


def test_what_it_stands_in_is_seen(fleet: SourcedFleet, another: Another) -> None:
    deep = {
        f"{KID}/.treeplaneignore": "/base\n",
        f"{KID}/base/kustomization.yaml": "resources: [y.yaml]\n",
        f"{KID}/base/y.yaml": configmap("y", v="1"),
        f"{KID}/deep/workspace.yaml": "",
        f"{KID}/deep/kustomization.yaml": "resources: [../base]\n",
    }
    push(fleet, deep)
    assert (fleet.held(), fleet.data("root:a:kid:deep", "y")) == ({}, {"v": "1"})
    push(fleet, {f"{KID}/base/y.yaml": configmap("y", v="2")})
    assert fleet.data("root:a:kid:deep", "y") == {"v": "2"}
    recovers(fleet, another)


@pytest.mark.parametrize("text", ["resources: [none.yaml]\n", "resources: []\n", "raw: ''\n"])
def test_what_cannot_be_rendered_holds_it_alone(fleet: SourcedFleet, text: str, another: Another) -> None:
    two = {"deploy/two/workspace.yaml": "", "deploy/two/kustomization.yaml": "resources: [z.yaml]\n"}
    push(fleet, {**two, "deploy/two/z.yaml": configmap("z"), "deploy/app.yaml": configmap(a="new"), ENTRY: text})
    assert [*fleet.held()] == ["root:a:kid"]
    assert error(fleet).startswith(f"{ENTRY}: cannot be rendered: ")
    assert fleet.data("root:a:kid", "k-x") == {"v": "1"}
    assert (fleet.data("root:a"), fleet.data("root:a:two", "z")) == ({"a": "new"}, {"a": "b"})
    recovers(fleet, another)
    push(fleet, {ENTRY: FILES[ENTRY], "deploy/kustomization.yaml": "resources: [none.yaml]\n"})
    assert [*fleet.held()] == ["root:a"]


def test_no_workspace_stands_below_what_is_rendered(fleet: SourcedFleet, another: Another) -> None:
    push(fleet, {f"{K}/in/workspace.yaml": "", f"{K}/in/app.yaml": configmap(a="in")})
    assert f"renders {K}, and a workspace stands in {K}/in, which is below that" in error(fleet)
    assert (fleet.data("root:a:kid", "k-x"), fleet.data("root:a:kid:in")) == ({"v": "1"}, {"a": "in"})
    assert [*fleet.held()] == ["root:a:kid"]
    recovers(fleet, another)
    push(fleet, {ENTRY: None, f"{K}/x.yaml": None, "deploy/kustomization.yaml": "resources: [app.yaml]\n"})
    assert [*fleet.held()] == ["root:a"]
    assert "a workspace stands in deploy/kid" in error(fleet, "root:a")


def test_without_a_program_nothing_goes(fleet: SourcedFleet, renders: FakeRenders, another: Another) -> None:
    renders.fails.add(K)
    push(fleet, {f"{K}/x.yaml": configmap("x", v="2"), f"{KID}/app.yaml": None})
    assert "there is no program here" in error(fleet)
    assert fleet.data("root:a:kid", "k-x") == {"v": "1"}
    assert feeds.late(fleet.store) == {"root:a:kid"}
    renders.fails.clear()
    fleet.loader = fleet.new_loader()
    fleet.recheck(feeds.late(fleet.store))
    settle(fleet)
    assert (fleet.held(), fleet.data("root:a:kid", "k-x")) == ({}, {"v": "2"})
    recovers(fleet, another)


def test_a_source_has_so_many_directories_that_are_rendered(
    fleet: SourcedFleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those in one another the outermost of each workspace."""
    monkeypatch.setattr(contenttree, "MOST_RENDERED", 3)
    entry = {"kustomization.yaml": "resources: [x.yaml]\n", "x.yaml": configmap("x")}
    some = {f"deploy/{at}/{file}": text for at in ("r", "r/base", "two") for file, text in entry.items()}
    push(fleet, {**some, "deploy/two/workspace.yaml": ""})
    assert fleet.held() == {}
    push(fleet, {f"deploy/two/{at}": text for at, text in entry.items()} | {"deploy/s/Chart.yaml": "name: s\n"})
    assert "deploy/ holds more than 3 directories that are rendered" in error(fleet, "root:a")
    assert [*fleet.held()] == ["root:a"]


def test_another_path_of_the_same_has_it_seen_or_not(fleet: SourcedFleet, another: Another) -> None:
    push(fleet, BASE)
    fleet.commit({f"{A}/workspace.yaml": sourcing(path="")})
    settle(fleet)
    assert fleet.data("root:a:kid", "y") == {"v": "1"}
    assert (fleet.held(), fleet.record("root:a:kid").source["border"]) == ({}, "")
    recovers(fleet, another)


def test_another_repository_has_others(fleet: SourcedFleet, another: Another) -> None:
    fleet.tenants.push({**FILES, f"{K}/x.yaml": configmap("x", v="other")}, OTHER)
    fleet.commit({f"{A}/workspace.yaml": sourcing(OTHER)})
    settle(fleet)
    assert (fleet.held(), fleet.data("root:a:kid", "k-x")) == ({}, {"v": "other"})
    recovers(fleet, another)


def test_a_start_goes_on_with_who_waits_for_programs(tmp_path: Path, renders: FakeRenders) -> None:
    made = ApartFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"), renders=renders)
    made.begin()
    made.tenants.push({"deploy/app.yaml": configmap(a="shop"), **FILES})
    made.source()
    settle(made)
    made.fetch()
    renders.forget()
    assert made.ahead is not None
    made.loader.recheck(["root:a:kid"])
    assert UNKNOWN[0] in error(made)
    assert made.data("root:a:kid", "k-x") == {"v": "1"}
    made.loader = made.new_loader()
    assert "root:a:kid" in sourcelist.due(
        made.store, sourcelist.listed(made.store).values(), {n: h for (n, _), h in made.heads.items()}, {}
    )
    settle(made)
    assert made.held() == {}
    made.close()
