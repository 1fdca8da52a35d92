"""Workspaces that stand in a tenant's repository, below the directory that another one's content is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.drills import drilled
from support.loadedfleet import A, B, LoadedFleet, configmap
from support.recoveries import assert_same, recover
from support.sourcedfleet import FLEET, HEAD, OTHER, SHOP, SourcedFleet, TenantRepos, sourcing

from apiserver.model import commits
from apiserver.model.commits import CommitRef
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.layout import contenttree
from reconciler.loading import sourcelist
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.remotes import Remotes
from reconciler.loading.shown import Shown
from reconciler.loading.sourced import GRAFTED
from reconciler.loading.trial import Trial
from reconciler.repository.sourcerefs import source_name
from reconciler.viewing.filling import STORE, CommitFilling
from reconciler.viewing.recordings import Recordings

Another = Callable[..., LoadedFleet]
KID = "deploy/kid"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SourcedFleet]:
    """root:a comes from `deploy/` of SHOP, below which stands root:a:kid."""
    made = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    made.begin()
    made.tenants.push(
        {
            "deploy/app.yaml": configmap(a="shop"),
            f"{KID}/workspace.yaml": "",
            f"{KID}/app.yaml": configmap(a="kid"),
        }
    )
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
    """Follows until nothing is new."""
    for _ in range(5):
        if not fleet.follow():
            return
    raise AssertionError("it never comes to rest")


def recovers(fleet: SourcedFleet, another: Another, name: str = "recovered") -> SourcedFleet:
    """Loses all, and has it again once the source is fetched."""
    settle(fleet)
    head = fleet.publish()
    new = recover(fleet, another, name)
    assert isinstance(new, SourcedFleet)
    settle(new)
    assert_same(new, fleet)
    assert said(new) == said(fleet)
    assert new.fleet().grafts == fleet.fleet().grafts
    assert new.writer().flush() is None
    assert new.mirror.refresh().status == head
    return new


def said(fleet: SourcedFleet) -> dict[str, Any]:
    follows = {r.path: {k: v for k, v in r.follows.items() if k != GRAFTED} for r in fleet.records()}
    return {r.path: (r.source, follows[r.path], r.errors) for r in fleet.records()}


def test_it_is_a_workspace_below_with_an_identity_of_its_own(fleet: SourcedFleet, another: Another) -> None:
    assert fleet.held() == {}
    assert fleet.data("root:a:kid") == {"a": "kid"}
    assert fleet.data("root:a") == {"a": "shop"}
    above, record, head = fleet.record("root:a"), fleet.record("root:a:kid"), fleet.tenants.head(SHOP, "main")
    commit = f"{source_name(above.cluster, SHOP)}.{head}"
    assert (str(record.origin), record.directory) == (commit, f"{A}/kid")
    metadata = fleet.get("root:a:kid", "configmaps", "app")["metadata"]["annotations"]
    assert metadata["treeplane.dev/source-path"] == f"{KID}/app.yaml"
    assert metadata["treeplane.dev/source-commit"] == commit
    workspace = fleet.workspace("root:a:kid")["metadata"]["annotations"]
    assert workspace["treeplane.dev/source-path"] == f"{KID}/workspace.yaml"
    assert workspace["treeplane.dev/source-commit"] == commit
    assert fleet.follow() == set()
    recovers(fleet, another)


def test_each_is_held_by_itself(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({f"{KID}/app.yaml": "broken: [\n", "deploy/app.yaml": configmap(a="new")})
    [error] = fleet.held()["root:a:kid"]
    assert error.startswith(f"{KID}/app.yaml:")
    assert f" of {SHOP}" in error
    assert (fleet.data("root:a"), fleet.data("root:a:kid")) == ({"a": "new"}, {"a": "kid"})
    recovers(fleet, another)
    fleet.push({f"{KID}/app.yaml": configmap(a="better"), "deploy/app.yaml": "broken: [\n"})
    assert [*fleet.held()] == ["root:a"]
    assert (fleet.data("root:a"), fleet.data("root:a:kid")) == ({"a": "new"}, {"a": "better"})
    recovers(fleet, another, "again")


def test_they_come_group_and_go_as_in_the_fleet(fleet: SourcedFleet, another: Another) -> None:
    fleet.push(
        {
            "deploy/.treeplaneignore": "old/\n",
            "deploy/old/no/workspace.yaml": "",
            "deploy/more/one/workspace.yaml": "",
            "deploy/more/one/app.yaml": configmap(a="one"),
            f"{KID}/deep/workspace.yaml": "",
            f"{KID}/deep/app.yaml": configmap(a="deep"),
        }
    )
    assert fleet.held() == {}
    assert {path for path in fleet.paths() if path.startswith("root:a:")} == {
        "root:a:kid",
        "root:a:kid:deep",
        "root:a:one",
    }
    assert (fleet.data("root:a:one"), fleet.data("root:a:kid:deep")) == ({"a": "one"}, {"a": "deep"})
    recovers(fleet, another)


def test_a_removal_may_have_to_be_allowed_there(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({KID: None})
    [error] = fleet.held()["root:a:kid"]
    assert "was removed" in error and "Allow-Delete: " in error
    assert fleet.data("root:a:kid") == {"a": "kid"}
    recovers(fleet, another)
    digest = error.partition("Allow-Delete: ")[2][:40]
    fleet.push({}, message=f"Take it\n\nAllow-Delete: {digest}\n")
    assert "root:a:kid" not in fleet.paths()
    assert fleet.held() == {}
    assert fleet.fleet().kept == {}
    recovers(fleet, another, "again")
    was = fleet.fleet().grafts
    assert was == {}


def test_a_removal_may_be_allowed_in_the_fleet(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({KID: None})
    fleet.allow()
    assert "root:a:kid" not in fleet.paths()
    recovers(fleet, another)


def test_what_comes_again_is_another_one(fleet: SourcedFleet, another: Another) -> None:
    first = fleet.record("root:a:kid").cluster
    fleet.push({KID: None})
    fleet.allow()
    fleet.push({f"{KID}/workspace.yaml": "", f"{KID}/app.yaml": configmap(a="again")})
    assert fleet.record("root:a:kid").cluster != first
    assert fleet.data("root:a:kid") == {"a": "again"}
    recovers(fleet, another)


def test_what_lost_its_workspace_yaml_alone_is_nobody_elses(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({f"{KID}/workspace.yaml": None, f"{KID}/role.yaml": configmap("role")})
    [error] = fleet.held()["root:a:kid"]
    assert "was removed, but manifests remain below it" in error
    assert fleet.data("root:a", "role") is None
    assert fleet.data("root:a:kid") == {"a": "kid"}
    recovers(fleet, another)
    fleet.push({f"{KID}/workspace.yaml": ""})
    assert fleet.held() == {}
    assert fleet.data("root:a:kid", "role") == {"a": "b"}
    recovers(fleet, another, "again")


@pytest.mark.parametrize(
    ("file", "field"),
    [
        (sourcing(OTHER), "spec.source"),
        (f"{HEAD}spec: {{serve: {{commit: {'ab' * 20}}}}}\n", "spec.serve"),
        (f"{HEAD}spec: {{mount: {{ref: {{apiVersion: v1, kind: ConfigMap, name: x}}}}}}\n", "spec.mount"),
        (f"{HEAD}spec: {{location: {{selector: {{matchLabels: {{a: b}}}}}}}}\n", "spec.location"),
        (f"{HEAD}metadata: {{uid: 11111111-1111-1111-1111-111111111111}}\n", "metadata.uid"),
        (f'{HEAD}metadata: {{annotations: {{core.kcp.io/max-total-objects: "0"}}}}\n', "metadata.annotations"),
        (f"{HEAD}metadata: {{annotations: {{authorization.kcp.io/required-groups: x}}}}\n", "metadata.annotations"),
    ],
)
def test_what_only_the_fleet_says_is_refused(fleet: SourcedFleet, another: Another, file: str, field: str) -> None:
    fleet.push({f"{KID}/workspace.yaml": file, "deploy/two/workspace.yaml": file, "deploy/app.yaml": configmap(a="b")})
    held = fleet.held()
    assert set(held) == {"root:a:kid", "root:a:two"}
    for errors in held.values():
        assert any(field in error and "is for the fleet's own repository to say" in error for error in errors), errors
    assert (fleet.data("root:a"), fleet.data("root:a:kid")) == ({"a": "b"}, {"a": "kid"})
    recovers(fleet, another)


def test_the_fleets_own_counts_where_both_have_one(fleet: SourcedFleet, another: Another) -> None:
    fleet.commit({f"{A}/group/two/workspace.yaml": "", f"{A}/group/two/app.yaml": configmap(a="fleet")})
    fleet.push({"deploy/two/workspace.yaml": "", "deploy/two/app.yaml": configmap(a="theirs")})
    assert fleet.data("root:a:two") == {"a": "fleet"}
    [error] = fleet.held()["root:a"]
    assert "deploy/two/ would be the workspace root:a:two, and" in error
    assert f"{A}/group/two/ is that already" in error
    assert fleet.data("root:a:kid") == {"a": "kid"}
    recovers(fleet, another)
    fleet.push({"deploy/two": None, "deploy/group/three/workspace.yaml": ""})
    [error] = fleet.held()["root:a"]
    assert f"deploy/group/three/ would stand in {A}/group/, which is the fleet's own" in error
    recovers(fleet, another, "again")


def test_the_fleets_own_that_comes_later_counts_too(fleet: SourcedFleet, another: Another) -> None:
    fleet.commit({f"{A}/group/kid/workspace.yaml": "", f"{A}/group/kid/app.yaml": configmap(a="fleet")})
    settle(fleet)
    assert fleet.data("root:a:kid") == {"a": "fleet"}
    recovers(fleet, another)


def test_nothing_goes_where_the_source_is_no_good(fleet: SourcedFleet, another: Another) -> None:
    repo = fleet.tenants.at(SHOP)
    head = repo.head
    fleet.push({KID: None, "deploy/new/workspace.yaml": ""}, parent=repo.commits[0] if len(repo.commits) > 1 else None)
    fleet.push({"deploy": None, "else/app.yaml": configmap()})
    assert set(fleet.held()) >= {"root:a"}
    assert fleet.data("root:a:kid") == {"a": "kid"}
    repo.reset(head)
    settle(fleet)
    assert fleet.data("root:a:kid") == {"a": "kid"}


def test_a_rewritten_branch_has_them_follow_once_it_says_so(fleet: SourcedFleet, another: Another) -> None:
    repo = fleet.tenants.at(SHOP)
    fleet.push({f"{KID}/app.yaml": configmap(a="left")})
    served = commits.parse(fleet.record("root:a").source["commit"]).id
    fleet.push({f"{KID}/app.yaml": configmap(a="other"), "deploy/x/workspace.yaml": ""}, parent=repo.commits[0])
    assert [*fleet.held()] == ["root:a"]
    assert "root:a:x" not in fleet.paths()
    recovers(fleet, another)
    fleet.push({}, message=f"Take it\n\nAllow-Rewrite: {served}\n")
    assert fleet.held() == {}
    assert (fleet.data("root:a:kid"), "root:a:x" in fleet.paths()) == ({"a": "other"}, True)
    recovers(fleet, another, "again")


def test_another_repository_brings_others_once_it_is_here(fleet: SourcedFleet, another: Another) -> None:
    fleet.tenants.push({"deploy/app.yaml": configmap(a="other"), "deploy/two/workspace.yaml": ""}, OTHER)
    fleet.commit({f"{A}/workspace.yaml": sourcing(OTHER)})
    assert fleet.data("root:a:kid") == {"a": "kid"}
    settle(fleet)
    assert "root:a:two" in fleet.paths()
    assert "was removed" in " ".join(fleet.held()["root:a:kid"])
    recovers(fleet, another)
    fleet.allow()
    settle(fleet)
    assert {path for path in fleet.paths() if path.startswith("root:a:")} == {"root:a:two"}
    recovers(fleet, another, "again")


def test_another_path_of_the_same_commit_brings_others(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({"prod/app.yaml": configmap(a="prod"), "prod/two/workspace.yaml": ""})
    fleet.commit({f"{A}/workspace.yaml": sourcing(path="prod")})
    settle(fleet)
    assert "root:a:two" in fleet.paths()
    assert "was removed" in " ".join(fleet.held()["root:a:kid"])
    recovers(fleet, another)


def test_they_go_with_spec_source(fleet: SourcedFleet, another: Another) -> None:
    fleet.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(a="home")})
    settle(fleet)
    assert fleet.data("root:a") == {"a": "home"}
    assert "was removed" in " ".join(fleet.held()["root:a:kid"])
    assert fleet.data("root:a:kid") == {"a": "kid"}
    recovers(fleet, another)
    fleet.allow()
    settle(fleet)
    assert "root:a:kid" not in fleet.paths()
    assert fleet.fleet().grafts == {}
    recovers(fleet, another, "again")


def test_they_go_with_the_workspace_above(fleet: SourcedFleet, another: Another) -> None:
    fleet.commit({A: None})
    assert fleet.data("root:a:kid") == {"a": "kid"}
    recovers(fleet, another)
    fleet.allow()
    assert {"root:a", "root:a:kid"}.isdisjoint(fleet.paths())
    assert fleet.fleet().grafts == {}
    recovers(fleet, another, "again")


def test_a_recovery_has_them_lost_until_the_repository_is_here(fleet: SourcedFleet, another: Another) -> None:
    head = fleet.publish()
    new = another(fleet, keys=fleet.keys)
    assert isinstance(new, SourcedFleet)
    new.load(new.recorded())
    record = new.record("root:a:kid")
    assert not record.served
    assert "was served, and cannot be brought back" in " ".join(record.errors)
    assert record.cluster == fleet.record("root:a:kid").cluster
    assert new.mirror.refresh().status == head
    new.publish()
    third = another(fleet, "third", keys=fleet.keys)
    assert isinstance(third, SourcedFleet)
    third.load(third.recorded())
    settle(third)
    assert third.data("root:a:kid") == {"a": "kid"}
    settle(new)
    assert new.data("root:a:kid") == {"a": "kid"}
    assert_same(new, fleet)


def test_a_crash_between_both_is_made_good(fleet: SourcedFleet, another: Another) -> None:
    fleet.tenants.push({"deploy/app.yaml": configmap(a="new"), "deploy/two/workspace.yaml": ""})
    fleet.fetch()
    follow, fleet.loader._in_sources = fleet.loader._in_sources, lambda _: iter(())  # type: ignore[assignment]
    fleet.look()
    fleet.loader._in_sources = follow
    fleet.loader = fleet.new_loader()
    assert "root:a:two" not in fleet.paths()
    settle(fleet)
    assert "root:a:two" in fleet.paths()
    recovers(fleet, another)


def test_nobody_else_is_looked_at(fleet: SourcedFleet) -> None:
    settle(fleet)
    judged: list[str] = []
    make = fleet.loader.sources.sourced

    def noting(path: str, commit: CommitRef, directory: str, border: str | None = None) -> Any:
        judged.append(path)
        return make(path, commit, directory, border)

    fleet.loader.sources.sourced = noting  # type: ignore[method-assign]
    fleet.commit({f"{B}/app.yaml": configmap(a="new")})
    assert judged == []
    fleet.push({f"{KID}/app.yaml": configmap(a="new")})
    assert set(judged) == {"root:a", "root:a:kid"}


def test_a_source_has_so_many_workspaces(fleet: SourcedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contenttree, "MOST_WORKSPACES", 2)
    fleet.push({"deploy/two/workspace.yaml": "", "deploy/three/workspace.yaml": ""})
    [error] = fleet.held()["root:a"]
    assert "deploy/ holds more than 2 workspaces" in error
    assert {path for path in fleet.paths() if path.startswith("root:a:")} == {"root:a:kid"}


def moving(fleet: SourcedFleet) -> str:
    """A workspace.yaml of root:a, somewhere else."""
    uid = fleet.workspace("root:a")["metadata"]["uid"]
    return sourcing().replace("spec:", f"metadata: {{uid: {uid}}}\nspec:")


def test_it_moves_with_the_workspace_above(fleet: SourcedFleet, another: Another) -> None:
    clusters = fleet.record("root:a").cluster, fleet.record("root:a:kid").cluster
    fleet.publish()
    fleet.commit({A: None, f"{B}/a/workspace.yaml": moving(fleet)})
    assert fleet.held() == {}
    assert (fleet.record("root:b:a").cluster, fleet.record("root:b:a:kid").cluster) == clusters
    assert fleet.data("root:b:a:kid") == {"a": "kid"}
    assert "root:a:kid" not in fleet.paths()
    recovers(fleet, another)
    fleet.push({f"{KID}/app.yaml": configmap(a="there"), "deploy/two/workspace.yaml": ""})
    assert fleet.data("root:b:a:kid") == {"a": "there"}
    assert "root:b:a:two" in fleet.paths()
    recovers(fleet, another, "again")


def test_it_stays_where_the_workspace_above_may_not_move(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({f"{KID}/app.yaml": "broken: [\n"})
    fleet.commit({A: None, f"{B}/a/workspace.yaml": moving(fleet)})
    settle(fleet)
    assert fleet.data("root:a:kid") == {"a": "kid"}
    assert "cannot move to root:b:a" in " ".join(fleet.held()["root:a"])
    recovers(fleet, another)


def test_who_only_shows_it_has_it_once_it_is_fetched(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({"deploy/group/two/workspace.yaml": "", "deploy/group/two/app.yaml": configmap(a="two")})
    fleet.publish()
    other = another(fleet)
    assert isinstance(other, SourcedFleet)

    def new(store: Store) -> Loader:
        loader = Loader(store, other.mirror.repositories, Identities(other.keys / "identities"), other.secrets.of)
        loader.steppers.remotes = Remotes(lambda name, branch: other.heads.get((name, branch), ""), (FLEET,))
        return loader

    def look() -> None:
        other.fetch()
        found = sourcelist.listed(other.store)
        heads = {each.name: other.heads[each.name, each.ref.branch] for each in found.values()}
        recorded = other.recorded()
        assert recorded is not None
        shown.follow(recorded, "them/1", sourcelist.due(other.store, found.values(), heads, {}, lost=True))

    shown = Shown(other.store, other.mirror.repository, new)
    recorded = other.recorded()
    assert recorded is not None
    shown.begin(recorded, "them/1")
    assert not other.record("root:a:kid").served
    look()
    assert (other.data("root:a:kid"), other.data("root:a:two")) == ({"a": "kid"}, {"a": "two"})
    assert_same(other, fleet)
    fleet.push({"deploy/group/two/app.yaml": configmap(a="new"), "deploy/group/three/workspace.yaml": ""})
    fleet.publish()
    other.mirror.refresh()
    look()
    assert other.data("root:a:two") == {"a": "new"}
    assert "root:a:three" in other.paths()


def test_a_drill_says_which_repository_it_would_need(fleet: SourcedFleet) -> None:
    fleet.publish()
    found = drilled(fleet)
    assert found.same
    assert set(found.found.elsewhere) == {"root:a", "root:a:kid"}


def test_a_commit_view_has_what_was_served_then(fleet: SourcedFleet, tmp_path: Path) -> None:
    fleet.publish()
    commit, repo, recordings = fleet.repo.head, fleet.mirror.repository, Recordings()
    recordings.refresh(repo)
    status, sources = recordings.of(repo, commit), fleet.mirror.repositories.sources
    assert sources is not None
    for path, said in (("root:a:kid", b'"a":"kid"'), ("root:a", b'"a":"shop"')):
        place = tmp_path / path.replace(":", "-")
        place.mkdir()
        CommitFilling(repo, commit, path, status, sources=sources.directory).into(place)
        store = open_at(place / STORE, sync=False)
        try:
            shown = store.get(fleet.key(path, "configmaps", "app"))
            assert shown is not None
            assert said in shown.value
        finally:
            store.close()


def test_a_push_is_judged_with_what_stands_there(fleet: SourcedFleet, tmp_path: Path) -> None:
    old = fleet.repo.head
    new = fleet.repo.commit({f"{A}/kid/app.yaml": configmap(a="fleet")})
    away = fleet.repo.commit({A: None}, parent=old)
    trial = Trial(fleet.loader, fleet.secrets.of, tmp_path / "identities", 60.0)
    with fleet.store.view() as view:
        assert "which is the fleet's own" in str(trial.run(view, fleet.repo.repo, old, new).held)
        assert "4 objects would be deleted" in str(trial.run(view, fleet.repo.repo, old, away).held)
