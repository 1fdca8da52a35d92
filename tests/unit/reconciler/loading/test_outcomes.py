"""What is noted of commits for who is told of them: each workspace that a commit changed, held or mended, and nobody
else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from support.commitfleet import WRITES_COMMIT, CommitFleet, a_configmap
from support.loadedfleet import A, B, LoadedFleet, configmap

from apiserver.model.commits import NONE, CommitRef, own
from apiserver.model.keys import Internal
from apiserver.model.tables import Table
from apiserver.registry import announced, tree
from reconciler.loading import outcomes
from reconciler.loading.outcomes import Outcomes
from reconciler.loading.pauses import Pauses
from reconciler.plan.outcome import MOST, CommitOutcome

BROKEN = "x: ["


class Noting:
    """A fleet as a holder loads it, and what is noted."""

    def __init__(self, directory: Path, *, wanted: bool = True, fleet: LoadedFleet | None = None) -> None:
        self.fleet = fleet or LoadedFleet(directory)
        self.outcomes = self.new(wanted=wanted)
        self.wanted = wanted

    def new(self, *, wanted: bool = True, recorded: CommitRef = NONE) -> Outcomes:
        """As at the start of a server."""
        made = Outcomes(self.fleet.store, self.fleet.mirror.repository, "main", wanted=wanted)
        made.begin(recorded)
        return made

    def begin(self) -> str:
        self.outcomes.loaded(self.fleet.begin())
        return self.head

    def commit(self, files: Mapping[str, str | None]) -> str:
        self.outcomes.loaded(self.fleet.commit(files))
        return self.head

    @property
    def head(self) -> str:
        return self.fleet.repo.head

    def all(self) -> dict[str, CommitOutcome]:
        found = self.fleet.store.scan(Internal.OUTCOME).records
        return {record.key.name: CommitOutcome.decode(record.value) for record in found}

    def of(self, commit: str) -> dict[str, str]:
        """By workspace what became of it."""
        return {each.path: str(each.became) for each in self.all()[commit].workspaces}


@pytest.fixture
def noting(tmp_path: Path) -> Iterator[Noting]:
    made = Noting(tmp_path / "fleet")
    yield made
    made.fleet.close()


def test_a_new_fleet_is_noted_at_its_first_commit(noting: Noting) -> None:
    first = noting.begin()
    assert noting.of(first) == {"root": "created", "root:a": "created", "root:b": "created"}
    assert noting.all()[first].counts == {"created": 3}
    assert noting.all()[first].branch == "main"
    assert noting.all()[first].fleet == noting.fleet.fleet().fleet


def test_who_a_commit_does_not_touch_is_not_in_it(noting: Noting) -> None:
    noting.begin()
    changed = noting.commit({f"{B}/app.yaml": configmap(c="d")})
    assert noting.of(changed) == {"root:b": "configured"}
    idle = noting.commit({"README": "words"})
    assert noting.of(idle) == {}
    assert noting.all()[idle].good


def test_held_and_mended(noting: Noting) -> None:
    noting.begin()
    held = noting.commit({f"{A}/app.yaml": BROKEN})
    assert noting.of(held) == {"root:a": "held"}
    [one] = noting.all()[held].workspaces
    assert one.errors[0].startswith(f"{A}/app.yaml:2:1: YAML")
    assert not noting.all()[held].good
    other = noting.commit({f"{B}/app.yaml": configmap(c="d")})
    assert noting.of(other) == {"root:b": "configured"}, "who is held still was not touched"
    mended = noting.commit({f"{A}/app.yaml": configmap(c="e")})
    [one] = noting.all()[mended].workspaces
    assert (one.became, one.mended) == ("configured", True)
    assert noting.of(held) == {"root:a": "held"}, "of that commit it stays so"


def test_what_is_put_back_is_mended_too(noting: Noting) -> None:
    noting.begin()
    noting.commit({f"{A}/app.yaml": BROKEN})
    back = noting.commit({f"{A}/app.yaml": configmap()})
    [one] = noting.all()[back].workspaces
    assert (one.path, one.became, one.mended) == ("root:a", "configured", True)


def test_a_workspace_that_goes(noting: Noting) -> None:
    noting.begin()
    came = noting.commit({"workspaces/root/c/workspace.yaml": ""})
    assert noting.of(came) == {"root:c": "created"}
    gone = noting.commit({"workspaces/root/c/workspace.yaml": None})
    assert noting.of(gone) == {"root:c": "deleted"}


def test_commits_of_one_push_have_their_own(noting: Noting) -> None:
    noting.begin()
    repo = noting.fleet.repo
    first = repo.commit({f"{B}/app.yaml": configmap(c="d")})
    idle = repo.commit({"README": "words"})
    last = noting.commit({f"{A}/app.yaml": BROKEN})
    assert noting.of(first) == {"root:b": "configured"}
    assert idle not in noting.all(), "nothing became of it"
    assert noting.of(last) == {"root:a": "held"}


def test_a_commit_that_is_held_as_a_whole(noting: Noting) -> None:
    noting.begin()
    served = noting.commit({f"{B}/app.yaml": configmap(c="d")})
    held = noting.commit({"treeplane.yaml": BROKEN})
    assert noting.all()[held].problems[0].startswith("treeplane.yaml:")
    assert not noting.all()[held].good
    assert noting.of(served) == {"root:b": "configured"}
    mended = noting.commit({"treeplane.yaml": noting.fleet.repo.files(served)["treeplane.yaml"]})
    assert noting.all()[mended].good


def test_a_restart_notes_nothing_again(noting: Noting) -> None:
    noting.begin()
    noting.commit({f"{B}/app.yaml": configmap(c="d")})
    before = noting.fleet.store.revision()
    again = noting.new()
    again.loaded(noting.fleet.load())
    assert noting.fleet.store.revision() == before


def test_what_a_crash_left_unnoted_is_noted_at_the_next_start(noting: Noting) -> None:
    noting.begin()
    noting.fleet.commit({f"{A}/app.yaml": BROKEN})  # and the process ends
    held = noting.head
    again = noting.new()
    again.loaded(noting.fleet.load())
    assert noting.of(held) == {"root:a": "held"}
    before = noting.fleet.store.revision()
    noting.new().loaded(noting.fleet.load())
    assert noting.fleet.store.revision() == before


def test_a_recovery_notes_what_is_new_alone(tmp_path: Path) -> None:
    """What the lost server said of the fleet is not said again."""
    lost = Noting(tmp_path / "lost")
    lost.begin()
    lost.commit({f"{A}/app.yaml": BROKEN})
    lost.fleet.publish()
    lost.fleet.close()
    fleet = LoadedFleet(tmp_path / "new", lost.fleet.repo, lost.fleet.keys)
    recorded = fleet.recorded()
    assert recorded is not None
    new = Noting(tmp_path / "new", fleet=fleet)
    new.outcomes = new.new(recorded=recorded.source)
    new.outcomes.loaded(fleet.load(recorded))
    assert new.all() == {}
    fleet.close()


def test_a_recovery_notes_what_came_while_no_server_ran(tmp_path: Path) -> None:
    lost = Noting(tmp_path / "lost")
    lost.begin()
    lost.fleet.publish()
    lost.fleet.close()
    lost.fleet.repo.commit({f"{B}/app.yaml": configmap(c="d")})
    fleet = LoadedFleet(tmp_path / "new", lost.fleet.repo, lost.fleet.keys)
    recorded = fleet.recorded()
    assert recorded is not None
    new = Noting(tmp_path / "new", fleet=fleet)
    new.outcomes = new.new(recorded=recorded.source)
    new.outcomes.loaded(fleet.load(recorded))
    assert {commit: new.of(commit) for commit in new.all()} == {new.head: {"root:b": "configured"}}
    fleet.close()


def test_thousands_of_workspaces_are_counted(noting: Noting) -> None:
    noting.begin()
    many = {f"workspaces/root/w{n:03}/workspace.yaml": "" for n in range(120)}
    commit = noting.commit({**many, f"{A}/app.yaml": BROKEN})
    found = noting.all()[commit]
    assert len(found.workspaces) == MOST
    assert found.workspaces[0].path == "root:a", "who is held comes first"
    assert found.counts == {"created": 120, "held": 1}
    assert found.untold == 121 - MOST


def test_the_last_commits_alone_are_kept(noting: Noting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcomes, "KEPT", 3)
    first = noting.begin()
    noting.fleet.store.write(announced.put_told("forge", first, {"treeplane": "x"})).result()
    later = [noting.commit({f"{B}/app.yaml": configmap(c=str(n))}) for n in range(4)]
    assert set(noting.all()) == set(later[-3:])
    assert announced.told(noting.fleet.store, "forge", first) == {}


def test_where_nobody_is_told_nothing_is_noted(tmp_path: Path) -> None:
    noting = Noting(tmp_path / "fleet", wanted=False)
    noting.begin()
    noting.commit({f"{A}/app.yaml": BROKEN})
    with noting.outcomes.watching():
        pass
    assert noting.all() == {}
    assert list(noting.fleet.store.scan_rows(Table.OUTCOMES)) == []
    noting.outcomes = noting.new()
    noting.outcomes.loaded(noting.fleet.load())
    assert noting.all() == {}, "what was is not told of now"
    changed = noting.commit({f"{B}/app.yaml": configmap(c="d")})
    assert set(noting.all()) == {changed}
    noting.new(wanted=False)
    assert noting.all() == {}
    noting.fleet.close()


def test_what_another_server_did_meanwhile_is_its_own_to_tell(noting: Noting) -> None:
    noting.begin()
    noting.fleet.commit({f"{B}/app.yaml": configmap(c="d")})
    again = Outcomes(noting.fleet.store, noting.fleet.mirror.repository, "main", wanted=True)
    again.begin(NONE, others=True)
    again.loaded(noting.fleet.load())
    assert noting.all() == {}


def test_who_turns_without_a_commit_turns_at_the_one_that_it_is_at(noting: Noting) -> None:
    noting.begin()
    held = noting.commit({f"{A}/app.yaml": BROKEN})
    record = noting.fleet.record("root:a")
    with noting.outcomes.watching():
        good = replace(record, errors=[], judged=NONE, head=own(held))
        noting.fleet.store.write(tree.put_workspace(good), *tree.listed(good, record)).result()
    found = noting.all()[held]
    assert [(each.path, each.became, each.mended) for each in found.workspaces] == [("root:a", "configured", True)]
    assert found.good


def test_who_turns_at_a_commit_that_was_forgotten(noting: Noting) -> None:
    noting.begin()
    held = noting.commit({f"{A}/app.yaml": BROKEN})
    store = noting.fleet.store
    gone = [store.get(announced.outcome_key(held))]
    assert gone[0] is not None
    noting.outcomes._forget()
    record = noting.fleet.record("root:a")
    with noting.outcomes.watching():
        good = replace(record, errors=[], judged=NONE, head=own(held))
        store.write(tree.put_workspace(good), *tree.listed(good, record)).result()
    found = noting.all()[held]
    assert found.partial
    assert noting.of(held) == {"root:a": "configured"}


def test_a_commit_that_was_made_of_writes(noting: Noting) -> None:
    noting.begin()
    with noting.outcomes.committing():
        noting.fleet.commit({f"{B}/app.yaml": configmap(c="d")})
        noting.outcomes.made(noting.head)
    assert noting.of(noting.head) == {"root:b": "configured"}
    before = noting.fleet.store.revision()
    noting.outcomes.loaded(noting.fleet.load())
    assert noting.fleet.store.revision() == before


def test_writes_that_are_commits_are_noted_like_any(tmp_path: Path, eventually: Callable[..., object]) -> None:
    """As the committer makes them, for a workspace that comes and goes as well."""
    fleet = CommitFleet(tmp_path / "fleet")
    noting = Noting(tmp_path / "fleet", fleet=fleet)
    noting.outcomes.loaded(fleet.begin({"treeplane.yaml": WRITES_COMMIT}))

    class Published(list[str]):
        def append(self, commit: str) -> None:
            noting.outcomes.made(commit)
            super().append(commit)

    fleet.published = Published()
    fleet.committer = fleet.new_committer()
    serve = fleet.committer.serve

    def serve_noting() -> None:
        with noting.outcomes.committing():
            serve()

    fleet.committer.serve = serve_noting  # type: ignore[method-assign]
    fleet.serve()
    workspace = {"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "Workspace", "metadata": {"name": "made"}}
    fleet.create("root:a", "configmaps", a_configmap())
    fleet.create("root", "workspaces.tenancy.kcp.io", workspace)
    fleet.remove("root", "workspaces.tenancy.kcp.io", "made")
    eventually(lambda: len(fleet.published) == 3)
    found = [noting.of(commit) for commit in fleet.published]
    assert found == [{"root:a": "configured"}, {"root:made": "created"}, {"root:made": "deleted"}]
    fleet.close()


def test_a_small_commit_that_overtakes_is_noted_before_the_rest(noting: Noting) -> None:
    noting.begin()
    fleet = noting.fleet
    large = fleet.repo.commit({f"workspaces/root/w{n}/workspace.yaml": "" for n in range(6)})
    before: list[dict[str, CommitOutcome]] = []

    def meanwhile() -> None:
        if not before:
            fleet.repo.commit({f"{B}/app.yaml": configmap(c="d")})
        found = fleet.loader.overtake(own(fleet.repo.head))
        if found is not None:
            noting.outcomes.loaded(found)
        before.append(noting.all())

    fleet.loader.pauses = Pauses(lambda: 0.0, 0.0)
    fleet.loader.meanwhile = meanwhile
    loaded = fleet.load()
    assert large not in before[-1]
    assert [each.path for each in before[0][noting.head].workspaces] == ["root:b"]
    noting.outcomes.loaded(loaded)
    assert noting.of(noting.head) == {"root:b": "configured"}
    assert noting.of(large) == {f"root:w{n}": "created" for n in range(6)}


def test_nothing_of_it_reaches_the_status_branch(noting: Noting) -> None:
    noting.begin()
    writer = noting.fleet.writer()
    first = noting.fleet.publish(writer)
    noting.outcomes._store.write(announced.put_noted("x")).result()
    noting.outcomes._write([CommitOutcome("0" * 40)])
    assert noting.fleet.publish(writer) == first
