"""A workspace's status in its tenant's repository, over a real git server: what is there, and what is said of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.fleetrepo import FleetRepo
from support.gitserver import GitAsked, GitServer
from support.loadedfleet import A, LoadedFleet, configmap
from support.sourcedfleet import sourcing

from reconciler.commands.excerpting import Excerpting
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.sourcing import Sourcing
from reconciler.repository.objects import Repository
from reconciler.signatures.own import CommitKey

BRANCH = "treeplane/status"
FOLLOWED, WRITTEN = "SourceFollowed", "SourceStatusWritten"
_LONG = 20.0


class Told:
    """A fleet whose root:a comes from `shop.git` of a tenant, on a git server that may be told to refuse."""

    def __init__(self, folder: Path) -> None:
        self.git = GitServer(folder / "remotes", folder / "remote-keys")
        (folder / "remotes").mkdir()
        self.shop = FleetRepo(folder / "remotes" / "shop.git")
        self.shop.commit({"deploy/app.yaml": configmap(a="shop")})
        self.fleet = LoadedFleet(folder / "fleet")
        self.rung = threading.Event()
        self.settings = ReconcileSettings(
            self.fleet.directory, self.fleet.keys, source=str(self.fleet.repo.path), url="https://fleet.example.org",
            local_url="u", trusted_sources=("root",), source_interval=0.2, hosted=True,
        )  # fmt: skip
        self.fleet.begin()
        self.begin()

    def begin(self) -> None:
        """As after a start."""
        store, mirror, ring = self.fleet.store, self.fleet.mirror, self.rung.set
        self.sourcing = Sourcing(self.settings, store, mirror, ring)
        self.fleet.loader.steppers.remotes = self.sourcing.remotes
        sign = CommitKey.open(self.fleet.keys).sign
        self.excerpting = Excerpting(self.settings, store, mirror, ring, sign, lambda: None)
        self.sourcing.start()
        self.excerpting.start()

    def end(self) -> None:
        self.excerpting.close()
        self.sourcing.close()

    def close(self) -> None:
        self.end()
        self.git.close()
        self.fleet.close()

    def source(self, **more: Any) -> None:
        said = sourcing(self.git.url("shop.git"), secretRef={"name": "keys"}, **more)
        self.fleet.commit({f"{A}/app.yaml": None, f"{A}/workspace.yaml": said})

    def give(self, **strings: str) -> None:
        said = {"caFile": self.git.ca.decode(), **strings}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "stringData": said}
        self.fleet.keep_secret("root", yaml.safe_dump(secret))

    def until(self, holds: Callable[[], Any]) -> None:
        """As the holder does, look by look."""
        for _ in range(int(_LONG / 0.05)):
            self.sourcing.serve(self.fleet.loader.look_again)
            self.fleet.publish()
            self.excerpting.serve(self.sourcing.followed())
            if holds():
                return
            self.rung.wait(0.05)
            self.rung.clear()
        pytest.fail(f"it never came to that: {self.said()}, {self.fleet.held()}")

    def said(self, kind: str = WRITTEN, path: str = "root:a") -> dict[str, Any] | None:
        found = self.fleet.workspace(path)["status"]["conditions"]
        return next((each for each in found if each["type"] == kind), None)

    def says(self, reason: str, kind: str = WRITTEN) -> bool:
        return (self.said(kind) or {}).get("reason") == reason

    def summary(self, branch: str = BRANCH) -> dict[str, Any]:
        """What the tenant reads; {} where there is no such branch."""
        repo = Repository(self.shop.path)
        head = repo.ref(f"refs/heads/{branch}")
        found = repo.entry_at(repo.commit(head).tree, "_summary.yaml") if head is not None else None
        return yaml.safe_load(repo.blob(found.id)) if found is not None else {}

    def commits(self) -> int:
        repo = Repository(self.shop.path)
        return len(repo.first_parents(None, repo.ref(f"refs/heads/{BRANCH}") or "") or ())


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path)
    yield made
    made.close()


def test_the_tenant_reads_what_is_served_and_what_is_wrong(told: Told) -> None:
    told.give()
    told.source(status=True)
    served = told.shop.head
    told.until(lambda: told.summary().get("served") == served and told.says("Written"))
    assert told.summary() == {"workspace": "root:a", "served": served}
    told.shop.commit({"deploy/app.yaml": "broken: [\n"})
    told.until(lambda: told.summary().get("held"))
    [error] = told.summary()["errors"]
    assert "deploy/app.yaml:" in error
    assert told.summary()["served"] == served
    mended = told.shop.commit({"deploy/app.yaml": configmap(a="new")})
    told.until(lambda: told.summary() == {"workspace": "root:a", "served": mended} and told.says("Written"))
    said = told.said()
    assert said is not None
    assert said["message"] == f"the status is written to the branch {BRANCH} of {told.git.url('shop.git')}"
    cluster = told.fleet.get("root:a", "logicalclusters.core.kcp.io", "cluster", "")
    assert WRITTEN in {each["type"] for each in cluster["status"]["conditions"]}
    assert told.fleet.residue("root:a", "logicalclusters.core.kcp.io", "cluster", "") is None


def test_nothing_is_written_where_nobody_asks_for_it(told: Told) -> None:
    told.give()
    told.source()
    told.until(lambda: told.says("Followed", FOLLOWED))
    assert told.said() is None
    assert not {"refs to write", "push"} & {*told.git.steps}
    told.source(status=True, statusBranch="treeplane/prod")
    told.until(lambda: told.says("Written"))
    assert told.summary("treeplane/prod") != {} == told.summary()
    told.source()
    told.until(lambda: told.said() is None)
    assert told.summary("treeplane/prod") != {}, "what was written stays"
    cluster = told.fleet.get("root:a", "logicalclusters.core.kcp.io", "cluster", "")
    assert WRITTEN not in {each["type"] for each in cluster["status"]["conditions"]}


def test_a_repository_that_takes_nothing_is_followed_all_the_same(told: Told) -> None:
    def read_only(asked: GitAsked) -> bool:
        if asked.step == "refs to write":
            asked.reply(b"", 403)
        return asked.step == "refs to write"

    told.git.spoil = read_only
    told.give(username="u", password="s3cret")
    told.source(status=True)
    told.until(lambda: told.says("Unauthorized"))
    said = told.said()
    assert said is not None
    assert said["status"] == "False"
    assert "give the credentials of secretRef the right to push that branch" in said["message"]
    assert "s3cret" not in str(said)
    told.until(lambda: told.says("Followed", FOLLOWED))
    assert (told.fleet.held(), told.fleet.data("root:a")) == ({}, {"a": "shop"})
    new = told.shop.commit({"deploy/app.yaml": configmap(a="new")})
    told.until(lambda: told.fleet.data("root:a") == {"a": "new"})
    assert told.fleet.workspace("root:a")["status"]["phase"] == "Ready"
    told.git.spoil = lambda _: False
    told.until(lambda: told.says("Written") and told.summary().get("served") == new)


def test_a_new_workspace_says_from_the_first_commit_on_what_is_wrong(told: Told) -> None:
    """Nothing of it was ever served, and nothing can be written before it is followed."""
    said = sourcing(told.git.url("shop.git"), secretRef={"name": "keys"}, status=True)
    told.shop.commit({"deploy/app.yaml": "broken: [\n"})
    told.fleet.commit({"workspaces/root/new/workspace.yaml": said})
    told.until(lambda: (told.said(path="root:new") or {}).get("reason") == "NotFollowed")
    assert told.git.steps == []
    told.give()
    told.until(lambda: "deploy/app.yaml:" in str(told.summary().get("errors")))
    assert told.summary()["workspace"] == "root:new"


def test_the_branch_that_is_followed_is_never_written(told: Told) -> None:
    told.give()
    told.source()
    told.until(lambda: told.says("Followed", FOLLOWED))
    main = told.shop.head
    told.source(status=True, branch=BRANCH)
    [error] = told.fleet.held()["root:a"]
    assert f"spec.source.branch is {BRANCH}, to which the workspace's status is to be written" in error
    told.until(lambda: True)
    assert (told.said(), told.shop.head) == (None, main)
    assert not {"refs to write", "push"} & {*told.git.steps}


def test_after_a_restart_nothing_is_written_and_after_a_loss_it_goes_on(told: Told) -> None:
    told.give()
    told.source(status=True)
    told.until(lambda: told.summary().get("served") and told.says("Written"))
    before, asked = told.commits(), told.git.steps.count("refs to write")
    told.end()
    told.begin()
    told.until(lambda: told.says("Written") and told.says("Followed", FOLLOWED))
    assert (told.commits(), told.git.steps.count("refs to write")) == (before, asked)
    told.end()
    for path in sorted((told.fleet.directory / "excerpts").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    told.begin()
    new = told.shop.commit({"deploy/app.yaml": configmap(a="new")})
    told.until(lambda: told.summary() == {"workspace": "root:a", "served": new} and told.says("Written"))
    assert told.commits() > before, "on top of what was there"
