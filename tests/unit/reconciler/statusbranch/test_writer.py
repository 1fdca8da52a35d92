"""The status branch in the mirror: commits only for what means something, when it means something."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.signing import git_says_good, needs_ssh
from support.statusfiles import CLUSTER, DEPLOYMENT, WEB, forget_the_log, source_files, status

from apiserver.model.commits import own
from apiserver.storage.protocol import Delete, Store, View
from reconciler.plan.summary import Summary
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.signatures.own import CommitKey
from reconciler.statusbranch import writer as writers
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.render import Files, Rendering
from reconciler.statusbranch.stretches import Stretches
from reconciler.statusbranch.underway import UnderWay
from reconciler.statusbranch.writer import StatusWriter, WriterSettings

QUICK = WriterSettings(quiet=0.01, longest=0.05, loading=0.05, retry=0.05)


@pytest.fixture
def under_way() -> UnderWay:
    return UnderWay()


@pytest.fixture
def writer(store: Store, mirror: Mirror, served: Any, under_way: UnderWay) -> StatusWriter:
    return StatusWriter(store, mirror, QUICK, under_way=under_way)


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
    assert (recorded.source, recorded.facts().id) == (own(source.head), "fleet-id")
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
    assert RecordedFleet(mirror.repository, second).source == own(second_source)


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


def test_what_is_served_is_recorded_when_its_branch_leaves_it(
    writer: StatusWriter, mirror: Mirror, source: FleetRepo, served: Any
) -> None:
    writer.flush()
    left = source.commit({"README.md": "elsewhere"})
    served.fleet(left, error="main: was rewritten")
    recorded = writer.flush()
    assert recorded is not None
    assert RecordedFleet(mirror.repository, recorded).source == own(left)
    assert writer.flush() is None


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


def test_a_workspace_that_went_and_came_again_is_recorded(writer: StatusWriter, mirror: Mirror, served: Any) -> None:
    """In one look, and under the same logical cluster: its branch left the commit that it came with, and went back."""
    writer.flush()
    served.remove("root:web", CLUSTER)
    served.workspace("root:web", CLUSTER)
    served.bind(CLUSTER)
    status(served, replicas=1)
    writer.flush()
    files = source_files(mirror, mirror.repository.ref(STATUS_REF) or "")
    assert f"{WEB}/_summary.yaml" in files
    assert "replicas: 1" in files[DEPLOYMENT]


def test_durable_means_committed_in_the_mirror(writer: StatusWriter, store: Store, mirror: Mirror, served: Any) -> None:
    status(served, replicas=1)
    writer.durable(store.revision())
    head = mirror.repository.ref(STATUS_REF)
    assert head is not None
    assert DEPLOYMENT in source_files(mirror, head)
    writer.durable(store.revision())
    assert mirror.repository.ref(STATUS_REF) == head


@pytest.fixture
def on_its_way(source: FleetRepo, served: Any) -> str:
    """A commit of which some workspaces are in the store and others are not."""
    served.fleet(source.head, arriving=(later := source.commit({"workspaces/root/b.yaml": ""}),))
    return later


def test_what_is_past_the_named_commit_says_where_it_is(
    writer: StatusWriter, mirror: Mirror, source: FleetRepo, served: Any, on_its_way: str
) -> None:
    served.workspace("root:web", CLUSTER, head=on_its_way)
    status(served, replicas=1)
    writer.durable(served.store.revision())
    head = mirror.repository.ref(STATUS_REF)
    assert head is not None
    recorded, files = RecordedFleet(mirror.repository, head), source_files(mirror, head)
    assert recorded.source == own(source.commits[0])
    assert recorded.facts().arriving == (own(on_its_way),)
    assert recorded.ahead() == {WEB: own(on_its_way)}
    assert f"at: {on_its_way}" in files[f"{WEB}/_summary.yaml"]
    assert "at:" not in files["workspaces/root/_summary.yaml"]
    assert "replicas: 1" in files[DEPLOYMENT]
    assert mirror.repository.is_ancestor(on_its_way, head), "a clone of the branch has the commit"


def test_what_came_with_a_commit_on_its_way_waits_for_its_end_where_nothing_else_is_known_of_it(
    writer: StatusWriter, mirror: Mirror, store: Store, served: Any, on_its_way: str, under_way: UnderWay
) -> None:
    new, more = "workspaces/root/new", "workspaces/root/more"
    writer.flush()
    under_way.__enter__()
    served.workspace("root:new", "newcluster000000", head=on_its_way, origin=on_its_way)
    served.workspace("root:more", "morecluster00000", head=on_its_way, origin=on_its_way)
    served.put("deployments.apps:9f86", "morecluster00000", "web", status={"replicas": 1})
    writer.flush()
    head = mirror.repository.ref(STATUS_REF) or ""
    files = source_files(mirror, head)
    assert f"{new}/_summary.yaml" not in files
    assert f"at: {on_its_way}" in files[f"{more}/_summary.yaml"]
    facts = RecordedFleet(mirror.repository, head).facts()
    assert facts.settled < facts.revision == store.revision()

    served.fleet(on_its_way)
    for again in (writer, StatusWriter(store, mirror, QUICK)):
        before = mirror.repository.ref(STATUS_REF)
        again.flush()
        head = mirror.repository.ref(STATUS_REF) or ""
        files = source_files(mirror, head)
        assert "at:" not in files[f"{new}/_summary.yaml"] + files[f"{more}/_summary.yaml"]
        facts = RecordedFleet(mirror.repository, head).facts()
        assert (facts.arriving, facts.settled) == ((), facts.revision)
        assert (head == before) == (again is not writer), "once is enough"


def test_a_writer_that_starts_anew_says_again_what_the_one_before_it_left(
    writer: StatusWriter, mirror: Mirror, store: Store, served: Any, on_its_way: str, under_way: UnderWay
) -> None:
    writer.flush()
    under_way.__enter__()
    served.workspace("root:new", "newcluster000000", head=on_its_way, origin=on_its_way)
    served.workspace("root:web", CLUSTER, head=on_its_way)
    writer.flush()
    served.fleet(on_its_way)
    StatusWriter(store, mirror, QUICK).flush()
    files = source_files(mirror, mirror.repository.ref(STATUS_REF) or "")
    assert "workspaces/root/new/_summary.yaml" in files
    assert "at:" not in files[f"{WEB}/_summary.yaml"]


def test_what_is_recorded_in_a_load_costs_what_changed_since_and_not_the_load(
    writer: StatusWriter,
    mirror: Mirror,
    store: Store,
    served: Any,
    on_its_way: str,
    under_way: UnderWay,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writer.flush()
    under_way.__enter__()
    for n in range(40):
        served.workspace(f"root:n{n}", f"n{n:015}", head=on_its_way, origin=on_its_way)
    rendered: list[str] = []
    summary = Rendering._summary

    def counted(self: Rendering, cluster: str, *args: Any) -> bytes:
        rendered.append(cluster)
        return summary(self, cluster, *args)

    monkeypatch.setattr(Rendering, "_summary", counted)
    writer.flush()
    assert len({each for each in rendered if each.startswith("n")}) == 40
    rendered.clear()
    status(served, replicas=1)
    writer.flush()
    assert set(rendered) == {CLUSTER}
    rendered.clear()
    served.fleet(on_its_way)
    status(served, replicas=2)
    writer.flush()
    assert len(set(rendered)) == 41
    rendered.clear()
    status(served, replicas=3)
    writer.flush()
    assert set(rendered) == {CLUSTER}


@pytest.mark.parametrize("rendering", ["everything", "changed"])
def test_a_commit_goes_into_the_store_while_what_was_before_is_rendered(
    store: Store, mirror: Mirror, source: FleetRepo, served: Any, monkeypatch: pytest.MonkeyPatch, rendering: str
) -> None:
    """Rendering a load of a hundred thousand takes long, and nobody waits for it: it is of one moment of the store."""
    renders, go_on = threading.Event(), threading.Event()
    writer = StatusWriter(store, mirror, QUICK)
    if rendering == "changed":
        writer.flush()
    status(served, replicas=1)
    render = getattr(Rendering, rendering)

    def slow(*args: Any) -> Files:
        renders.set()
        assert go_on.wait(10)
        files: Files = render(*args)
        return files

    monkeypatch.setattr(Rendering, rendering, slow)
    before, until = source.head, store.revision()
    recording = threading.Thread(target=writer.durable, args=(until,))
    recording.start()
    assert renders.wait(10)
    status(served, replicas=2)
    served.workspace("root:new", "newcluster000000")
    served.fleet(source.commit({"workspaces/root/b.yaml": ""}))
    served.summary(CLUSTER, Summary(own(source.head)))
    go_on.set()
    recording.join(10)
    first = mirror.repository.ref(STATUS_REF)
    assert first is not None
    recorded = RecordedFleet(mirror.repository, first)
    assert (recorded.source, recorded.facts().revision) == (own(before), until)
    files = source_files(mirror, first)
    assert "replicas: 1" in files[DEPLOYMENT]
    assert before in files[f"{WEB}/_summary.yaml"]
    assert "workspaces/root/new/_summary.yaml" not in files
    writer.durable(store.revision())
    second = mirror.repository.ref(STATUS_REF)
    assert second is not None
    assert RecordedFleet(mirror.repository, second).source == own(source.head)
    files = source_files(mirror, second)
    assert "replicas: 2" in files[DEPLOYMENT]
    assert source.head in files[f"{WEB}/_summary.yaml"]
    assert "workspaces/root/new/_summary.yaml" in files


def test_nothing_is_committed_before_a_commit_is_served(store: Store, mirror: Mirror) -> None:
    assert StatusWriter(store, mirror, QUICK).flush() is None


@needs_ssh
def test_each_commit_is_signed_at_the_time_that_it_says(
    store: Store, mirror: Mirror, source: FleetRepo, served: Any, tmp_path: Path
) -> None:
    key = CommitKey.open(tmp_path / "keys")
    (tmp_path / "allowed").write_text(f"treeplane {key.public}\n")
    writer = StatusWriter(store, mirror, QUICK, sign=key.sign, now=lambda: 1_800_000_000.7)
    first = writer.flush()
    status(served, replicas=1)
    second = writer.flush()
    assert first is not None
    writer.join(first)
    joined = mirror.repository.ref(STATUS_REF)
    for commit in (first, second, joined):
        assert commit is not None
        assert git_says_good(mirror.repository.path, commit, tmp_path / "allowed")
    assert mirror.repository.commit(first).time == 1_800_000_000
    assert second != joined


def test_after_a_restart_it_goes_on_where_it_was(
    writer: StatusWriter, store: Store, mirror: Mirror, served: Any
) -> None:
    status(served, replicas=1)
    first = writer.flush()
    again = StatusWriter(store, mirror, QUICK)
    assert again.flush() is None
    status(served, replicas=2)
    second = again.flush()
    assert second is not None
    assert mirror.repository.commit(second).parents[0] == first


@pytest.mark.parametrize("left", [False, True], ids=["the same commit", "an earlier one"])
def test_what_leaves_nothing_is_not_read_again_after_a_restart(
    writer: StatusWriter, store: Store, mirror: Mirror, served: Any, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    """It counts with the commit that it was found with; a mirror that was copied back may be at one before it."""
    first = writer.flush()
    assert first is not None
    recorded = store.revision()
    status(served, replicas=1)
    writer.start()
    for number in range(5):
        served.put("secrets", CLUSTER, f"s{number}", data={"password": "aHVudGVyMg=="})
    writer.stop()
    until = store.revision()
    if left:
        mirror.keep_status(first)
    status(served, configured=2)
    asked: list[int] = []
    changed = Stretches._changed

    def noting(self: Stretches, view: View) -> list[Files]:
        asked.append(self._after)
        return changed(self, view)

    monkeypatch.setattr(Stretches, "_changed", noting)
    commit = StatusWriter(store, mirror, QUICK).flush()
    assert commit is not None
    assert asked[0] == (recorded if left else until)
    assert "configured: 2" in source_files(mirror, commit)[DEPLOYMENT]


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
    second = StatusWriter(store, mirror, QUICK).flush()
    assert second is not None
    before, after = source_files(mirror, first), source_files(mirror, second)
    assert before.keys() - after.keys() == {f"{WEB}/_status/default/deployments.apps/old.yaml"}
    assert after.keys() - before.keys() == {f"{WEB}/_status/default/deployments.apps/new.yaml"}
    assert after[DEPLOYMENT] == before[DEPLOYMENT]


def test_what_the_served_commit_says_of_the_fleet_is_recorded_and_nothing_else_that_changes_nothing(
    writer: StatusWriter, source: FleetRepo, mirror: Mirror, served: Any
) -> None:
    """A hook elsewhere goes by treeplane.yaml of the commit that is named."""
    assert writer.flush() is not None
    served.fleet(source.commit({"README.md": "x"}))
    assert writer.flush() is None
    said = source.commit({"treeplane.yaml": f"{TREEPLANE_YAML}spec: {{safety: {{owners: true}}}}\n"})
    served.fleet(said)
    commit = writer.flush()
    assert commit is not None
    assert RecordedFleet(mirror.repository, commit).source == own(said)
    assert writer.flush() is None


def test_and_soon(store: Store, source: FleetRepo, mirror: Mirror, served: Any, eventually: Callable[..., Any]) -> None:
    writer = StatusWriter(store, mirror, replace(QUICK, looks=0.02))
    writer.start()
    try:
        said = source.commit({"treeplane.yaml": f"{TREEPLANE_YAML}spec: {{safety: {{owners: true}}}}\n"})
        served.fleet(said)

        def recorded() -> bool:
            head = mirror.repository.ref(STATUS_REF)
            return head is not None and RecordedFleet(mirror.repository, head).source == own(said)

        eventually(recorded)
    finally:
        writer.stop()


def test_a_lost_log_alone_is_no_commit(writer: StatusWriter, store: Store, mirror: Mirror, served: Any) -> None:
    writer.flush()
    forget_the_log(store, served)
    assert StatusWriter(store, mirror, QUICK).flush() is None


def test_what_cannot_wait_is_committed_at_once_and_statuses_with_it(
    store: Store, mirror: Mirror, served: Any, eventually: Callable[..., Any]
) -> None:
    writer = StatusWriter(store, mirror, WriterSettings(quiet=100, longest=100))
    writer.start()
    try:
        status(served, replicas=1)
        head = mirror.repository.ref(STATUS_REF)
        assert head is not None
        status(served, replicas=2)
        served.put("deployments.apps:9f86", CLUSTER, "other", finalizers=["a/b"])
        found = eventually(lambda: mirror.repository.ref(STATUS_REF) != head and mirror.repository.ref(STATUS_REF))
        assert "replicas: 2" in source_files(mirror, found)[DEPLOYMENT]
    finally:
        writer.stop()


@pytest.mark.parametrize("ends", [True, False], ids=["which ends", "which goes on and on"])
def test_who_is_begun_in_a_load_lets_it_go_first(
    store: Store, mirror: Mirror, served: Any, under_way: UnderWay, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    recorded: list[str | None] = []

    def is_so() -> bool:
        recorded.append(mirror.repository.ref(STATUS_REF))
        return not ends or len(recorded) < 3

    ticks = itertools.count(1000.0, 0.005)
    monkeypatch.setattr(under_way, "is_so", is_so)
    monkeypatch.setattr(writers, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    waits = replace(QUICK, together=0.001, loading=100.0 if ends else 0.02)
    writer = StatusWriter(store, mirror, waits, under_way=under_way)
    writer.start()
    try:
        assert recorded[:3] == [None] * 3, "it was waited for"
        assert mirror.repository.ref(STATUS_REF) is not None
    finally:
        writer.stop()


def test_statuses_alone_are_committed_when_their_window_ends(
    store: Store, mirror: Mirror, served: Any, eventually: Callable[..., Any]
) -> None:
    status(served, replicas=1)
    writer = StatusWriter(store, mirror, QUICK)
    writer.start()
    try:
        status(served, replicas=2)
        eventually(lambda: "replicas: 2" in source_files(mirror, mirror.repository.ref(STATUS_REF) or "")[DEPLOYMENT])
    finally:
        writer.stop()


@pytest.mark.parametrize("failure", [RepositoryUnreadable("the disk is full"), OSError("the disk is full")])
def test_what_could_not_be_committed_is_tried_again(
    store: Store,
    mirror: Mirror,
    served: Any,
    eventually: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    failure: Exception,
) -> None:
    writer, failures, told = StatusWriter(store, mirror, QUICK), list[int](), list[str]()
    writer.told = told.append
    writer.start()
    made = writer._made

    def failing(*arguments: Any) -> str:
        if len(failures) < 3:
            failures.append(1)
            raise failure
        return made(*arguments)

    monkeypatch.setattr(writer, "_made", failing)
    try:
        status(served, replicas=3)
        eventually(lambda: DEPLOYMENT in source_files(mirror, mirror.repository.ref(STATUS_REF) or ""))
        assert len(failures) == 3
        assert told[:3] == ["what happens is not recorded, until this is mended: the disk is full"] * 3
        eventually(lambda: told[-1] == "")
    finally:
        writer.stop()


def test_a_commit_says_what_changed(writer: StatusWriter, mirror: Mirror, served: Any) -> None:
    writer.flush()
    status(served, replicas=1)
    commit = writer.flush()
    assert commit is not None
    subject = mirror.repository.commit(commit).message.splitlines()[0]
    assert subject == "deployments.apps default/web created in root:web"


def test_directories_that_group_may_be_called_as_ours_are(
    writer: StatusWriter, mirror: Mirror, store: Store, served: Any
) -> None:
    """Whoever may push chooses them: nothing that they hold may get in the way of a record."""
    status(served, replicas=1)
    served.workspace("root:web:child", "childcluster0000", f"{DEPLOYMENT}/child")
    commit = writer.flush()
    assert commit is not None
    files = source_files(mirror, commit)
    assert "replicas: 1" in files[DEPLOYMENT]
    assert f"{WEB}/=_status/default/deployments.apps/web.yaml/child/_summary.yaml" in files
