"""What a tenant's repository may hold to hurt others: it holds back its own workspace, and costs little."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.loadedfleet import configmap
from support.sourcedfleet import SHOP, SourcedFleet, TenantRepos, sourcing

from reconciler.loading import sourceheads
from reconciler.repository import trailers
from reconciler.repository.objects import Repository


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SourcedFleet]:
    made = SourcedFleet(tmp_path / "fleet", TenantRepos(tmp_path / "tenants"))
    made.begin()
    made.tenants.push({"deploy/app.yaml": configmap(a="shop")})
    made.source()
    yield made
    made.close()


def error(fleet: SourcedFleet) -> str:
    [said] = fleet.held()["root:a"]
    assert fleet.data("root:a") == {"a": "shop"}
    return said


def test_a_tree_that_never_ends_is_weighed_before_it_is_walked(fleet: SourcedFleet) -> None:
    repo = fleet.tenants.at(SHOP)
    blob = repo.repo.git.create_blob(configmap().encode())
    tree = _tree(repo.repo, {f"f{n}.yaml": (0o100644, blob) for n in range(10)})
    for _ in range(9):
        tree = _tree(repo.repo, {f"d{n}": (0o040000, tree) for n in range(10)})
    top = _tree(repo.repo, {"deploy": (0o040000, tree)})
    _commit(fleet, top)
    assert "deploy/ holds more than 200,000 files and directories" in error(fleet)


def test_rules_that_nobody_can_read_hold_it_alone(fleet: SourcedFleet) -> None:
    fleet.push({".treeplaneignore": "!\n", "deploy/more.yaml": configmap("more")})
    if "root:a" in fleet.held():
        assert "cannot be read" in error(fleet)
    fleet.commit({"workspaces/root/app.yaml": configmap(a="on")})
    assert fleet.data("root") == {"a": "on"}


def test_links_and_submodules_are_no_manifests(fleet: SourcedFleet) -> None:
    fleet.push({"deploy/link.yaml": fleet.tenants.at(SHOP).link("/etc/passwd")})
    assert "deploy/link.yaml: is a symbolic link" in error(fleet)


def test_not_every_commit_is_asked_what_it_allows(fleet: SourcedFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(sourceheads, "_COMMITS", 5)
    monkeypatch.setattr(sourceheads, "_SAYING", 3)
    said = trailers._trailers
    monkeypatch.setattr(trailers, "_trailers", lambda repo, text: asked.append(text) or said(repo, text))
    repo = fleet.tenants.at(SHOP)
    was = repo.head
    repo.commit({"deploy/app.yaml": configmap(a="rewritten")}, parent=repo.commits[0])
    for number in range(10):
        repo.commit({}, f"Number {number}\n\nAllow-Rewrite: {'1' * 40}\n")
    fleet.follow()
    # The one that is served is the root, which the branch contains still.
    assert (fleet.held(), asked) == ({}, [])
    first = repo.commits[0]
    assert was == first
    _commit(fleet, _tree(repo.repo, {"x": (0o100644, repo.repo.git.create_blob(b"x"))}), follow=False)
    for number in range(10):
        repo.commit({}, f"Number {number}\n\nAllow-Rewrite: {'1' * 40}\n")
    fleet.follow()
    [held] = fleet.held()["root:a"]
    assert "was rewritten" in held
    assert len(asked) == 3


def test_a_branch_whose_objects_are_another_tenants_finds_none_of_them(fleet: SourcedFleet, tmp_path: Path) -> None:
    """An object that somebody names by its id has to be in his own repository."""
    fleet.tenants.push({"deploy/secret.yaml": configmap("secret")}, "https://git.example.org/b.git")
    fleet.commit(
        {
            "workspaces/root/b/app.yaml": None,
            "workspaces/root/b/workspace.yaml": sourcing("https://git.example.org/b.git"),
        }
    )
    fleet.follow()
    theirs = fleet.tenants.at("https://git.example.org/b.git").repo
    entry = theirs.entry_at(theirs.commit(theirs.ref("refs/heads/main") or "").tree, "deploy/secret.yaml")
    sources = fleet.mirror.repositories.sources
    assert entry is not None
    assert sources is not None
    mine = sources.open(fleet.record("root:a").source["commit"].partition(".")[0])
    assert mine is not None
    assert not mine.has(entry.id)
    assert not mine.has(fleet.repo.head)


def _tree(repo: Repository, entries: dict[str, tuple[int, object]]) -> object:
    builder = repo.git.TreeBuilder()
    for name, (mode, each) in entries.items():
        builder.insert(name, each, mode)
    return builder.write()


def _commit(fleet: SourcedFleet, tree: object, *, follow: bool = True) -> str:
    """On the branch, without what was there."""
    repo = fleet.tenants.at(SHOP)
    raw = f"tree {tree}\nauthor t <t@x> 1767225600 +0000\ncommitter t <t@x> 1767225600 +0000\n\nmade\n"
    parent = f"parent {repo.head}\n" if follow else ""
    made = str(repo.repo.git.write(1, raw.replace("author", f"{parent}author", 1).encode()))
    repo.reset(made)
    if follow:
        fleet.follow()
    return made
