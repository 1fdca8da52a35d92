"""Workspaces whose own content comes from another repository, since their workspace.yaml says so."""

from __future__ import annotations

import itertools
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.drills import drilled
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import BEGINNING, A, B, LoadedFleet, configmap
from support.recoveries import assert_recovers, assert_same, recover
from support.signing import Person
from support.sourcedfleet import FLEET, HEAD, OTHER, SHOP, SourcedFleet, TenantRepos, sourcing

from apiserver.model import commits
from apiserver.model.errors import StatusError
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.drilling import telling
from reconciler.loading import moment, sourcelist
from reconciler.loading.heads import BranchSettings
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.remotes import Remotes
from reconciler.loading.shown import Shown
from reconciler.loading.trial import Trial
from reconciler.loading.vouching import Vouching
from reconciler.repository.pushrecords import PushRecords
from reconciler.repository.sourcerefs import source_name
from reconciler.signatures.own import CommitKey
from reconciler.signatures.verifier import Verifier
from reconciler.viewing.filling import STORE, CommitFilling
from reconciler.viewing.recordings import Recordings

Another = Callable[..., LoadedFleet]
ALICE, MALLORY = map(Person, ("alice", "mallory"))


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SourcedFleet]:
    """root:a comes from `deploy/` of the tenant's repository SHOP, which has the ConfigMap `app`."""
    made = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    made.begin()
    made.tenants.push({"deploy/app.yaml": configmap(a="shop"), "README.md": "A shop."})
    made.source()
    yield made
    made.close()


@pytest.fixture
def another(tmp_path: Path) -> Iterator[Another]:
    made: list[SourcedFleet] = []

    def open_another(fleet: SourcedFleet, name: str = "second", *, keys: Path | None = None) -> SourcedFleet:
        made.append(SourcedFleet(tmp_path / name, fleet.tenants, fleet.repo, keys))
        return made[-1]

    yield open_another
    for each in made:
        each.close()


def served(fleet: SourcedFleet, path: str = "root:a") -> str:
    """The commit of the source."""
    return commits.parse(fleet.record(path).source.get("commit", "")).id


def applied(fleet: SourcedFleet, path: str = "root:a") -> dict[str, Any]:
    return fleet.condition(fleet.workspace(path), "CommitApplied")


def error(fleet: SourcedFleet, path: str = "root:a") -> str:
    [said] = fleet.held()[path]
    return said


def recovers(fleet: SourcedFleet, another: Another, name: str = "recovered") -> SourcedFleet:
    """Loses all, and has it again once the source is fetched."""
    head = fleet.publish()
    new = recover(fleet, another, name)
    assert isinstance(new, SourcedFleet)
    new.follow()
    assert_same(new, fleet)
    assert new.record("root:a").source == fleet.record("root:a").source
    assert new.writer().flush() is None
    assert new.mirror.refresh().status == head
    return new


def test_its_own_content_is_that_of_the_other_repository(fleet: SourcedFleet, another: Another) -> None:
    assert fleet.held() == {}
    assert fleet.data("root:a") == {"a": "shop"}
    record, head = fleet.record("root:a"), fleet.tenants.head(SHOP, "main")
    name = source_name(record.cluster, SHOP)
    annotations = fleet.get("root:a", "configmaps", "app")["metadata"]["annotations"]
    assert annotations["treeplane.dev/source-path"] == "deploy/app.yaml"
    assert annotations["treeplane.dev/source-commit"] == f"{name}.{head}"
    assert fleet.workspace("root:a")["metadata"]["annotations"]["treeplane.dev/source-commit"] == fleet.repo.head
    assert (applied(fleet)["status"], applied(fleet)["reason"]) == ("True", "Applied")
    assert f"{head[:10]} of {SHOP} (branch main, deploy/)" in applied(fleet)["message"]
    assert tree.summary(fleet.store, "root:a")["content"] == f"{name}.{head}"
    recovers(fleet, another)


def test_a_first_load_waits_for_no_remote(fleet: SourcedFleet, another: Another) -> None:
    new = another(fleet)
    assert isinstance(new, SourcedFleet)
    new.load()
    assert not new.record("root:a").served
    assert f"spec.source: nothing of {SHOP} (branch main, deploy/) is here yet" in error(new)
    assert new.data("root:b") == {"a": "b"}
    assert new.workspace("root:a")["status"]["phase"] == "Initializing"
    new.follow()
    assert (new.held(), new.data("root:a")) == ({}, {"a": "shop"})
    recovers(new, another)


def test_what_is_pushed_there_is_served(fleet: SourcedFleet, another: Another) -> None:
    before = fleet.get("root:a", "configmaps", "app")["metadata"]
    fleet.push({"deploy/app.yaml": configmap(a="new"), "deploy/more/more.yaml": configmap("more"), "else.yaml": "a: ["})
    assert fleet.data("root:a") == {"a": "new"}
    assert fleet.data("root:a", "more") == {"a": "b"}
    after = fleet.get("root:a", "configmaps", "app")["metadata"]
    assert after["uid"] == before["uid"]
    assert after["annotations"]["treeplane.dev/source-commit"].endswith(f".{fleet.tenants.head(SHOP, 'main')}")
    fleet.push({"deploy/more": None})
    assert fleet.data("root:a", "more") is None
    recovers(fleet, another)


def test_what_comes_and_goes_and_comes_is_another_one(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({"deploy/more.yaml": configmap("more")})
    first = fleet.get("root:a", "configmaps", "more")["metadata"]["uid"]
    fleet.push({"deploy/more.yaml": None})
    fleet.push({"deploy/more.yaml": configmap("more")})
    second = fleet.get("root:a", "configmaps", "more")["metadata"]["uid"]
    assert first != second
    new = recovers(fleet, another)
    assert new.get("root:a", "configmaps", "more")["metadata"]["uid"] == second


def test_the_same_commit_twice_is_zero_writes(fleet: SourcedFleet) -> None:
    fleet.publish()
    assert fleet.follow() == set()
    seen = fleet.store.revision()
    fleet.loader.look_again(["root:a"])
    assert fleet.store.revision() == seen
    fleet.loader = fleet.new_loader()
    assert fleet.look() == set()
    assert (fleet.store.revision(), fleet.writer().flush()) == (seen, None)


def test_its_own_error_holds_it_alone_and_names_the_repository(fleet: SourcedFleet, another: Another) -> None:
    good = served(fleet)
    bad = fleet.push({"deploy/app.yaml": "broken: [\n"})
    said = error(fleet)
    assert said.startswith("deploy/app.yaml:")
    assert f", in {bad[:10]} of {SHOP}" in said
    assert (fleet.data("root:a"), served(fleet)) == ({"a": "shop"}, good)
    assert applied(fleet)["message"].startswith("held back at the last good commit: deploy/app.yaml:")
    recovers(fleet, another)
    fleet.push({"deploy/app.yaml": configmap(a="mended")})
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "mended"})
    recovers(fleet, another, "again")


def test_a_branch_that_went_back_is_not_followed_and_ends_where_it_began(fleet: SourcedFleet, another: Another) -> None:
    first, second = served(fleet), fleet.push({"deploy/app.yaml": configmap(a="new"), "deploy/x.yaml": configmap("x")})
    fleet.publish()
    objects = fleet.everything()
    repo = fleet.tenants.at(SHOP)
    repo.reset(first)
    fleet.fetch()
    repo.reset(second)
    fleet.follow()
    assert (fleet.changes(), fleet.writer().flush()) == ([], None)
    repo.reset(first)
    fleet.follow()
    assert f"{SHOP} (branch main, deploy/) went back to {first}, behind {second}, which is served" in error(fleet)
    assert f"git revert {first[:12]}..{second[:12]}" in error(fleet)
    assert fleet.data("root:a") == {"a": "new"}
    repo.reset(second)
    fleet.follow()
    assert fleet.held() == {}
    mine, theirs = fleet.everything(), objects
    assert {key for key in mine if mine[key] != theirs.get(key)} <= {
        fleet.key("root", "workspaces.tenancy.kcp.io", "a", ""),
        fleet.key("root:a", "logicalclusters.core.kcp.io", "cluster", ""),
    }
    recovers(fleet, another)


def test_a_rewritten_branch_is_followed_where_it_says_so_itself(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({"deploy/app.yaml": configmap(a="one"), "deploy/x.yaml": configmap("x")})
    was = served(fleet)
    uid = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    first = fleet.tenants.at(SHOP).commits[0]
    made = fleet.push({"deploy/app.yaml": configmap(a="two")}, parent=first)
    assert f"was rewritten: {made} does not contain {was}, which is served; nothing is deleted for that" in error(fleet)
    assert f"-m 'Allow-Rewrite: {was}'" in error(fleet)
    assert fleet.data("root:a") == {"a": "one"}
    fleet.push({}, message=f"Take it\n\nAllow-Rewrite: {was}\n")
    assert fleet.held() == {}
    assert (fleet.data("root:a"), fleet.data("root:a", "x")) == ({"a": "two"}, None)
    assert fleet.get("root:a", "configmaps", "app")["metadata"]["uid"] == uid
    recovers(fleet, another, "again")


def test_what_a_push_takes_away_has_to_be_allowed_there(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({"deploy/many.yaml": "---\n".join(configmap(f"m{n}") for n in range(40))})
    fleet.push({"deploy/many.yaml": None})
    said = error(fleet)
    assert "Allow-Delete" in said
    assert fleet.data("root:a", "m3") == {"a": "b"}
    recovers(fleet, another)
    digest = said.partition("Allow-Delete: ")[2][:40]
    fleet.push({"deploy/app.yaml": configmap(a="also")}, message=f"Yes\n\nAllow-Delete: {digest}\n")
    assert (fleet.held(), fleet.data("root:a", "m3"), fleet.data("root:a")) == ({}, None, {"a": "also"})
    recovers(fleet, another, "again")


def test_the_fleet_may_allow_it_too(fleet: SourcedFleet) -> None:
    fleet.push({"deploy/many.yaml": "---\n".join(configmap(f"m{n}") for n in range(40))})
    fleet.push({"deploy/many.yaml": None})
    assert "Allow-Delete" in error(fleet)
    fleet.allow()
    assert (fleet.held(), fleet.data("root:a", "m3")) == ({}, None)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"deploy": None}, "there is no directory deploy/"),
        ({"deploy/app.yaml": None, "deploy/README.md": "empty"}, "deploy/ holds no manifest, and nothing is deleted"),
        ({"deploy/workspace.yaml": ""}, "deploy/workspace.yaml stands where the workspace's own would"),
        ({"deploy": "a file"}, "there is no directory deploy/"),
    ],
)
def test_a_head_that_is_no_content_leaves_what_is_served(
    fleet: SourcedFleet, another: Another, files: dict[str, str | None], said: str
) -> None:
    good = served(fleet)
    fleet.push(files if files.get("deploy") != "a file" else {"deploy/app.yaml": None})
    if files.get("deploy") == "a file":
        fleet.push({"deploy": "a file"})
    assert said in error(fleet)
    assert (fleet.data("root:a"), served(fleet)) == ({"a": "shop"}, good)
    recovers(fleet, another)
    fleet.push({"deploy": None})
    fleet.push({"deploy/app.yaml": configmap(a="again")})
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "again"})


def test_all_of_a_repository_may_be_the_content(fleet: SourcedFleet, another: Another) -> None:
    fleet.source(path="")
    assert fleet.data("root:a") == {"a": "shop"}
    fleet.push({"app.yaml": configmap("top"), "workspaces/root/x.yaml": configmap("x")})
    assert (fleet.data("root:a", "top"), fleet.data("root:a", "x")) == ({"a": "b"}, {"a": "b"})
    fleet.push({".treeplaneignore": "workspaces/\n"})
    assert (fleet.data("root:a", "top"), fleet.data("root:a", "x")) == ({"a": "b"}, None)
    fleet.push({"top.yaml": "broken: [\n", "app.yaml": None})
    assert error(fleet).startswith("top.yaml:")
    recovers(fleet, another)


def test_another_repository_has_nothing_of_the_former(fleet: SourcedFleet, another: Another) -> None:
    """Even where it names an object by its id."""
    former = fleet.tenants.at(SHOP).repo
    blob = former.entry_at(former.commit(fleet.tenants.head(SHOP, "main")).tree, "deploy/app.yaml")
    assert blob is not None
    uid = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    fleet.tenants.push({"deploy/app.yaml": configmap(a="other"), "deploy/x.yaml": configmap("x")}, OTHER)
    fleet.commit({f"{A}/workspace.yaml": sourcing(OTHER)})
    assert f"nothing of {OTHER}" in error(fleet)
    assert fleet.data("root:a") == {"a": "shop"}
    recovers(fleet, another)
    fleet.follow()
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "other"})
    assert fleet.get("root:a", "configmaps", "app")["metadata"]["uid"] == uid
    store = fleet.mirror.repositories.sources
    assert store is not None
    theirs = store.open(source_name(fleet.record("root:a").cluster, OTHER))
    assert theirs is not None
    assert not theirs.has(blob.id)
    recovers(fleet, another, "again")


def test_another_branch_of_the_fleets_choosing_need_not_follow(fleet: SourcedFleet) -> None:
    repo = fleet.tenants.at(SHOP)
    alone = repo.commit({"deploy/app.yaml": configmap(a="next")}, parent=repo.commits[0])
    side = repo.commit({"deploy/app.yaml": configmap(a="main")}, parent=repo.commits[0])
    fleet.follow()
    assert (served(fleet), fleet.data("root:a")) == (side, {"a": "main"})
    repo.repo.references.create("refs/heads/next", alone)
    fleet.commit({f"{A}/workspace.yaml": sourcing(branch="next")})
    assert fleet.data("root:a") == {"a": "main"}
    fleet.follow()
    assert (fleet.held(), fleet.data("root:a"), served(fleet)) == ({}, {"a": "next"}, alone)


def test_it_goes_back_to_its_directory(fleet: SourcedFleet, another: Another) -> None:
    uid = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    fleet.commit({f"{A}/workspace.yaml": "", f"{A}/app.yaml": configmap(a="here")})
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "here"})
    metadata = fleet.get("root:a", "configmaps", "app")["metadata"]
    assert metadata["uid"] == uid
    assert metadata["annotations"]["treeplane.dev/source-path"] == f"{A}/app.yaml"
    record = fleet.record("root:a")
    assert (record.source, record.follows, fleet.store.scan_rows(Table.SOURCED)) == ({}, {}, [])
    assert "content" not in tree.summary(fleet.store, "root:a")
    assert_recovers(fleet, another)


def test_manifests_beside_it_are_an_error(fleet: SourcedFleet, another: Another) -> None:
    fleet.commit({f"{A}/extra.yaml": configmap("extra")})
    assert f"there are manifests beside it: {A}/extra.yaml" in error(fleet)
    assert error(fleet).startswith(f"{A}/workspace.yaml:3: spec.source: ")
    assert (fleet.data("root:a"), fleet.data("root:a", "extra")) == ({"a": "shop"}, None)
    recovers(fleet, another)
    fleet.commit({f"{A}/extra.yaml": None})
    assert fleet.held() == {}


@pytest.mark.parametrize("url", [FLEET, "https://GIT.example.org:443/fleet"])
def test_a_source_that_is_the_fleet_itself_is_an_error(fleet: SourcedFleet, url: str) -> None:
    fleet.commit({f"{B}/app.yaml": None, f"{B}/workspace.yaml": sourcing(url)})
    fleet.follow()
    assert "is this fleet's own repository" in error(fleet, "root:b")
    assert fleet.data("root:b") == {"a": "b"}


def test_root_has_none(fleet: SourcedFleet) -> None:
    fleet.commit({"workspaces/root/workspace.yaml": sourcing()})
    assert "the workspace root has what the fleet's own repository holds" in str(fleet.held()["root"])


def test_its_children_are_the_fleets(fleet: SourcedFleet, another: Another) -> None:
    fleet.commit({f"{A}/kid/workspace.yaml": "", f"{A}/kid/k.yaml": configmap("k", v="1")})
    assert (fleet.held(), fleet.data("root:a:kid", "k")) == ({}, {"v": "1"})
    fleet.push({"deploy/app.yaml": configmap(a="new")})
    assert (fleet.data("root:a"), fleet.data("root:a:kid", "k")) == ({"a": "new"}, {"v": "1"})
    recovers(fleet, another)


def test_a_file_that_cannot_be_read_leaves_it_as_it_is(fleet: SourcedFleet, another: Another) -> None:
    fleet.commit({f"{A}/workspace.yaml": "kind: [\n"})
    assert len(fleet.held()["root:a"]) == 1
    assert (fleet.data("root:a"), fleet.record("root:a").follows["repository"]) == ({"a": "shop"}, SHOP)
    recovers(fleet, another)


def test_it_goes_as_any_workspace_does(fleet: SourcedFleet, another: Another) -> None:
    fleet.commit({A: None})
    if "root:a" in fleet.held():
        fleet.allow()
    assert fleet.paths() == {"root", "root:b"}
    assert fleet.store.scan_rows(Table.SOURCED) == []
    assert_recovers(fleet, another)


def test_what_is_gone_from_the_disk_takes_nothing_away(fleet: SourcedFleet) -> None:
    store = fleet.mirror.repositories.sources
    assert store is not None
    shutil.rmtree(store.directory)
    fleet.loader = fleet.new_loader()
    fleet.heads.clear()
    fleet.commit({f"{A}/workspace.yaml": sourcing().replace("spec:", "metadata: {labels: {x: z}}\nspec:")})
    assert "which is served, is gone from this server's disk" in error(fleet)
    assert fleet.data("root:a") == {"a": "shop"}
    fleet.follow()
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "shop"})
    assert fleet.workspace("root:a")["metadata"]["labels"]["x"] == "z"


def test_where_the_branchs_head_is_not_known_what_is_served_is_judged(fleet: SourcedFleet) -> None:
    """As it is right behind a recovery, between what was served and the branch being here."""
    fleet.push({"deploy/app.yaml": configmap(a="one")})
    fleet.heads.clear()
    fleet.commit({f"{A}/workspace.yaml": sourcing().replace("spec:", "metadata: {labels: {x: z}}\nspec:")})
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "one"})
    assert fleet.workspace("root:a")["metadata"]["labels"]["x"] == "z"
    fleet.push({"deploy/app.yaml": configmap(a="two")})
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "two"})


def test_a_recovery_brings_back_what_was_served_whatever_the_branch_is_at(
    fleet: SourcedFleet, another: Another
) -> None:
    fleet.push({"deploy/app.yaml": configmap(a="one"), "deploy/x.yaml": configmap("x")})
    uid = fleet.get("root:a", "configmaps", "x")["metadata"]["uid"]
    fleet.publish()
    fleet.tenants.push({"deploy/app.yaml": configmap(a="two")})
    new = recover(fleet, another)
    assert isinstance(new, SourcedFleet)
    assert not new.record("root:a").served
    assert "was served, and cannot be brought back: spec.source: " in error(new)
    assert f"{served(fleet)[:10]} of {SHOP} (branch main, deploy/), which was served, is not here yet" in error(new)
    assert tree.summary(new.store, "root:a")["content"] == tree.summary(fleet.store, "root:a")["content"]
    new.commit({"workspaces/root/app.yaml": configmap(a="meanwhile")})
    assert not new.record("root:a").served
    new.follow()
    fleet.load()
    fleet.follow()
    assert (new.held(), new.data("root:a")) == ({}, {"a": "two"})
    assert new.get("root:a", "configmaps", "x")["metadata"]["uid"] == uid
    assert_same(new, fleet)


def test_what_was_served_and_is_nowhere_any_more_has_to_be_let_go(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({"deploy/app.yaml": configmap(a="one"), "deploy/x.yaml": configmap("x")})
    was, uid = served(fleet), fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    fleet.publish()
    repo = fleet.tenants.at(SHOP)
    made = repo.commit({"deploy/app.yaml": configmap(a="two")}, parent=repo.commits[0])
    new = recover(fleet, another)
    assert isinstance(new, SourcedFleet)
    new.follow()
    assert not new.record("root:a").served
    assert f"was rewritten: {made} does not contain {was}, which is served" in error(new)
    new.push({}, message=f"Take it\n\nAllow-Rewrite: {was}\n")
    assert (new.held(), new.data("root:a"), new.data("root:a", "x")) == ({}, {"a": "two"}, None)
    assert new.get("root:a", "configmaps", "app")["metadata"]["uid"] == uid
    recovers(new, another, "again")


def test_a_workspace_may_move(fleet: SourcedFleet) -> None:
    uid, record = fleet.workspace("root:a")["metadata"]["uid"], fleet.record("root:a")
    text = sourcing().replace("spec:", f"metadata: {{uid: {uid}}}\nspec:")
    fleet.commit({A: None, "workspaces/root/c/workspace.yaml": text})
    assert fleet.held() == {}
    moved = fleet.record("root:c")
    assert (moved.cluster, moved.source["commit"]) == (record.cluster, record.source["commit"])
    fleet.push({"deploy/app.yaml": configmap(a="moved")})
    assert fleet.data("root:c") == {"a": "moved"}


@pytest.fixture
def one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """In which all looks are, of whichever server: what each of them found by itself bears the same time."""
    begun = time.time_ns() // 1_000_000_000 * 1_000_000_000
    looks = itertools.count()
    monkeypatch.setattr(moment, "time", SimpleNamespace(time_ns=lambda: begun + next(looks)))


@pytest.mark.usefixtures("one_second")
def test_one_that_comes_with_a_source_is_made_when_that_is_here(fleet: SourcedFleet, another: Another) -> None:
    fleet.tenants.push({"app.yaml": configmap(a="other")}, OTHER)
    fleet.commit({"workspaces/root/c/workspace.yaml": sourcing(OTHER, "")})
    assert not fleet.record("root:c").served
    head = fleet.publish()
    assert head
    new = recover(fleet, another)
    assert isinstance(new, SourcedFleet)
    for each in (fleet, new):
        each.follow()
        assert (each.held(), each.data("root:c")) == ({}, {"a": "other"})
    assert_same(new, fleet)


def test_a_clone_without_tenants_repositories_judges_the_rest(fleet: SourcedFleet, another: Another) -> None:
    new = another(fleet)
    assert isinstance(new, SourcedFleet)
    new.loader.steppers.remotes = None
    new.load()
    assert new.held() == {}
    assert (new.data("root:a"), new.data("root:b")) == (None, {"a": "b"})
    assert f"served, from {SHOP} (branch main, deploy/)" in applied(new)["message"]


def test_what_its_file_says_is_shown(fleet: SourcedFleet) -> None:
    assert fleet.workspace("root:a")["spec"]["source"] == {"repository": SHOP, "branch": "main", "path": "deploy"}
    assert HEAD in fleet.repo.files(fleet.repo.head)[f"{A}/workspace.yaml"]


@pytest.mark.usefixtures("one_second")
def test_what_is_known_of_one_that_is_away_stays(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({"deploy/app.yaml": configmap(a="one"), "deploy/x.yaml": configmap("x")})
    fleet.publish()
    away = recover(fleet, another, "away")
    assert isinstance(away, SourcedFleet)
    away.publish()
    away.commit({"workspaces/root/app.yaml": configmap(a="meanwhile")})
    away.publish()
    third = recover(away, another, "third")
    assert isinstance(third, SourcedFleet)
    fleet.load()
    for each in (away, third):
        each.follow()
        assert_same(each, fleet)
    recovers(third, another, "fourth")


def test_a_drill_says_which_repositories_it_would_need(fleet: SourcedFleet) -> None:
    fleet.publish()
    found = drilled(fleet)
    assert found.same
    assert found.found.elsewhere == {"root:a": f"{SHOP} (branch main, deploy/)"}
    told = telling.as_text(found)
    assert f"the content of workspace root:a, which comes from {SHOP} (branch main, deploy/): it is back once" in told


def test_a_commit_view_has_what_was_served_then_or_says_where_it_is(fleet: SourcedFleet, tmp_path: Path) -> None:
    fleet.publish()
    commit, repo, recordings = fleet.repo.head, fleet.mirror.repository, Recordings()
    recordings.refresh(repo)
    status, sources = recordings.of(repo, commit), fleet.mirror.repositories.sources
    assert sources is not None
    (tmp_path / "there").mkdir()
    CommitFilling(repo, commit, "root:a", status, sources=sources.directory).into(tmp_path / "there")
    store = open_at(tmp_path / "there" / STORE, sync=False)
    try:
        shown = store.get(fleet.key("root:a", "configmaps", "app"))
        assert shown is not None
        assert b'"a":"shop"' in shown.value
    finally:
        store.close()
    (tmp_path / "nowhere").mkdir()
    with pytest.raises(StatusError, match=f"comes from commit {served(fleet)[:10]} of {SHOP}, which is not here"):
        CommitFilling(repo, commit, "root:a", status).into(tmp_path / "nowhere")


def test_where_commits_have_to_be_signed_so_has_a_source(tmp_path: Path) -> None:
    vouching = Vouching(PushRecords(None), Verifier(CommitKey.open(tmp_path / "server")), tmp_path / "signers")
    fleet = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    fleet.loader = fleet.new_loader(BranchSettings(vouching=vouching))
    own, repo = CommitKey.open(tmp_path / "server"), fleet.tenants.at(SHOP)
    try:
        said = "spec: {verification: {mode: Head}}\n"
        files = {**BEGINNING, f"{A}/app.yaml": None, f"{A}/workspace.yaml": sourcing()}
        signers = "signers/allowed_signers"
        (tmp_path / "signers").mkdir()
        (tmp_path / "signers" / "allowed_signers").write_text(ALICE.line())
        fleet.repo.commit({**files, "treeplane.yaml": TREEPLANE_YAML + said, signers: ALICE.line()}, sign=ALICE.sign)
        fleet.load()
        assert fleet.fleet().error == ""
        repo.commit({"deploy/app.yaml": configmap(a="unsigned")})
        fleet.follow()
        assert "is not taken, since it is not signed" in error(fleet)
        for sign, why in ((MALLORY.sign, "is not taken, since"), (own.sign, "this server's own key, which counts for")):
            repo.commit({"deploy/app.yaml": configmap(a="signed")}, sign=sign)
            fleet.follow()
            assert why in error(fleet)
        repo.commit({"deploy/app.yaml": configmap(a="alice")}, sign=ALICE.sign)
        fleet.follow()
        assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "alice"})
        repo.commit({"deploy/app.yaml": configmap(a="unsigned again")})
        fleet.follow()
        assert "is not taken, since it is not signed" in error(fleet)
        assert fleet.data("root:a") == {"a": "alice"}
    finally:
        fleet.close()


def test_who_only_shows_it_has_it_once_it_is_fetched(fleet: SourcedFleet, another: Another) -> None:
    fleet.publish()
    other = another(fleet)
    assert isinstance(other, SourcedFleet)

    def new(store: Store) -> Loader:
        loader = Loader(store, other.mirror.repositories, Identities(other.keys / "identities"), other.secrets.of)
        loader.steppers.remotes = Remotes(lambda name, branch: other.heads.get((name, branch), ""), (FLEET,))
        return loader

    shown = Shown(other.store, other.mirror.repository, new)
    recorded = other.recorded()
    assert recorded is not None
    shown.begin(recorded, "them/1")
    assert not other.record("root:a").served
    assert other.data("root:b") == {"a": "b"}
    fleet.tenants.push({"deploy/app.yaml": configmap(a="later")})
    other.fetch()
    found = sourcelist.listed(other.store)
    heads = {each.name: other.heads[each.name, each.ref.branch] for each in found.values()}
    due = sourcelist.due(other.store, found.values(), heads, {}, lost=True)
    assert due == {"root:a"}
    shown.follow(recorded, "them/1", due)
    assert_same(other, fleet)
    assert sourcelist.due(other.store, found.values(), heads, {}, lost=True) == set()


def test_a_push_is_not_refused_for_what_is_not_here_yet(fleet: SourcedFleet, tmp_path: Path) -> None:
    fleet.tenants.push({"deploy/app.yaml": configmap(a="other")}, OTHER)
    old = fleet.repo.head
    new = fleet.repo.commit({f"{B}/app.yaml": None, f"{B}/workspace.yaml": sourcing(OTHER)})
    bad = fleet.repo.commit({f"{B}/app.yaml": None, f"{B}/workspace.yaml": sourcing(FLEET)}, parent=old)
    trial = Trial(fleet.loader, fleet.secrets.of, tmp_path / "identities", 60.0)
    with fleet.store.view() as view:
        assert not trial.run(view, fleet.repo.repo, old, new).holds
        assert "is this fleet's own repository" in str(trial.run(view, fleet.repo.repo, old, bad).held)


def test_a_signer_that_the_fleet_names_later_lets_it_go_on(fleet: SourcedFleet) -> None:
    """Who is held for the source itself is looked at again when the fleet is at another commit."""
    fleet.push({"deploy": None})
    judged = {**fleet.judged}
    assert judged
    sourcelist.told_of(fleet.store, judged)
    assert judged == {}
    fleet.push({"deploy/app.yaml": "broken: [\n"})
    judged = {**fleet.judged}
    sourcelist.told_of(fleet.store, judged)
    assert judged == fleet.judged
