"""Several servers on one repository, and what may happen to them. One writes at a time, nothing recorded is lost."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

from support.fleetrepo import FleetRepo
from support.loadedfleet import BEGINNING, A, configmap
from support.loneserver import Server, tokens

from apiserver.model.keys import Key
from apiserver.storage.lmdb import open_store
from apiserver.stores import DECLARED
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.repository.chain import goes_on
from reconciler.repository.keep import is_kept
from reconciler.repository.mirror import STATUS_REF
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories
from reconciler.repository.write import move_ref
from reconciler.saving.unpushed import UNPUSHED, saved
from reconciler.statusbranch.claim import Claim, claim_of
from reconciler.statusbranch.recorded import RecordedFleet

BRANCH = "refs/heads/treeplane/status"


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

    def cut_off(self, *before: str) -> None:
        """The first server starts, records some decisions, is cut off from the source, and decides `alone`."""
        first = self.servers[0]
        first.start()
        for token in before:
            first.record(token)
        first.mirror.cut = True
        first.record("alone")

    def lost_with_a_backup(self, *before: str) -> Backup:
        """The same; then it is backed up, and lost."""
        self.cut_off(*before)
        self.back_up(self.servers[0])
        self.servers[0].kill()
        assert self.backup is not None
        return self.backup

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


def settle(world: World) -> None:
    """Everybody reaches the source, and has looked until nothing changes."""
    for server in world.servers:
        server.cut = False
        if server.alive:
            server.mirror.cut = False
    for _ in range(3):
        for server in world.servers:
            server.tick()


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
