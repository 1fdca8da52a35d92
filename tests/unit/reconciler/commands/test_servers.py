"""Histories of several servers on one repository: starts, crashes, cuts from the source, copied and lost data
directories, take-overs. One writes at a time, nothing recorded is lost, and observers show what was written."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import FleetRepo
from support.happenings import Killed
from support.loadedfleet import BEGINNING, A, configmap
from support.shipped import WORKLOAD, binding
from support.statusfiles import elsewhere, source_files

from apiserver.model import commits
from apiserver.model.keys import Key
from apiserver.registry import codec, tree
from apiserver.registry.tree import put_fleet
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Put, Store
from apiserver.stores import DECLARED
from reconciler.commands.holder import own
from reconciler.commands.installation import Installation
from reconciler.commands.mainstore import open_for
from reconciler.commands.report import Report
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.start import Start
from reconciler.commands.teller import Teller
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.loading.shown import Shown
from reconciler.repository.chain import goes_on
from reconciler.repository.errors import PushRejected, RepositoryUnreadable
from reconciler.repository.keep import is_kept
from reconciler.repository.mirror import STATUS_REF, Heads, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories
from reconciler.repository.write import move_ref
from reconciler.saving.unpushed import UNPUSHED, TakingIn, saved
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import Verifier
from reconciler.statusbranch.claim import Claim, claim_of
from reconciler.statusbranch.lostrecord import LostRecord
from reconciler.statusbranch.publisher import Publisher
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.writer import StatusWriter

BRANCH = "refs/heads/treeplane/status"
TOKEN = "internal.scheduling.kcp.io/"


class Link(Mirror):
    """A mirror whose source is far away, and can be out of reach."""

    cut = False
    seen = Heads(None, None)

    def refresh(self) -> Heads:
        self.reach()
        self.seen = super().refresh()
        return self.seen

    def last_seen(self) -> Heads:
        with suppress(RepositoryUnreadable):  # as the watcher's thread does
            self.refresh()
        return self.seen

    def push_status(self, commit: str, expected: str | None) -> None:
        self.reach()
        super().push_status(commit, expected)

    def reach(self) -> None:
        if self.cut:
            raise RepositoryUnreadable("out of reach")


class Server:
    """One server without its threads: what they do, `tick` does."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.data = world.folder / name
        self.data.mkdir()
        self.kept = world.folder / f"{name}.store"
        self.told = ""
        self.cut = False
        self.store: Store | None = None
        self.writer: StatusWriter | None = None
        self.holder = ""

    @property
    def alive(self) -> bool:
        return self.store is not None

    @property
    def holds(self) -> bool:
        return self.alive and not self.holder

    def start(self, take_over: str = "", *, first: bool = True) -> None:
        source = str(self.world.repo.path)
        self.mirror = Link(self.data, source, "main", "treeplane/status")
        self.mirror.is_remote, self.mirror.cut = self.world.remote, self.cut
        self.settings = ReconcileSettings(
            self.data, self.data, source=source, url="u", local_url="u", take_over=take_over
        )
        self.installation = Installation(self.data, self.world.now())
        with suppress(RepositoryUnreadable):  # it is what a look does once it is answered
            self.mirror.refresh()
            assert TakingIn(self.mirror, self.data / UNPUSHED).take() == ""
        self.begin(first=first)

    def begin(self, *, first: bool) -> None:
        start = Start(self.settings, self.mirror, self.installation, Teller(Report()), first=first)
        self.lost = start.lost = LostRecord(self.mirror, again=0.0)
        try:
            heads = self.mirror.refresh()
        except RepositoryUnreadable:
            heads = self.mirror.last_seen()
            if heads.desired is None:
                return self.kill()
        try:
            beginning = start.begin(heads)
        except RepositoryUnreadable:
            return self.kill()
        recorded = beginning.recorded
        if self.store is None:
            self.store, self.told = open_for(self.data / "store", beginning, sync=False)
        self.holder = beginning.holder
        if self.holder:
            assert recorded is not None
            self.show(recorded)
            return None
        own(self.store, beginning)
        self.loader = self.new_loader(self.store)
        assert heads.desired is not None
        self.loader.load(commits.own(heads.desired), recorded)

        def claim() -> Claim:
            self.installation.claim("fleet")
            return Claim(self.installation.writer, beginning.epoch)

        self.writer = StatusWriter(self.store, self.mirror, claim=claim)
        self.publisher = Publisher(self.mirror, self.writer, self.installation.is_own)
        self.tick()
        return None

    def new_loader(self, store: Store) -> Loader:
        return Loader(store, self.mirror.repositories, Identities(self.world.folder / "identities"), lambda _: ())

    def tick(self) -> None:
        if self.store is None:
            return
        if self.holder:
            published = self.mirror.last_seen().status
            self.lost.push(published)
            status = self.lost.newest(published)
            if status is not None and status != tree.fleet(self.store).shown.id:
                self.show(RecordedFleet(self.mirror.repository, status))
            return
        assert self.writer is not None
        with suppress(RepositoryUnreadable):
            heads = self.mirror.refresh()
            assert heads.desired is not None
            self.loader.load(commits.own(heads.desired))
        self.writer.flush()
        said = self.said()
        with suppress(RepositoryUnreadable):
            while not self.publisher.publish():
                pass
            if not self.publisher.lost.is_set():
                self.world.recorded |= said
        if self.publisher.lost.is_set():
            self.writer.flush()  # as its thread may
            fleet = tree.fleet(self.store)
            self.store.write(put_fleet(replace(fleet, holder="somebody"))).result()
            self.begin(first=False)

    def show(self, recorded: RecordedFleet) -> None:
        assert self.store is not None
        self.holder = claim_of(self.mirror.repository, recorded.commit.id).writer or self.holder
        shown = Shown(self.store, self.mirror.repository, self.new_loader)
        at = tree.fleet(self.store).shown
        if at and self.mirror.repository.has(at.id):
            shown.follow(recorded, self.holder)
        else:
            shown.begin(recorded, self.holder)
        self.mirror.keep_status(recorded.commit.id)

    def die_in_a_load(self, token: str) -> None:
        """A decision is made and recorded while the branch's head is on its way, and the server is killed then."""
        store, writer, head = self.store, self.writer, commits.own(self.world.repo.head)
        assert store is not None
        assert writer is not None
        write = store.write

        def dying(*ops: Any) -> Any:
            store.write = write  # type: ignore[method-assign]
            written = write(*ops)
            written.result()
            record = tree.workspace_at(store, "root:a")
            if record is not None and record.head == head:
                self.decide(token)
                writer.durable(store.revision())
                self.publisher.publish()
                raise Killed
            store.write = dying  # type: ignore[method-assign]
            return written

        store.write = dying  # type: ignore[method-assign]
        with suppress(Killed):
            self.loader.load(head)
        self.kill()

    def decide(self, token: str) -> None:
        """A decision of a controller: an annotation that nobody takes away."""
        assert self.store is not None
        record = tree.workspace_at(self.store, "root:a")
        assert record is not None
        found = self.store.get(Key("configmaps", record.cluster, "default", "app"))
        assert found is not None
        obj = codec.decode(found.value, 0)
        obj["metadata"].pop("resourceVersion", None)
        obj["metadata"]["annotations"][f"{TOKEN}{token}"] = "yes"
        self.store.write(Put(found.key, codec.encode(obj), found.revision)).result()

    def said(self) -> set[str]:
        assert self.store is not None
        record = tree.workspace_at(self.store, "root:a")
        assert record is not None
        found = self.store.get(Key("configmaps", record.cluster, "default", "app"))
        return tokens(codec.decode(found.value, 0)) if found is not None else set()

    def stop(self) -> None:
        self.tick()
        self.kill()

    def kill(self) -> None:
        if self.store is not None:
            self.store.close()
        self.store = self.writer = None
        self.holder = ""

    def objects(self) -> dict[str, Any]:
        assert self.store is not None
        return {
            f"{record.key}": record.value
            for name in self.store.resources()
            if not name.startswith("~")
            for record in self.store.scan(name).records
        }


def tokens(obj: Any) -> set[str]:
    found = obj["metadata"].get("annotations") or {}
    return {key.removeprefix(TOKEN) for key in found if key.startswith(TOKEN)}


class Backup(NamedTuple):
    """`commit`: the newest status commit that it has; `tokens`: the decisions that this records."""

    file: Path
    commit: str
    tokens: set[str]


class World:
    """A repository and the servers on it. `recorded`: decisions that came to the status branch."""

    def __init__(self, folder: Path, *, remote: bool, servers: int) -> None:
        self.folder, self.remote = folder, remote
        self.repo = FleetRepo(folder / "fleet.git")
        self.repo.commit(BEGINNING)
        self.recorded: set[str] = set()
        self.backup: Backup | None = None
        self.clock = 0
        self.servers = [Server(self, f"s{number}") for number in range(servers)]

    def now(self) -> float:
        self.clock += 1
        return float(self.clock)

    def close(self) -> None:
        for server in self.servers:
            server.kill()

    @property
    def head(self) -> str | None:
        return self.repo.repo.ref(BRANCH)

    def do(self, event: str, number: int, other: int) -> None:
        """One event, where it is possible."""
        server, second = self.servers[number % len(self.servers)], self.servers[other % len(self.servers)]
        match event:
            case "start" if not server.alive:
                server.start()
            case "take over" if not server.alive and self.head is not None:
                server.start(claim_of(self.repo.repo, self.head).writer)
            case "kill":
                server.kill()
            case "stop" if server.alive:
                server.stop()
            case "cut" | "join":
                server.cut = event == "cut"
                if server.alive:
                    server.mirror.cut = server.cut
            case "copy" if not second.alive and server is not second and not server.alive:
                shutil.rmtree(second.data)
                shutil.copytree(server.data, second.data)
            case "lose" if not server.alive:
                shutil.rmtree(server.data)
                server.data.mkdir()
            case "keep" if not server.alive and (server.data / "store").exists():
                shutil.rmtree(server.kept, ignore_errors=True)
                shutil.copytree(server.data / "store", server.kept)
            case "restore" if not server.alive and server.kept.exists():
                shutil.rmtree(server.data / "store", ignore_errors=True)
                shutil.copytree(server.kept, server.data / "store")
            case "decide" if server.holds:
                server.decide(f"t{self.now():.0f}")
            case "tick" if server.alive:
                server.tick()
            case "push":
                self.repo.commit({f"{A}/other.yaml": configmap("other", n=str(self.now()))})
            case "back up" if (server.data / "mirror").exists():
                self.back_up(server)
            case "recover" if not server.alive and self.backup is not None:
                self.recover(server, take_over=bool(other))
            case "forge goes back" if self.head is not None:
                self.go_back(other)
            case "vandal" if self.head is not None and any(s.holds and not s.cut for s in self.servers):
                # Somebody takes the branch back, while who holds it is there to put it right.
                [holder] = [s for s in self.servers if s.holds and not s.cut][:1]
                holder.tick()
                if holder.holds:
                    self.take_back(other)
                    holder.tick()
            case _:
                pass

    def take_back(self, how: int) -> None:
        head = self.head
        assert head is not None
        parents = Repository(self.repo.path).commit(head).parents
        target = parents[0] if how % 2 and len(parents) > 1 else None
        move_ref(self.repo.repo, BRANCH, target, head)

    def back_up(self, server: Server) -> None:
        file = self.folder / f"backup-{self.now():.0f}"
        commit = Repository(server.data / "mirror").ref(STATUS_REF)
        if commit is not None and saved(server.data, time.time(), file):
            self.backup = Backup(file, commit, recorded_tokens(Repository(server.data / "mirror"), commit))

    def recover(self, server: Server, *, take_over: bool) -> None:
        """In place of a server that is lost. What the backup has counts exactly where the branch has nothing else."""
        backup, before, repo = self.backup, self.head, self.repo.repo
        assert backup is not None
        shutil.rmtree(server.data)
        server.data.mkdir()
        shutil.copyfile(backup.file, server.data / UNPUSHED)
        writer = claim_of(repo, before).writer if before is not None else ""
        server.start(writer if take_over else "")
        if not server.alive:
            return
        there = server.mirror.repository
        if before is None or goes_on(there, before, backup.commit):
            assert backup.tokens <= server.said()
            assert self.head is not None
            assert goes_on(repo, backup.commit, self.head), "it waits, and there is a way"
            self.recorded |= backup.tokens
        elif not goes_on(there, backup.commit, before):
            assert any(there.ref(name) == backup.commit for name in there.references if is_kept(name))
        assert before is None or goes_on(repo, before, self.head or ""), "something newer was overwritten"

    def go_back(self, how: int) -> None:
        """The source is put back from a backup of its own, and nobody but a server has what came after."""
        head = self.head
        assert head is not None
        for _ in range(how + 1):
            parents = self.repo.repo.commit(head).parents
            head = parents[0] if len(parents) > 1 else head
        move_ref(self.repo.repo, BRANCH, head, self.head)
        self.recorded = self.published()

    def chain(self) -> list[Claim]:
        """Who wrote the published status commits, oldest first."""
        out, current = [], self.head
        while current is not None:
            out.append(claim_of(self.repo.repo, current))
            parents = self.repo.repo.commit(current).parents
            current = parents[0] if len(parents) > 1 else None
        return out[::-1]

    def check(self) -> None:
        chain = self.chain()
        epochs = [claim.epoch for claim in chain]
        assert epochs == sorted(epochs), chain
        turns = [claim for n, claim in enumerate(chain) if n == 0 or claim != chain[n - 1]]
        assert len(turns) == len(set(turns)), f"a writer came back: {turns}"
        if self.head is not None:
            assert self.recorded <= self.published(), "recorded, and lost"

    def published(self) -> set[str]:
        return recorded_tokens(self.repo.repo, self.head or "")


def recorded_tokens(repo: Repository, commit: str) -> set[str]:
    found = RecordedFleet(repo, commit).residue_reader(A)(Key("configmaps", "x", "default", "app"))
    return tokens(found) if found is not None else set()


EVENTS = ["start", "take over", "kill", "stop", "cut", "join", "copy", "lose", "decide", "tick", "push", "vandal"]
EVENTS += ["keep", "restore", "back up", "recover", "forge goes back"]
History = list[tuple[str, int, int]]
histories = st.lists(
    st.tuples(st.sampled_from([*EVENTS, "start", "decide", "decide", "tick"]), st.integers(0, 2), st.integers(0, 2)),
    max_size=16,
)


def settle(world: World) -> None:
    """Everybody reaches the source, and has looked until nothing changes."""
    for server in world.servers:
        server.cut = False
        if server.alive:
            server.mirror.cut = False
    for _ in range(3):
        for server in world.servers:
            server.tick()


@pytest.mark.parametrize("remote", [False, True], ids=["this machine", "url"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(servers=st.integers(2, 3), history=histories)
def test_whatever_happens_one_writes_and_all_show_the_same(
    tmp_path_factory: pytest.TempPathFactory, remote: bool, servers: int, history: History
) -> None:
    world = World(tmp_path_factory.mktemp("servers"), remote=remote, servers=servers)
    try:
        for event in [("start", 0, 0), *history]:
            world.do(*event)
            world.check()
        settle(world)
        world.check()
        holders = [server for server in world.servers if server.holds]
        assert len(holders) <= 1
        fresh = recovered(world)
        for server in world.servers:
            if server.alive and not server.holds:
                assert server.objects() == fresh
    finally:
        world.close()


def recovered(world: World) -> dict[str, Any]:
    """What a recovery from the status branch gives."""
    if world.head is None:
        return {}
    store = open_store(world.folder / "fresh", sync=False, declared=DECLARED)
    repo = Repository(world.repo.path)
    recorded = RecordedFleet(repo, world.head)
    Loader(store, Repositories(repo), Identities(world.folder / "identities"), lambda _: ()).load(
        recorded.source, recorded
    )
    reader = Server.__new__(Server)
    reader.store = store
    found = reader.objects()
    store.close()
    return found


# -- one thing at a time


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, remote=True, servers=3)
    yield made
    made.close()


def test_of_two_that_start_together_one_observes(world: World) -> None:
    first, second, _ = world.servers
    first.cut = True
    first.start()
    assert not first.alive, "it never saw the branch"
    first.cut = False
    first.start()
    second.start()
    assert (first.holds, second.holder) == (True, first.installation.writer)


def test_one_that_was_cut_off_gives_way_to_who_took_over(world: World) -> None:
    first, second, _ = world.servers
    first.start()
    first.decide("before")
    first.tick()
    first.mirror.cut = True
    first.decide("alone")
    first.tick()
    second.start(first.installation.writer)
    assert second.holds
    assert second.said() == {"before"}
    second.decide("after")
    second.tick()
    first.mirror.cut = False
    first.tick()
    assert first.holder == second.installation.writer
    assert first.said() == {"before", "after"}
    [kept] = [name for name in first.mirror.repository.references if name.startswith("refs/treeplane/keep/")]
    assert "alone" in str(first.mirror.repository.raw(_residue(first.mirror.repository, kept), 3))


def _residue(repo: Repository, ref: str) -> str:
    entry = repo.entry_at(repo.commit(repo.ref(ref) or "").tree, f"{A}/_status/default/configmaps/app.yaml")
    assert entry is not None
    return entry.id


def test_what_could_not_be_pushed_comes_back_from_a_backup(world: World) -> None:
    first, second, third = world.servers
    first.start()
    first.decide("before")
    first.tick()
    first.mirror.cut = True
    first.decide("alone")
    first.tick()
    world.back_up(first)
    first.kill()
    assert world.published() == {"before"}
    world.recover(second, take_over=False)
    assert world.published() == {"before", "alone"}
    assert (second.holder, second.said()) == (first.installation.writer, {"before", "alone"})
    assert second.mirror.lost_record() is None or second.lost.newest(world.head) == world.head
    assert world.chain()[-1].writer == first.installation.writer, "it is pushed as the server that made it would have"
    third.start(first.installation.writer)
    assert third.said() == {"before", "alone"}


def test_it_is_shown_while_the_source_takes_no_push_and_pushed_when_it_does(world: World) -> None:
    first, second, _ = world.servers
    first.start()
    first.tick()
    first.mirror.cut = True
    first.decide("alone")
    first.tick()
    world.back_up(first)
    first.kill()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Link, "push_status", refuse)
        before = world.head
        second.data.joinpath(UNPUSHED).write_bytes(world.backup.file.read_bytes())  # type: ignore[union-attr]
        second.start()
        for _ in range(2):
            assert (second.said(), world.head) == ({"alone"}, before)
            second.tick()
    second.tick()
    assert world.published() == {"alone"}
    second.stop()
    second.start(first.installation.writer)
    assert second.holds
    assert second.mirror.lost_record() is None


def test_a_source_that_takes_no_push_is_taken_over_from_who_is_lost(world: World) -> None:
    """Nobody else records there either, and all that is recorded waits in the mirror."""
    first, second, _ = world.servers
    with pytest.MonkeyPatch.context() as patched:
        answers: Iterator[Exception] = iter(())
        patched.setattr(Link, "push_status", lambda *_: answer(answers))
        first.start()
        first.decide("alone")
        first.writer.flush()  # type: ignore[union-attr]
        world.back_up(first)
        first.kill()
        second.data.joinpath(UNPUSHED).write_bytes(world.backup.file.read_bytes())  # type: ignore[union-attr]
        answers = iter([PushRejected("protected"), PushRejected("protected")])
        second.start(first.installation.writer)
        assert second.holds
        assert second.said() == {"alone"}
        assert world.head is None
    second.tick()
    assert world.published() == {"alone"}


def test_it_goes_over_nothing_that_another_server_recorded_since(world: World) -> None:
    first, second, third = world.servers
    first.start()
    first.decide("before")
    first.tick()
    first.mirror.cut = True
    first.decide("alone")
    first.tick()
    world.back_up(first)
    first.kill()
    second.start(first.installation.writer)
    second.decide("since")
    second.tick()
    world.recover(third, take_over=True)
    assert third.said() == world.published() == {"before", "since"}
    assert third.mirror.lost_record() is None


def refuse(*_: Any) -> None:
    raise PushRejected("the branch is protected")


def answer(answers: Iterator[Exception]) -> None:
    raise next(answers, RepositoryUnreadable("out of reach"))


def test_a_flag_that_names_another_does_nothing(world: World) -> None:
    first, second, _ = world.servers
    first.start()
    second.start("somebody/1")
    assert second.holder == first.installation.writer
    second.stop()
    second.start(first.installation.writer)
    assert second.holds
    own_key, made = CommitKey.open(second.settings.keys_dir), second.mirror.status()
    assert made is not None
    assert Verifier(own_key).signer(second.mirror.repository, made, Signers()).ours, "what takes over is signed"
    first.tick()
    assert first.holder == second.installation.writer
    taken = second.settings.take_over
    second.stop()
    first.stop()
    first.start(second.installation.writer)
    assert first.holds
    second.start(taken)
    assert second.holder == first.installation.writer, "left in a unit file, it does nothing the second time"


def test_a_flag_that_names_another_leaves_a_start_on_this_machine_as_it_is(tmp_path: Path) -> None:
    world = World(tmp_path, remote=False, servers=2)
    try:
        first, second = world.servers
        first.start()
        second.start("somebody/1")
        assert second.holds
    finally:
        world.close()


def test_an_observer_does_not_inherit_a_branch_that_somebody_took_away(world: World) -> None:
    first, second, _ = world.servers
    first.start()
    first.decide("theirs")
    first.tick()
    second.start()
    second.stop()
    first.kill()
    move_ref(world.repo.repo, BRANCH, None, world.head)
    second.start()
    assert second.holder == first.installation.writer
    assert second.said() == {"theirs"}
    second.stop()
    second.start(first.installation.writer)
    assert second.holds
    assert world.published() == {"theirs"}


def test_what_was_recorded_in_a_load_is_shown_and_taken_over(world: World) -> None:
    """A decision that was made while a commit was on its way, of a workspace that was past what is named."""
    first, second, third = world.servers
    first.start()
    second.start()
    change = {f"{A}/app.yaml": configmap(a="changed"), "workspaces/root/new/workspace.yaml": ""}
    world.repo.commit({**change, "workspaces/root/new/app.yaml": configmap()})
    first.die_in_a_load("in between")
    second.tick()
    assert second.said() == {"in between"}
    second.stop()
    second.start(first.installation.writer)
    assert second.holds
    second.tick()
    assert world.published() == {"in between"}
    third.start()
    assert third.objects() == second.objects()
    files = source_files(second.mirror, second.mirror.status() or "")
    assert not [path for path, text in files.items() if "\nat: " in text or text.startswith("at: ")]
    assert "workspaces/root/new/_summary.yaml" in files
    assert "arriving" not in files["fleet.yaml"]


def test_a_branch_that_names_nobody_is_put_right(world: World) -> None:
    first = world.servers[0]
    first.start()
    first.decide("mine")
    first.tick()
    theirs = elsewhere(world.repo, {f"{A}/_status/default/configmaps/app.yaml": b"theirs\n"})
    first.tick()
    assert first.holds
    assert world.published() == {"mine"}
    assert Repository(world.repo.path).is_ancestor(theirs, world.head or "")


def test_real_clusters_are_taken_over_by_nobody_by_himself(tmp_path: Path) -> None:
    target = (
        "apiVersion: workload.kcp.io/v1alpha1\nkind: SyncTarget\nmetadata: {name: eu}\n"
        "spec: {connection: {kubeconfigSecretRef: {name: eu}}}\n"
    )
    world = World(tmp_path, remote=False, servers=2)
    try:
        world.repo.commit({f"{A}/apis.yaml": binding(WORKLOAD), f"{A}/target.yaml": target})
        first, second = world.servers
        first.start()
        second.start()
        assert second.holder == first.installation.writer
        world.repo.commit({f"{A}/target.yaml": None})
        first.tick()
        second.stop()
        second.start()
        assert second.holds
    finally:
        world.close()


def test_a_store_from_a_backup_is_not_believed(world: World) -> None:
    """store/ alone is copied back: what was recorded since counts, as what was there then."""
    only, *_ = world.servers
    only.start()
    only.decide("t2")
    only.stop()
    world.do("keep", 0, 0)
    only.start()
    only.decide("t4")
    only.stop()
    assert world.recorded == {"t2", "t4"}
    world.do("restore", 0, 0)
    only.start()
    assert "older" in only.told
    assert only.said() == {"t2", "t4"}
    world.check()
    assert only.objects() == recovered(world)
    only.stop()
    only.start()
    assert only.told == ""
    assert only.said() == {"t2", "t4"}
