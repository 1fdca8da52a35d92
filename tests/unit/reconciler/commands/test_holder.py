"""The server that holds its repository, from a store that is filled to its first status commit."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.commitfleet import WRITES_COMMIT, CommitFleet, a_configmap
from support.loadedfleet import A, LoadedFleet, configmap
from support.proposalfleet import WRITES_PROPOSE, ProposalFleet

from apiserver.model.commits import own
from apiserver.model.keys import Internal
from apiserver.model.proposals import branch_of
from apiserver.registry import tree
from apiserver.registry.intents import Intent, answer_key
from reconciler.commands import fleetsize, holder
from reconciler.commands.beside import Beside
from reconciler.commands.installation import Installation
from reconciler.commands.lookout import Lookout
from reconciler.commands.report import Report
from reconciler.commands.roles import ALL, REST, Roles
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.start import Beginning
from reconciler.commands.station import Station
from reconciler.commands.teller import Teller
from reconciler.commands.tenure import BEGUN, LOST, say, tenure_of
from reconciler.loading.proposals import Proposals
from reconciler.loading.whole import ships
from reconciler.plan import system
from reconciler.plan.outcome import CommitOutcome
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import NotVerified, Verifier
from reconciler.statusbranch.claim import claim_of
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.render import Files, Rendering

Eventually = Callable[..., object]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet")
    made.begin()
    yield made
    made.close()


class Run:
    """A holder on a fleet's store and mirror, whose first status commit is not rendered before `go_on` is set."""

    def __init__(
        self, fleet: LoadedFleet, patch: pytest.MonkeyPatch, *, renders: bool = True, notify_url: str = ""
    ) -> None:
        self.renders, self.go_on = threading.Event(), threading.Event()
        render = Rendering.everything

        def slow(rendering: Rendering) -> Files:
            self.renders.set()
            assert self.go_on.wait(100)
            return render(rendering)

        patch.setattr(Rendering, "everything", slow)
        teller = Teller(Report())
        source = str(fleet.repo.path)
        settings = ReconcileSettings(
            fleet.directory, fleet.keys, source=source, url="u", local_url="u", notify_url=notify_url
        )
        self.lookout = Lookout(fleet.mirror, teller)
        self.roles = roles = Roles(fleet.directory)
        assert roles.lock()
        station = Station(settings, roles.handles(fleet.store), fleet.mirror, self.lookout, teller, roles)
        self.made = made = holder.Holder(station, Installation(fleet.directory))
        beginning = Beginning(fleet.mirror.refresh(), None)
        self.thread = threading.Thread(target=made.run, args=(beginning,), daemon=True)
        self.thread.start()
        assert not renders or self.renders.wait(60)

    def end(self) -> None:
        self.lookout.stop.set()
        self.lookout.wake.set()
        self.go_on.set()
        self.thread.join(60)
        assert not self.thread.is_alive()
        self.roles.lend(ALL)


def test_the_branch_is_followed_while_the_first_status_commit_is_made(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    first = fleet.repo.head
    run = Run(fleet, monkeypatch)
    try:
        fleet.repo.commit({f"{A}/app.yaml": configmap(a="pushed")})
        eventually(lambda: fleet.data("root:a") == {"a": "pushed"})
        assert fleet.mirror.status() is None
    finally:
        run.end()
    repo, last = fleet.mirror.repository, fleet.mirror.status()
    assert last is not None
    assert RecordedFleet(repo, last).source == own(fleet.repo.head)
    begun = RecordedFleet(repo, repo.commit(last).parents[0])
    assert begun.source == own(first), "the first one is of the moment in which it was begun"


def test_what_another_version_ships_is_written_when_all_else_is_done(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    types = system.workspace_types()
    newer = {**types[0], "metadata": {**types[0]["metadata"], "name": "newer"}}
    monkeypatch.setattr(system, "workspace_types", lambda: [*types, newer])
    for step in ("start", "stop"):  # of loops, which need a server
        monkeypatch.setattr(Beside, step, lambda self: None)
    fleet.repo.commit({f"{A}/app.yaml": configmap(a="pushed")})
    run = Run(fleet, monkeypatch)
    try:
        eventually(lambda: fleet.data("root:a") == {"a": "pushed"})
        assert fleet.find("root", "workspacetypes.tenancy.kcp.io", "newer", "") is None, "nothing is recorded yet"
        run.go_on.set()
        eventually(lambda: fleet.find("root", "workspacetypes.tenancy.kcp.io", "newer", "") is not None)
        eventually(lambda: fleet.fleet().ships == ships())
    finally:
        run.end()


def test_a_fleet_that_grew_has_the_rest_done_by_another_process(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once nothing comes for a while, and once that is there."""
    monkeypatch.setattr(fleetsize, "LARGE", tree.count(fleet.store) + 1)
    monkeypatch.setattr(holder, "_LOOK", 0.2)
    monkeypatch.setattr(holder, "_BEGINS", 3600.0)
    for step in ("start", "stop"):  # of loops, which need a server
        monkeypatch.setattr(Beside, step, lambda self: None)
    run = Run(fleet, monkeypatch)
    run.go_on.set()
    rest = Roles(fleet.directory, works=REST)
    try:
        eventually(lambda: fleet.mirror.status() is not None)
        assert not rest.lock(stopped=lambda: True)
        assert tenure_of(fleet.store) is None
        fleet.repo.commit({"workspaces/root/more/workspace.yaml": ""})
        eventually(lambda: '"lends"' in capsys.readouterr().out)
        assert not rest.lock(stopped=lambda: True), "until that is there, this one goes on"
        monkeypatch.setattr(holder, "_BEGINS", 0.0)
        assert rest.lock(stopped=lambda: not run.thread.is_alive()), "it is lent"
        tenure = tenure_of(fleet.store)
        assert tenure is not None
        assert tenure.writer == claim_of(fleet.mirror.repository, fleet.mirror.status() or "").writer
        status = rest.handles(fleet.store).status
        recorded = fleet.mirror.status()
        status.write(say(BEGUN)).result()
        fleet.repo.commit({f"{A}/app.yaml": configmap(a="meanwhile"), f"{A}/other.yaml": configmap("other")})
        eventually(lambda: fleet.data("root:a", "other") is not None)
        assert fleet.mirror.status() == recorded, "that is the other's to record"
        eventually(lambda: tree.fleet(status).commit == own(fleet.repo.head))
    finally:
        run.end()
        rest.lend(REST)
    assert tenure_of(fleet.store) is None, "the other ends with it"


def test_a_commit_that_makes_a_fleet_large_is_loaded_while_the_other_process_begins(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """Which may then find that the fleet is another's."""
    monkeypatch.setattr(fleetsize, "LARGE", tree.count(fleet.store) + 5)
    told: list[str] = []
    monkeypatch.setattr(holder.Holder, "_give_way", lambda self: told.append("gives way"))
    for step in ("start", "stop"):  # of loops, which need a server
        monkeypatch.setattr(Beside, step, lambda self: None)
    run = Run(fleet, monkeypatch)
    run.go_on.set()
    rest = Roles(fleet.directory, works=REST)
    try:
        eventually(lambda: fleet.mirror.status() is not None)
        before = tree.count(fleet.store)
        fleet.repo.commit({f"workspaces/root/few-{number}/workspace.yaml": "" for number in range(3)})
        eventually(lambda: tree.count(fleet.store) == before + 3)
        assert not rest.lock(stopped=lambda: True), "nothing is lent for a small one"
        fleet.repo.commit({f"workspaces/root/many-{number}/workspace.yaml": "" for number in range(30)})
        assert rest.lock(stopped=lambda: not run.thread.is_alive()), "it is lent"
        recorded = fleet.mirror.status()
        eventually(lambda: tree.count(fleet.store) == before + 33)
        fleet.repo.commit({f"{A}/app.yaml": configmap(a="pushed")})
        eventually(lambda: fleet.data("root:a") == {"a": "pushed"})
        assert fleet.mirror.status() == recorded, "that is the other's to record"
        assert told == []
        rest.handles(fleet.store).status.write(say(LOST)).result()
        eventually(lambda: told == ["gives way"])
    finally:
        run.end()
        rest.lend(REST)


def test_who_hears_that_the_fleet_is_anothers_takes_the_roles_back(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    monkeypatch.setattr(fleetsize, "LARGE", 1)
    told: list[str] = []
    monkeypatch.setattr(holder.Holder, "_give_way", lambda self: told.append("gives way"))
    rest = Roles(fleet.directory, works=REST)
    run = Run(fleet, monkeypatch, renders=False)
    try:
        assert rest.lock(stopped=lambda: not run.thread.is_alive())
        rest.handles(fleet.store).status.write(say(LOST)).result()
        eventually(lambda: tenure_of(fleet.store) is None)
        assert told == ["gives way"]
        assert run.thread.is_alive(), "it waits until the other has ended"
        rest.lend(REST)
        run.thread.join(60)
        assert not run.thread.is_alive()
        assert not rest.lock(stopped=lambda: True)
    finally:
        run.end()


def test_what_becomes_of_commits_is_noted_where_somebody_is_told(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    """Of what was served before nothing is said; a start says nothing again."""
    for step in ("start", "stop"):  # of loops, which need a server
        monkeypatch.setattr(Beside, step, lambda self: None)

    def noted() -> dict[str, list[str]]:
        found = [CommitOutcome.decode(each.value) for each in fleet.store.scan(Internal.OUTCOME).records]
        return {each.commit: [f"{one.path} {one.became}" for one in each.workspaces] for each in found}

    run = Run(fleet, monkeypatch, notify_url="https://hooks.example.org")
    run.go_on.set()
    try:
        held = fleet.repo.commit({f"{A}/app.yaml": "x: ["})
        eventually(lambda: noted() == {held: ["root:a held"]})
    finally:
        run.end()
    mended = fleet.repo.commit({f"{A}/app.yaml": configmap(a="pushed")})
    run = Run(fleet, monkeypatch, renders=False, notify_url="https://hooks.example.org")
    run.go_on.set()
    try:
        eventually(lambda: noted() == {held: ["root:a held"], mended: ["root:a configured"]})
    finally:
        run.end()
    run = Run(fleet, monkeypatch, renders=False)
    run.go_on.set()
    try:
        eventually(lambda: noted() == {}, what="nobody is told any more")
    finally:
        run.end()


def test_what_a_server_commits_is_signed_with_its_own_key_on_both_branches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    fleet = CommitFleet(tmp_path / "committed")
    fleet.begin({"treeplane.yaml": WRITES_COMMIT})
    for step in ("start", "stop"):  # of loops, which need a server
        monkeypatch.setattr(Beside, step, lambda self: None)
    run, first = Run(fleet, monkeypatch), fleet.repo.head
    run.go_on.set()
    try:
        eventually(lambda: fleet.mirror.status() is not None)
        fleet.create("root:a", "configmaps", a_configmap())
        eventually(lambda: fleet.repo.head != first)
    finally:
        run.end()
    judge, repo, last = Verifier(CommitKey.open(fleet.keys)), fleet.mirror.repository, fleet.mirror.status()
    assert last is not None
    assert judge.signer(repo, fleet.repo.head, Signers()).ours
    made = [each for each in repo.new_commits(last, fleet.repo.head) if "Source-Commit" in each.message]
    assert made
    assert all(judge.signer(repo, each.id, Signers()).ours for each in made)
    with pytest.raises(NotVerified, match="not signed"):
        judge.signer(repo, first, Signers())
    fleet.close()


def test_what_is_proposed_is_put_on_its_branch_and_the_server_does_not_vouch_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    fleet = ProposalFleet(tmp_path / "proposed")
    fleet.begin({"treeplane.yaml": WRITES_PROPOSE})
    for step in ("start", "stop"):  # of loops, which need a server
        monkeypatch.setattr(Beside, step, lambda self: None)
    run = Run(fleet, monkeypatch)
    run.go_on.set()
    try:
        eventually(lambda: fleet.mirror.status() is not None)
        outcome = fleet.made("root:a", "configmaps", a_configmap())
    finally:
        run.end()
    name = branch_of("alice", "root:a")
    assert outcome.warnings == (f"proposed on branch {name}; it is served once that is merged",)
    made = fleet.proposal()
    assert made is not None
    with pytest.raises(NotVerified, match="not signed"):
        Verifier(CommitKey.open(fleet.keys)).signer(fleet.mirror.repository, made, Signers())
    assert fleet.find("root:a", "configmaps", "made") is None
    fleet.close()


def test_who_gives_way_turns_proposals_away(
    fleet: LoadedFleet, monkeypatch: pytest.MonkeyPatch, eventually: Eventually
) -> None:
    for step in ("start", "stop"):
        monkeypatch.setattr(Beside, step, lambda self: None)
    run = Run(fleet, monkeypatch)
    run.go_on.set()
    try:
        eventually(lambda: fleet.mirror.status() is not None)
        monkeypatch.setattr(Proposals, "serve", lambda self: True)
        key = fleet.key("root:a", "configmaps", "app")
        record = fleet.store.get(key)
        assert record is not None
        intent = Intent(key, "ann", b"{}", record.revision, deadline=time.time() + 60, proposes=True)
        fleet.store.write(*intent.ops()).result()
        run.made._beside.lost.set()
        run.lookout.wake.set()
        eventually(lambda: fleet.store.get(answer_key(intent.id)) is not None)
    finally:
        run.end()
    answer = fleet.store.get(answer_key(intent.id))
    assert answer is not None
    assert b"holds the fleet" in answer.value
