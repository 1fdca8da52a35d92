"""The status branch's history ends at an age, and nothing that a recovery needs ends with it."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.loadedfleet import BEGINNING, A, B, LoadedFleet, configmap

from apiserver.model.commits import own
from reconciler.loading.loader import Loaded
from reconciler.repository.chain import CONTINUES, endings, first, goes_on
from reconciler.repository.mirror import HISTORY, STATUS_REF, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.statusbranch.publisher import Publisher, PublisherSettings
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.writer import StatusWriter

DAY = 86_400
BEGIN = 1_800_000_000
BRANCH = "refs/heads/treeplane/status"


class Fleet(LoadedFleet):
    """With a clock that is turned by hand."""

    now = float(BEGIN)

    def writer(self) -> StatusWriter:
        return StatusWriter(self.store, self.mirror, now=lambda: self.now)

    def record(self, files: dict[str, str | None] | None = None) -> str:
        """Something changes, and is committed in the mirror."""
        self.commit(files or {f"{A}/app.yaml": configmap(now=str(self.now))})
        made = self.writer().flush()
        assert made is not None
        return made

    def follow(self, directory: Path) -> None:
        """From now on by a URL."""
        self.mirror = Mirror(directory, f"file://{self.repo.path}", "main", "treeplane/status")
        self.loader = self.new_loader()
        self.load()

    def load(self, recorded: RecordedFleet | None = None) -> Loaded:
        self.mirror.refresh()
        return super().load(recorded)

    @property
    def status_branch(self) -> str:
        return self.mirror.repository.ref(STATUS_REF) or ""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    made = Fleet(tmp_path / "fleet")
    made.begin()
    yield made
    made.close()


def test_it_ends_after_ninety_days(fleet: Fleet) -> None:
    fleet.writer().flush()
    fleet.now += 89 * DAY
    old = fleet.record()
    fleet.now += 2 * DAY
    new = fleet.record()
    repo = fleet.mirror.repository
    assert repo.commit(new).parents == (fleet.repo.head,)
    assert repo.trailers(new)[CONTINUES] == old
    assert not repo.is_ancestor(old, new)
    assert goes_on(repo, old, new)
    assert not goes_on(repo, new, old)
    assert list(endings(repo, new)) == [old]
    [kept] = [name for name in repo.references if name.startswith(HISTORY)]
    assert kept == f"{HISTORY}2027-04-16"
    assert repo.ref(kept) == old
    fleet.now += 89 * DAY
    after = fleet.record()
    assert repo.commit(after).parents == (new, fleet.repo.head)
    assert CONTINUES not in repo.trailers(after)
    assert first(repo, after) == new


@pytest.mark.parametrize(("retention", "seconds"), [("12h", 12 * 3600), ("30d", 30 * DAY)])
def test_the_served_commit_says_when(fleet: Fleet, retention: str, seconds: int) -> None:
    fleet.writer().flush()
    fleet.record(
        {
            "treeplane.yaml": f"{TREEPLANE_YAML}spec: {{status: {{retention: {retention}}}}}\n",
            f"{A}/x.yaml": configmap("x"),
        }
    )
    fleet.now += seconds - 1
    assert CONTINUES not in fleet.mirror.repository.trailers(fleet.record())
    fleet.now += 1
    assert CONTINUES in fleet.mirror.repository.trailers(fleet.record())


def test_no_commit_is_made_for_it(fleet: Fleet) -> None:
    fleet.writer().flush()
    fleet.now += 200 * DAY
    assert fleet.writer().flush() is None


def test_an_older_versions_branch_is_as_old_as_its_first_commit(fleet: Fleet) -> None:
    fleet.writer().flush()
    repo, head = fleet.mirror.repository, fleet.status_branch
    facts = RecordedFleet(repo, head).facts()
    bare = edit_tree(
        repo, repo.commit(head).tree, {"fleet.yaml": f"id: {facts.id}\nrevision: {facts.revision}\n".encode()}
    )
    one = commit_tree(repo, bare, [fleet.repo.head], "Record\n\nSource-Commit: x\n", BEGIN - 100 * DAY)
    two = commit_tree(repo, bare, [one, fleet.repo.head], "Record\n\nSource-Commit: x\n", BEGIN)
    fleet.mirror.keep_status(two)
    assert repo.trailers(fleet.record())[CONTINUES] == two


def test_the_desired_branch_cannot_say_where_the_history_begins(fleet: Fleet) -> None:
    """Whoever may push writes its messages."""
    fleet.repo.commit({"x": "y"}, message=f"Evil\n\nSource-Commit: x\n{CONTINUES}: {fleet.repo.commits[0]}\n")
    fleet.load()
    made = fleet.writer().flush()
    assert made is not None
    assert first(fleet.mirror.repository, made) == made
    assert list(endings(fleet.mirror.repository, made)) == []


# -- at the source


def publish(fleet: Fleet, writer: StatusWriter | None = None) -> StatusWriter:
    writer = writer or fleet.writer()
    publisher = Publisher(fleet.mirror, writer, settings=PublisherSettings(retry=0.01, apart=0))
    for _ in range(3):
        if publisher.publish():
            return writer
    raise AssertionError("it was not pushed")


def git(fleet: Fleet, *arguments: str) -> str:
    command = ["git", "-C", str(fleet.repo.path), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("kind", ["path", "url"])
def test_the_old_history_stays_in_the_source_by_its_date(fleet: Fleet, tmp_path: Path, kind: str) -> None:
    if kind == "url":
        fleet.follow(tmp_path / "far")
    fleet.writer().flush()
    publish(fleet)
    fleet.now += 80 * DAY
    unpushed = fleet.record()
    fleet.now += 20 * DAY
    new = fleet.record()
    publish(fleet)
    source = Repository(fleet.repo.path)
    assert source.ref(BRANCH) == new
    assert source.ref(f"{HISTORY}2027-04-25") == unpushed
    assert git(fleet, "fsck", "--full", "--strict", "--no-dangling") == ""


@pytest.mark.parametrize("refused", ["every such push", "other refs"])
def test_a_source_that_lets_no_history_end_keeps_it(
    fleet: Fleet, tmp_path: Path, refused: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    fleet.follow(tmp_path / "far")
    fleet.writer().flush()
    publish(fleet)
    if refused == "every such push":
        git(fleet, "config", "receive.denyNonFastForwards", "true")
    else:
        git(fleet, "config", "receive.hideRefs", "refs/treeplane")
    before = Repository(fleet.repo.path).ref(BRANCH) or ""
    fleet.now += 100 * DAY
    ended = fleet.record()
    writer = publish(fleet)
    source = Repository(fleet.repo.path)
    head = source.ref(BRANCH) or ""
    assert head == fleet.status_branch
    if refused == "other refs":
        assert head == ended, "the ref is kept here alone, and the branch goes on"
        assert "is kept here and not in" in caplog.text
        return
    assert source.is_ancestor(before, head), "the long chain"
    assert "lets no history of the status branch end" in caplog.text
    assert fleet.repo.files(head).keys() > fleet.repo.files(before).keys(), "and the newest content"
    fleet.commit({f"{A}/app.yaml": configmap(now="later")})
    writer.flush()
    assert publish(fleet, writer) is writer
    assert Repository(fleet.repo.path).is_ancestor(head, fleet.status_branch), "and no further attempt"


# -- what a recovery needs


def test_what_summaries_name_is_brought_along_though_the_branch_went_elsewhere(tmp_path: Path) -> None:
    """A held workspace is served at a commit that the desired branch does not hold any more."""
    fleet = Fleet(tmp_path / "fleet")
    base = fleet.repo.commit(BEGINNING)
    fleet.load()
    fleet.record()
    left = fleet.repo.head
    fleet.record({f"{B}/bad.yaml": "kind: ["})
    fleet.commit({f"{B}/bad.yaml": "kind: [", f"{A}/app.yaml": configmap(other="way")}, parent=base)
    fleet.writer().flush()
    served = [r.head.id for r in fleet.records() if r.errors]
    fleet.now += 100 * DAY
    made = fleet.record({f"{A}/more.yaml": configmap("more"), f"{B}/bad.yaml": "kind: ["})
    publish(fleet)
    clone = cloned(fleet, tmp_path)
    assert CONTINUES in clone.trailers(made)
    assert served
    assert all(clone.has(commit) for commit in [*served, left])
    assert RecordedFleet(clone, made).source == own(fleet.repo.head)
    fleet.close()


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["change", "hold", "mend", "rewrite", "new", "remove"]), st.integers(0, 60)),
        min_size=1,
        max_size=8,
    )
)
def test_a_clone_of_the_two_branches_recovers_the_fleet(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    """Whatever was pushed, held and rewritten, and wherever history ended in between."""
    folder = tmp_path_factory.mktemp("history")
    fleet = Fleet(folder / "fleet")
    retained = f"{TREEPLANE_YAML}spec: {{status: {{retention: 50d}}}}\n"
    base = fleet.repo.commit({**BEGINNING, "treeplane.yaml": retained})
    fleet.load()
    fleet.writer().flush()
    for number, (step, days) in enumerate(steps):
        fleet.now += days * DAY
        changes: dict[str, dict[str, str | None]] = {
            "change": {f"{A}/app.yaml": configmap(n=str(number))},
            "hold": {f"{B}/bad.yaml": f"kind: [{number}"},
            "mend": {f"{B}/bad.yaml": None, f"{B}/app.yaml": configmap(n=str(number))},
            "rewrite": {f"{A}/app.yaml": configmap(n=str(number)), f"{B}/app.yaml": configmap(n=str(number))},
            "new": {f"workspaces/root/n{number}/workspace.yaml": ""},
            "remove": {f"workspaces/root/n{number - 1}": None, f"{A}/app.yaml": configmap(n=str(number))},
        }
        fleet.commit(changes[step], parent=base if step == "rewrite" else None)
        fleet.writer().flush()
        if days % 2:
            publish(fleet)
    publish(fleet)
    expected = fleet.everything()
    cloned(fleet, folder)
    new = LoadedFleet(folder / "new", repo=FleetRepo(folder / "clone"), keys=fleet.keys)
    new.load(new.recorded())
    assert new.everything() == expected
    assert {r.path: r.errors for r in new.records()} == {r.path: r.errors for r in fleet.records()}
    new.close()
    fleet.close()


def cloned(fleet: Fleet, folder: Path) -> Repository:
    """A clone of the source's branches, and nothing else that the source may hold."""
    subprocess.run(
        ["git", "clone", "--quiet", "--bare", "--no-local", str(fleet.repo.path), str(folder / "clone")], check=True
    )
    return Repository(folder / "clone")


def test_of_a_clone_and_what_it_tracks_the_one_that_goes_on_counts(tmp_path: Path, fleet: Fleet) -> None:
    fleet.writer().flush()
    publish(fleet)
    old = fleet.status_branch
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "--quiet", str(fleet.repo.path), str(work)], check=True)
    subprocess.run(["git", "-C", str(work), "branch", "-q", "treeplane/status", "origin/treeplane/status"], check=True)
    fleet.now += 100 * DAY
    new = fleet.record()
    publish(fleet)
    subprocess.run(["git", "-C", str(work), "fetch", "-q"], check=True)
    assert Mirror(tmp_path / "other", str(work), "main", "treeplane/status").refresh().status == new
    assert old != new
