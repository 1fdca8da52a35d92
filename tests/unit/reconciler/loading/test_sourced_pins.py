"""Workspaces that come from a tenant's repository and are pinned: to a commit of that, whatever its branch is at."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.fleetrepo import TREEPLANE_YAML
from support.loadedfleet import BEGINNING, A, LoadedFleet, configmap
from support.recoveries import assert_same, recover
from support.signing import Person
from support.sourcedfleet import HEAD, OTHER, SHOP, SourcedFleet, TenantRepos, sourcing

from apiserver.model import clock, commits
from apiserver.registry import tree
from reconciler.loading import pins, sourcelist
from reconciler.loading.heads import BranchSettings
from reconciler.loading.trial import Trial
from reconciler.loading.vouching import Vouching
from reconciler.repository.pushrecords import PushRecords
from reconciler.signatures.own import CommitKey
from reconciler.signatures.verifier import Verifier

Another = Callable[..., LoadedFleet]
BEGIN = 1_900_000_000
ALICE = Person("alice")


def pinning(commit: str, url: str = SHOP, path: str = "deploy", until: int = 0, reason: str = "") -> str:
    serve = {"commit": commit, **({"until": clock.rfc3339(until)} if until else {})}
    said = {"repository": url, "branch": "main", "path": path}
    spec = {"source": said, "serve": {**serve, **({"reason": reason} if reason else {})}}
    return f"{HEAD}spec: {json.dumps(spec)}\n"


class Time:
    at = float(BEGIN)


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(pins, "now", lambda: made.at)
    return made


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SourcedFleet]:
    """root:a comes from `deploy/` of SHOP, which is at the third commit: `a: 0`, `a: 1`, `a: 2`."""
    made = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"), renders=FakeRenders())
    made.begin()
    for number in range(3):
        made.tenants.push({"deploy/app.yaml": configmap(a=str(number))})
    made.source()
    yield made
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


def theirs(fleet: SourcedFleet, number: int) -> str:
    return fleet.tenants.at(SHOP).commits[number]


def pin(fleet: SourcedFleet, commit: str, **more: object) -> None:
    fleet.commit({f"{A}/workspace.yaml": pinning(commit, **more)})  # type: ignore[arg-type]


def served(fleet: SourcedFleet) -> str:
    return commits.parse(fleet.record("root:a").source.get("commit", "")).id


def error(fleet: SourcedFleet) -> str:
    [said] = fleet.held()["root:a"]
    return said


def recovers(fleet: SourcedFleet, another: Another, name: str = "second") -> SourcedFleet:
    fleet.publish()
    new = recover(fleet, another, name)
    assert isinstance(new, SourcedFleet)
    new.by_id = True
    new.follow()
    assert_same(new, fleet)
    assert new.record("root:a").pin == fleet.record("root:a").pin
    assert new.record("root:a").source == fleet.record("root:a").source
    assert tree.pins_ending(new.store) == tree.pins_ending(fleet.store)
    assert new.writer().flush() is None
    return new


def test_it_is_served_as_the_commit_has_it(fleet: SourcedFleet, another: Another) -> None:
    uid = fleet.get("root:a", "configmaps", "app")["metadata"]["uid"]
    pin(fleet, theirs(fleet, 0), reason="the new prices are wrong")
    assert (fleet.held(), fleet.data("root:a"), served(fleet)) == ({}, {"a": "0"}, theirs(fleet, 0))
    metadata = fleet.get("root:a", "configmaps", "app")["metadata"]
    assert metadata["uid"] == uid
    assert metadata["annotations"]["treeplane.dev/source-commit"].endswith(f".{theirs(fleet, 0)}")
    said = fleet.condition(fleet.workspace("root:a"), "CommitApplied")
    assert (said["status"], said["reason"]) == ("True", "Pinned")
    assert f"pinned to {theirs(fleet, 0)[:10]} by {A}/workspace.yaml (the new prices are wrong)" in said["message"]
    recovers(fleet, another)


def test_its_branch_is_not_followed_meanwhile_whatever_it_has(fleet: SourcedFleet, another: Another) -> None:
    pin(fleet, theirs(fleet, 1))
    repo = fleet.tenants.at(SHOP)
    for files, parent in (
        ({"deploy/app.yaml": "broken: [\n"}, None),
        ({"deploy": None}, None),
        ({"deploy/app.yaml": configmap(a="rewritten")}, repo.commits[0]),
    ):
        fleet.push(files, parent=parent)
        assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "1"})
        fleet.commit({f"{A}/workspace.yaml": pinning(theirs(fleet, 1), reason=str(parent))})
        assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "1"})
    new = recovers(fleet, another)
    for each in (fleet, new):
        each.commit({f"{A}/workspace.yaml": sourcing()}) if each is fleet else each.load()
        assert "was rewritten" in error(each)
        assert each.data("root:a") == {"a": "1"}
    assert_same(new, fleet)


def test_when_it_is_over_the_head_is_one_difference(fleet: SourcedFleet, another: Another, time: Time) -> None:
    pin(fleet, theirs(fleet, 0), until=BEGIN + 60)
    fleet.push({"deploy/app.yaml": configmap(a="3")})
    fleet.push({"deploy/app.yaml": configmap(a="4"), "deploy/x.yaml": configmap("x")})
    assert tree.pins_ending(fleet.store) == {"root:a": BEGIN + 60}
    new = recovers(fleet, another)
    time.at = BEGIN + 59.0
    pins.serve(fleet.store, fleet.loader.look_again)
    assert fleet.data("root:a") == {"a": "0"}
    time.at = BEGIN + 60.0
    for each in (fleet, new):
        pins.serve(each.store, each.loader.look_again)
        assert (each.held(), each.data("root:a"), each.data("root:a", "x")) == ({}, {"a": "4"}, {"a": "b"})
        assert tree.pins_ending(each.store) == {}
    time.at = BEGIN + 1.0  # what is over stays over
    fleet.push({"deploy/app.yaml": configmap(a="5")})
    assert fleet.data("root:a") == {"a": "5"}
    recovers(fleet, another, "third")


def test_it_is_resumed(fleet: SourcedFleet, another: Another) -> None:
    pin(fleet, theirs(fleet, 0))
    fleet.commit({f"{A}/workspace.yaml": sourcing()})
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "2"})
    assert (fleet.record("root:a").pin, fleet.record("root:a").follows.get("pinned")) == ({}, None)
    recovers(fleet, another)


def test_what_it_takes_away_has_to_be_allowed(fleet: SourcedFleet, another: Another) -> None:
    many = {f"deploy/m{number}.yaml": configmap(f"m{number}") for number in range(12)}
    fleet.push(many)
    pin(fleet, theirs(fleet, 0))
    assert "Allow-Delete" in error(fleet)
    assert (fleet.data("root:a"), fleet.data("root:a", "m1")) == ({"a": "2"}, {"a": "b"})
    recovers(fleet, another)
    fleet.allow()
    assert (fleet.held(), fleet.data("root:a"), fleet.data("root:a", "m1")) == ({}, {"a": "0"}, None)


def test_what_is_no_commit_of_its_branch_holds_it(fleet: SourcedFleet, another: Another) -> None:
    repo = fleet.tenants.at(SHOP)
    side = repo.commit({"deploy/app.yaml": configmap(a="side")}, parent=repo.commits[1])
    repo.reset(theirs(fleet, 2))
    for commit in ("1" * 40, side, fleet.repo.head):
        pin(fleet, commit)
        said = error(fleet)
        assert said.startswith(f"{A}/workspace.yaml:3: spec.serve.commit: neither {SHOP} (branch main, deploy/) nor")
        assert f"contains {commit[:10]}; nothing is deleted for that" in said
        assert (fleet.data("root:a"), fleet.record("root:a").pin) == ({"a": "2"}, {})
    recovers(fleet, another)
    pin(fleet, theirs(fleet, 1))
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "1"})


def test_a_commit_without_the_directory_holds_it(fleet: SourcedFleet) -> None:
    fleet.push({"deploy": None, "other.yaml": configmap("other")})
    fleet.push({"deploy/app.yaml": configmap(a="again")})
    pin(fleet, theirs(fleet, 3))
    assert f"{theirs(fleet, 3)[:10]} is at hand, and there is no directory deploy/" in error(fleet)
    assert fleet.data("root:a") == {"a": "again"}


def test_what_is_served_may_be_pinned_whatever_its_branch_is_by_now(fleet: SourcedFleet, another: Another) -> None:
    repo = fleet.tenants.at(SHOP)
    was = served(fleet)
    fleet.push({"deploy/app.yaml": configmap(a="rewritten")}, parent=repo.commits[0])
    assert "was rewritten" in error(fleet)
    pin(fleet, was)
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "2"})
    found = sourcelist.listed(fleet.store)
    assert {each.keep for each in found.values()} == {frozenset({was})}
    recovers(fleet, another)


def test_a_pin_that_comes_with_the_source_waits_for_it(fleet: SourcedFleet, another: Another) -> None:
    other = fleet.tenants.push({"app.yaml": configmap(a="other")}, OTHER)
    fleet.tenants.push({"app.yaml": configmap(a="later")}, OTHER)
    fleet.commit({f"{A}/workspace.yaml": pinning(other, OTHER, "")})
    assert f"nothing of {OTHER} (branch main) is here yet" in error(fleet)
    assert fleet.data("root:a") == {"a": "2"}
    fleet.follow()
    assert (fleet.held(), fleet.data("root:a")) == ({}, {"a": "other"})
    recovers(fleet, another)


def test_a_server_that_lost_its_disk_brings_back_what_is_pinned(fleet: SourcedFleet, another: Another) -> None:
    pin(fleet, theirs(fleet, 0))
    fleet.publish()
    fleet.push({"deploy/app.yaml": configmap(a="later")})
    new = recover(fleet, another)
    assert isinstance(new, SourcedFleet)
    assert not new.record("root:a").served
    new.follow()
    assert (new.held(), new.data("root:a"), new.record("root:a").pin) == (
        {},
        {"a": "0"},
        fleet.record("root:a").pin,
    )
    assert_same(new, fleet)


def test_an_error_names_the_commit_that_has_it(fleet: SourcedFleet) -> None:
    fleet.push({"deploy/app.yaml": "broken: [\n"})
    bad = theirs(fleet, 3)
    fleet.push({"deploy/app.yaml": configmap(a="good")})
    pin(fleet, bad)
    assert error(fleet).startswith("deploy/app.yaml:2:")
    assert f"in {bad[:10]} of {SHOP}" in error(fleet)
    assert fleet.data("root:a") == {"a": "good"}


def test_a_push_of_a_pin_that_cannot_be_is_refused(fleet: SourcedFleet, tmp_path: Path) -> None:
    old = fleet.repo.head
    bad = fleet.repo.commit({f"{A}/workspace.yaml": pinning("1" * 40)})
    good = fleet.repo.commit({f"{A}/workspace.yaml": pinning(theirs(fleet, 0))}, parent=old)
    trial = Trial(fleet.loader, fleet.secrets.of, tmp_path / "identities", 60.0)
    with fleet.store.view() as view:
        assert "spec.serve.commit: neither" in str(trial.run(view, fleet.repo.repo, old, bad).held)
        assert not trial.run(view, fleet.repo.repo, old, good).holds


def test_what_it_renders_is_made_of_the_files_of_then(fleet: SourcedFleet, another: Another) -> None:
    fleet.push({"deploy/k/kustomization.yaml": "resources: [x.yaml]\n", "deploy/k/x.yaml": configmap("x", v="1")})
    then = theirs(fleet, 3)
    fleet.push({"deploy/k/x.yaml": configmap("x", v="2")})
    pin(fleet, then)
    assert (fleet.held(), fleet.data("root:a", "x")) == ({}, {"v": "1"})
    recovers(fleet, another)


def test_a_commit_that_was_never_served_has_to_be_signed(tmp_path: Path) -> None:
    vouching = Vouching(PushRecords(None), Verifier(CommitKey.open(tmp_path / "server")), tmp_path / "signers")
    fleet = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    fleet.loader = fleet.new_loader(BranchSettings(vouching=vouching))
    try:
        repo = fleet.tenants.at(SHOP)
        unsigned = repo.commit({"deploy/app.yaml": configmap(a="unsigned")})
        signed = repo.commit({"deploy/app.yaml": configmap(a="signed")}, sign=ALICE.sign)
        repo.commit({"deploy/app.yaml": configmap(a="head")}, sign=ALICE.sign)
        (tmp_path / "signers").mkdir()
        (tmp_path / "signers" / "allowed_signers").write_text(ALICE.line())
        mode = f"{TREEPLANE_YAML}spec: {{verification: {{mode: Head}}}}\n"
        files = {**BEGINNING, f"{A}/app.yaml": None, "treeplane.yaml": mode, "signers/allowed_signers": ALICE.line()}
        fleet.repo.commit({**files, f"{A}/workspace.yaml": sourcing()}, sign=ALICE.sign)
        fleet.load()
        fleet.follow()
        assert fleet.data("root:a") == {"a": "head"}
        for commit, holds in ((unsigned, True), (signed, False)):
            fleet.repo.commit({f"{A}/workspace.yaml": pinning(commit)}, sign=ALICE.sign)
            fleet.load()
            assert ("is not taken, since it is not signed" in str(fleet.held())) == holds
        assert fleet.data("root:a") == {"a": "signed"}
    finally:
        fleet.close()
