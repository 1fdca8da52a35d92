"""The status branch at the source: pushed as soon as may be, with respect for others."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.fleetrepo import FleetRepo
from support.statusfiles import BRANCH, CLUSTER, DEPLOYMENT, elsewhere, on_top_of, pushed, source_files, status

from apiserver.model.commits import own
from apiserver.storage.protocol import Store
from reconciler.plan.summary import Summary
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.repository.write import move_ref
from reconciler.statusbranch import publisher
from reconciler.statusbranch.publisher import Publisher, PublisherSettings
from reconciler.statusbranch.writer import StatusWriter, WriterSettings

QUICK = WriterSettings(quiet=0.01, longest=0.05, loading=0.05, retry=0.05)
SOON = PublisherSettings(retry=0.05, apart=0.0)


@contextmanager
def publishing(store: Store, mirror: Mirror) -> Iterator[Publisher]:
    writer = StatusWriter(store, mirror, QUICK)
    publisher = Publisher(mirror, writer, settings=SOON)
    writer.start()
    publisher.start()
    try:
        yield publisher
    finally:
        writer.stop()
        publisher.stop()


@pytest.fixture
def running(store: Store, mirror: Mirror, served: Any) -> Iterator[Publisher]:
    with publishing(store, mirror) as publisher:
        yield publisher


def test_it_pushes_what_it_commits(
    running: Publisher, source: FleetRepo, mirror: Mirror, served: Any, eventually: Callable[..., Any]
) -> None:
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the status is pushed")
    status(served, replicas=2)
    eventually(lambda: "replicas: 2" in pushed(source)[DEPLOYMENT], what="the change is pushed")
    assert source.repo.ref(BRANCH) == mirror.repository.ref(STATUS_REF)
    assert not running.lost.is_set()


def test_stopping_pushes_what_waits(store: Store, mirror: Mirror, source: FleetRepo, served: Any) -> None:
    with publishing(store, mirror):
        status(served, replicas=7)
    assert "replicas: 7" in pushed(source)[DEPLOYMENT]


def test_a_restart_pushes_on_top_of_what_it_published(
    source: FleetRepo, store: Store, mirror: Mirror, served: Any
) -> None:
    with publishing(store, mirror):
        pass
    first = mirror.refresh().status
    assert first is not None
    with publishing(store, mirror) as again:
        status(served, replicas=1)
    head = source.repo.ref(BRANCH)
    assert head is not None
    assert source.repo.commit(head).parents[0] == first
    assert not again.lost.is_set()


def test_when_somebody_without_a_name_moved_the_branch_its_files_go_on_top(
    running: Publisher, source: FleetRepo, store: Store, served: Any, eventually: Callable[..., Any]
) -> None:
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the first push")
    theirs = elsewhere(source, {DEPLOYMENT: b"theirs\n", "workspaces/root/_status/_/x/y.yaml": b"theirs\n"})
    status(served, replicas=2)
    head = eventually(lambda: on_top_of(source, theirs), what="a commit on top of the other's")
    assert not running.lost.is_set()
    found = pushed(source)
    assert "replicas: 2" in found[DEPLOYMENT]
    assert "workspaces/root/_summary.yaml" in found
    assert "workspaces/root/_status/_/x/y.yaml" not in found
    assert source.repo.is_ancestor(theirs, head)


def test_what_the_other_wrote_over_is_restored_even_if_nothing_changed_here(
    running: Publisher, source: FleetRepo, store: Store, served: Any, eventually: Callable[..., Any]
) -> None:
    """Only the file that changes next is in our log; the others of ours are brought back too."""
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the first push")
    facts = f"id: fleet-id\nrevision: {store.revision() + 10**15}\n".encode()
    theirs = elsewhere(source, {DEPLOYMENT: b"theirs\n", "fleet.yaml": facts})
    served.summary("root", Summary(own(source.head), errors=["wrong"], served=own(source.head)))
    served.put("deployments.apps:9f86", CLUSTER, "another")
    eventually(lambda: on_top_of(source, theirs), what="a commit on top of the other's")
    eventually(lambda: "replicas: 1" in pushed(source)[DEPLOYMENT], what="our status is back")
    eventually(lambda: "wrong" in pushed(source)["workspaces/root/_summary.yaml"], what="our summary is there")


def test_a_source_that_was_away_while_there_was_nothing_to_push_is_no_trouble_any_more(
    running: Publisher, source: FleetRepo, mirror: Mirror, served: Any, eventually: Callable[..., Any]
) -> None:
    told: list[str] = [""]
    running.told = told.append
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the push")
    eventually(lambda: source.repo.ref(BRANCH) == mirror.repository.ref(STATUS_REF), what="all is pushed")
    path = source.repo.path
    path.rename(path.with_name("away"))
    running.ring()
    eventually(lambda: told[-1].startswith("status branch: there is no repository"), what="it is told")
    path.with_name("away").rename(path)
    eventually(lambda: told[-1] == "", what="it is over")


def test_a_branch_that_somebody_deleted_is_made_again(
    running: Publisher, source: FleetRepo, served: Any, eventually: Callable[..., Any]
) -> None:
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the first push")
    move_ref(source.repo, BRANCH, None, source.repo.ref(BRANCH))
    status(served, replicas=2)
    eventually(lambda: "replicas: 2" in pushed(source).get(DEPLOYMENT, ""), what="it is there again")
    assert not running.lost.is_set()


@pytest.mark.parametrize("failure", [RepositoryUnreadable("it does not answer"), OSError("the disk is full")])
def test_a_source_that_is_away_stops_neither_commits_nor_what_comes_later(
    source: FleetRepo,
    store: Store,
    mirror: Mirror,
    served: Any,
    eventually: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
) -> None:
    push, asked, back = mirror.push_status, list[str](), list[bool]()

    def away(commit: str, expected: str | None) -> None:
        asked.append(commit)
        if not back:
            raise failure
        push(commit, expected)

    monkeypatch.setattr(mirror, "push_status", away)
    with publishing(store, mirror):
        eventually(lambda: asked, what="a push was tried")
        status(served, replicas=1)
        eventually(lambda: DEPLOYMENT in source_files(mirror, mirror.repository.ref(STATUS_REF) or ""))
        assert source.repo.ref(BRANCH) is None
        back.append(True)
        eventually(lambda: source.repo.ref(BRANCH) == mirror.repository.ref(STATUS_REF), what="the push came later")


def test_a_checked_out_branch_is_left_alone(
    tmp_path: Path, store: Store, source: FleetRepo, served: Any, eventually: Callable[..., Any]
) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "--quiet", str(source.path), str(work)], check=True)
    subprocess.run(["git", "-C", str(work), "checkout", "--quiet", "-b", "treeplane/status"], check=True)
    mirror = Mirror(tmp_path / "other", str(work), "main", "treeplane/status")
    with publishing(store, mirror) as publisher:
        status(served, replicas=1)
        eventually(lambda: DEPLOYMENT in source_files(mirror, mirror.repository.ref(STATUS_REF) or ""))
        assert not publisher.publish()
        assert not publisher.lost.is_set()
    head = subprocess.run(["git", "-C", str(work), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert head.stdout.strip() == source.head


def test_a_source_that_refuses_every_push_is_asked_now_and_then(
    store: Store, source: FleetRepo, served: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    hook = source.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    mirror = Mirror(tmp_path / "far", f"file://{source.path}", "main", "treeplane/status")
    mirror.refresh()
    publisher = Publisher(mirror, writer := StatusWriter(store, mirror, QUICK), settings=SOON)
    writer.flush()
    for _ in range(3):
        assert not publisher.publish()
    assert caplog.text.count("pre-receive hook declined") == 1, "and that is said once"


@pytest.mark.parametrize("scheme", ["file://", ""])
def test_a_url_that_takes_no_push_is_tried_ever_less_often(
    store: Store, source: FleetRepo, served: Any, tmp_path: Path, scheme: str, eventually: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """A repository on this machine asks nobody's patience."""
    hook = source.path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "--quiet", str(source.path), str(work)], check=True)
    subprocess.run(["git", "-C", str(work), "checkout", "--quiet", "-b", "treeplane/status"], check=True)
    place = f"file://{source.path}" if scheme else str(work)
    mirror = Mirror(tmp_path / "far", place, "main", "treeplane/status")
    mirror.refresh()
    failures: list[int] = []

    def noted(every: float, count: int) -> float:
        failures.append(count)
        return every

    monkeypatch.setattr(publisher, "pause", noted)
    with publishing(store, mirror):
        status(served, replicas=1)
        eventually(lambda: len(failures) > 3, 30)
    assert failures[:4] == ([1, 2, 3, 4] if scheme else [0, 0, 0, 0])
