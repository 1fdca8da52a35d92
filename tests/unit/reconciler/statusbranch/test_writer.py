"""The status branch in a real repository: commits only for what means something, and pushes that respect others."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.fleetrepo import FleetRepo

from apiserver.model.keys import Key
from apiserver.storage.protocol import Delete, Store
from reconciler.plan.summary import Summary
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.repository.write import commit_tree, edit_tree, move_ref
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.writer import StatusWriter, WriterSettings

BRANCH = "refs/heads/treeplane/status"
WEB, CLUSTER = "workspaces/root/web", "webcluster000000"
DEPLOYMENT = f"{WEB}/_status/default/deployments.apps/web.yaml"
QUICK = WriterSettings(settle=0.01, longest=0.05, retry=0.05)


@pytest.fixture
def writer(store: Store, mirror: Mirror, served: Any) -> StatusWriter:
    return StatusWriter(store, mirror, None, QUICK)


@pytest.fixture
def running(writer: StatusWriter, request: pytest.FixtureRequest) -> StatusWriter:
    request.addfinalizer(writer.stop)
    writer.start()
    return writer


def status(served: Any, **content: Any) -> Key:
    key: Key = served.put("deployments.apps:9f86", CLUSTER, "web", status=content)
    return key


def test_the_first_commit_covers_all_and_names_what_was_reconciled(
    writer: StatusWriter, source: FleetRepo, mirror: Mirror, served: Any
) -> None:
    status(served, replicas=1)
    commit = writer.flush()
    assert commit is not None
    info = mirror.repository.commit(commit)
    assert info.parents == (source.head,)
    assert info.message.endswith(f"\n\nSource-Commit: {source.head}\n")
    assert set(source_files(mirror, commit)) == {
        "fleet.yaml",
        "workspaces/root/_summary.yaml",
        f"{WEB}/_summary.yaml",
        DEPLOYMENT,
    }
    assert mirror.repository.ref(STATUS_REF) == commit
    recorded = RecordedFleet(mirror.repository, commit)
    assert (recorded.source, recorded.facts().id) == (source.head, "fleet-id")
    assert recorded.facts().revision == served.store.revision()


def test_a_later_commit_has_the_branch_and_the_reconciled_commit_as_parents(
    writer: StatusWriter, source: FleetRepo, mirror: Mirror, served: Any
) -> None:
    first = writer.flush()
    second_source = source.commit({"workspaces/root/b.yaml": ""})
    served.fleet(second_source)
    status(served, replicas=1)
    second = writer.flush()
    assert second is not None
    assert mirror.repository.commit(second).parents == (first, second_source)
    assert f"Source-Commit: {second_source}" in mirror.repository.commit(second).message
    assert RecordedFleet(mirror.repository, second).source == second_source


def test_only_semantic_changes_make_commits(writer: StatusWriter, source: FleetRepo, served: Any) -> None:
    status(served, replicas=1, lastSyncerHeartbeatTime="2026-01-01T00:00:00Z")
    assert writer.flush() is not None
    assert writer.flush() is None
    status(served, lastSyncerHeartbeatTime="2026-02-02T00:00:00Z", replicas=1)
    served.put("secrets", CLUSTER, "s", data={"password": "aHVudGVyMg=="})
    served.put("events", CLUSTER, "e", status={"phase": "x"})
    served.put("configmaps", CLUSTER, "c", data={"a": "b"})
    assert writer.flush() is None
    served.fleet(source.commit({"README.md": "elsewhere"}))
    assert writer.flush() is None
    status(served, replicas=2)
    assert writer.flush() is not None


def test_what_comes_and_goes_between_two_batches_leaves_nothing(
    writer: StatusWriter, store: Store, served: Any
) -> None:
    writer.flush()
    store.write(Delete(status(served, replicas=1))).result()
    assert writer.flush() is None


def test_a_removed_workspace_goes_from_the_branch(writer: StatusWriter, mirror: Mirror, served: Any) -> None:
    status(served, replicas=1)
    writer.flush()
    served.remove("root:web", CLUSTER)
    commit = writer.flush()
    assert commit is not None
    assert set(source_files(mirror, commit)) == {"fleet.yaml", "workspaces/root/_summary.yaml"}


def test_durable_means_committed_in_the_mirror(writer: StatusWriter, store: Store, mirror: Mirror, served: Any) -> None:
    status(served, replicas=1)
    writer.durable(store.revision())
    head = mirror.repository.ref(STATUS_REF)
    assert head is not None
    assert DEPLOYMENT in source_files(mirror, head)
    writer.durable(store.revision())
    assert mirror.repository.ref(STATUS_REF) == head


def test_nothing_is_committed_while_a_commit_is_on_its_way(store: Store, mirror: Mirror, served: Any) -> None:
    """What some workspaces are at by then is not the commit that would be named."""
    stepping = threading.Lock()
    writer = StatusWriter(store, mirror, None, QUICK, stepping=stepping)
    status(served, replicas=1)
    with stepping:
        waiting = threading.Thread(target=writer.durable, args=(store.revision(),))
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
        assert mirror.repository.ref(STATUS_REF) is None
    waiting.join(10)
    assert mirror.repository.ref(STATUS_REF) is not None


def test_nothing_is_committed_before_a_commit_is_served(store: Store, mirror: Mirror) -> None:
    assert StatusWriter(store, mirror, None, QUICK).flush() is None


def test_after_a_restart_it_goes_on_where_it_was(
    writer: StatusWriter, store: Store, mirror: Mirror, served: Any
) -> None:
    status(served, replicas=1)
    first = writer.flush()
    again = StatusWriter(store, mirror, None, QUICK)
    assert again.flush() is None
    status(served, replicas=2)
    second = again.flush()
    assert second is not None
    assert mirror.repository.commit(second).parents[0] == first


def test_after_a_lost_log_all_is_compared_and_what_nothing_explains_goes(
    writer: StatusWriter, store: Store, mirror: Mirror, served: Any
) -> None:
    old = served.put("deployments.apps:9f86", CLUSTER, "old", status={"replicas": 1})
    served.put("deployments.apps:9f86", CLUSTER, "web", status={"replicas": 1})
    first = writer.flush()
    assert first is not None
    store.write(Delete(old)).result()
    served.put("deployments.apps:9f86", CLUSTER, "new", status={"replicas": 1})
    forget_the_log(store, served)
    second = StatusWriter(store, mirror, None, QUICK).flush()
    assert second is not None
    before, after = source_files(mirror, first), source_files(mirror, second)
    assert before.keys() - after.keys() == {f"{WEB}/_status/default/deployments.apps/old.yaml"}
    assert after.keys() - before.keys() == {f"{WEB}/_status/default/deployments.apps/new.yaml"}
    assert after[DEPLOYMENT] == before[DEPLOYMENT]


def test_a_lost_log_alone_is_no_commit(writer: StatusWriter, store: Store, mirror: Mirror, served: Any) -> None:
    writer.flush()
    forget_the_log(store, served)
    assert StatusWriter(store, mirror, None, QUICK).flush() is None


def test_it_pushes_what_it_commits(
    running: StatusWriter, source: FleetRepo, mirror: Mirror, served: Any, eventually: Callable[..., Any]
) -> None:
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the status is pushed")
    status(served, replicas=2)
    eventually(lambda: "replicas: 2" in pushed(source)[DEPLOYMENT], what="the change is pushed")
    assert source.repo.ref(BRANCH) == mirror.repository.ref(STATUS_REF)
    assert not running.fenced.is_set()


def test_stopping_pushes_what_waits(writer: StatusWriter, source: FleetRepo, served: Any) -> None:
    writer.start()
    status(served, replicas=7)
    writer.stop()
    assert "replicas: 7" in pushed(source)[DEPLOYMENT]


def test_a_restart_pushes_on_top_of_what_it_published(
    source: FleetRepo, store: Store, mirror: Mirror, served: Any
) -> None:
    writer = StatusWriter(store, mirror, None, QUICK)
    writer.start()
    writer.stop()
    first = mirror.refresh().status
    assert first is not None
    again = StatusWriter(store, mirror, first, QUICK)
    again.start()
    status(served, replicas=1)
    again.stop()
    head = source.repo.ref(BRANCH)
    assert head is not None
    assert source.repo.commit(head).parents[0] == first
    assert not again.fenced.is_set()


def test_when_another_moved_the_branch_it_puts_its_files_on_top(
    running: StatusWriter, source: FleetRepo, store: Store, served: Any, eventually: Callable[..., Any]
) -> None:
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the first push")
    theirs = elsewhere(source, {DEPLOYMENT: b"theirs\n", "workspaces/root/_status/_/x/y.yaml": b"theirs\n"})
    status(served, replicas=2)
    head = eventually(lambda: on_top_of(source, theirs), what="a commit on top of the other's")
    eventually(lambda: not running.fenced.is_set(), what="it may write to clusters again")
    found = pushed(source)
    assert "replicas: 2" in found[DEPLOYMENT]
    assert "workspaces/root/_summary.yaml" in found
    assert "workspaces/root/_status/_/x/y.yaml" not in found
    assert source.repo.is_ancestor(theirs, head)


def test_what_the_other_wrote_over_is_restored_even_if_nothing_changed_here(
    running: StatusWriter, source: FleetRepo, store: Store, served: Any, eventually: Callable[..., Any]
) -> None:
    """Only the file that changes next is in our log; the others of ours are brought back too."""
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the first push")
    facts = f"id: fleet-id\nrevision: {store.revision() + 10**15}\n".encode()
    theirs = elsewhere(source, {DEPLOYMENT: b"theirs\n", "fleet.yaml": facts})
    served.summary("root", Summary(source.head, errors=["wrong"], served=source.head))
    eventually(lambda: on_top_of(source, theirs), what="a commit on top of the other's")
    eventually(lambda: "replicas: 1" in pushed(source)[DEPLOYMENT], what="our status is back")
    eventually(lambda: "wrong" in pushed(source)["workspaces/root/_summary.yaml"], what="our summary is there")


def test_a_branch_that_somebody_deleted_is_made_again(
    running: StatusWriter, source: FleetRepo, served: Any, eventually: Callable[..., Any]
) -> None:
    status(served, replicas=1)
    eventually(lambda: DEPLOYMENT in pushed(source), what="the first push")
    move_ref(source.repo, BRANCH, None, source.repo.ref(BRANCH))
    status(served, replicas=2)
    eventually(lambda: "replicas: 2" in pushed(source).get(DEPLOYMENT, ""), what="it is there again")
    eventually(lambda: not running.fenced.is_set(), what="it may write to clusters again")


def test_a_source_that_is_away_stops_neither_commits_nor_what_comes_later(
    source: FleetRepo, store: Store, mirror: Mirror, served: Any, eventually: Callable[..., Any]
) -> None:
    away = Away(mirror)
    writer = StatusWriter(store, away, None, QUICK)  # type: ignore[arg-type]
    writer.start()
    try:
        status(served, replicas=1)
        eventually(lambda: away.asked, what="a push was tried")
        writer.durable(store.revision())
        head = mirror.repository.ref(STATUS_REF)
        assert head is not None
        assert DEPLOYMENT in source_files(mirror, head)
        assert source.repo.ref(BRANCH) is None
        away.back = True
        eventually(lambda: source.repo.ref(BRANCH) == mirror.repository.ref(STATUS_REF), what="the push came later")
    finally:
        writer.stop()


def test_a_checked_out_branch_is_left_alone(
    tmp_path: Path, store: Store, source: FleetRepo, served: Any, eventually: Callable[..., Any]
) -> None:
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "--quiet", str(source.path), str(work)], check=True)
    subprocess.run(["git", "-C", str(work), "checkout", "--quiet", "-b", "treeplane/status"], check=True)
    mirror = Mirror(tmp_path / "other", str(work), "main", "treeplane/status")
    writer = StatusWriter(store, mirror, mirror.refresh().status, QUICK)
    writer.start()
    try:
        status(served, replicas=1)
        writer.durable(store.revision())
        assert not writer.fenced.is_set()
        head = subprocess.run(["git", "-C", str(work), "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        assert head.stdout.strip() == source.head
    finally:
        writer.stop()


class Away:
    """A mirror whose source does not answer until `back` is set."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.repository = mirror.repository
        self.asked = self.back = False

    def push_status(self, commit: str, expected: str | None) -> None:
        self.asked = True
        if not self.back:
            raise RepositoryUnreadable("the source does not answer")
        self._mirror.push_status(commit, expected)


def source_files(mirror: Mirror, commit: str) -> dict[str, str]:
    recorded = RecordedFleet(mirror.repository, commit)
    tree = mirror.repository.commit(commit).tree
    out = {}
    for path in recorded.paths():
        entry = mirror.repository.entry_at(tree, path)
        assert entry is not None
        out[path] = mirror.repository.blob(entry.id).decode()
    return out


def pushed(source: FleetRepo) -> dict[str, str]:
    head = source.repo.ref(BRANCH)
    return source.files(head) if head else {}


def on_top_of(source: FleetRepo, commit: str) -> str:
    head = source.repo.ref(BRANCH)
    return head if head is not None and head != commit and source.repo.is_ancestor(commit, head) else ""


def elsewhere(source: FleetRepo, files: dict[str, bytes]) -> str:
    """A commit of another server on the status branch."""
    head = source.repo.ref(BRANCH)
    assert head is not None
    tree = edit_tree(source.repo, source.repo.commit(head).tree, files)
    return commit_tree(source.repo, tree, [head, source.head], "Theirs\n", None, BRANCH, head)


def forget_the_log(store: Store, served: Any) -> None:
    served.put("configmaps", CLUSTER, "unlogged", log=False)
    assert store.oldest() == store.revision()
