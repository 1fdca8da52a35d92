"""One server without its threads, for tests of several on one repository (support/serverworlds)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from support.fleetrepo import FleetRepo
from support.happenings import Killed

from apiserver.model import commits
from apiserver.model.keys import Key
from apiserver.registry import codec, tree
from apiserver.registry.tree import put_fleet
from apiserver.storage.protocol import Put, Store
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
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import Heads, Mirror
from reconciler.saving.unpushed import UNPUSHED, TakingIn
from reconciler.statusbranch.claim import Claim, claim_of
from reconciler.statusbranch.lostrecord import LostRecord
from reconciler.statusbranch.publisher import Publisher
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.writer import StatusWriter

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

    def status_seen(self) -> str | None:
        self.reach()
        return super().status_seen()

    def push_status(self, commit: str, expected: str | None) -> None:
        self.reach()
        super().push_status(commit, expected)

    def reach(self) -> None:
        if self.cut:
            raise RepositoryUnreadable("out of reach")


class Ground(Protocol):
    """What servers stand on together. `recorded`: decisions that came to the status branch."""

    folder: Path
    remote: bool
    repo: FleetRepo
    recorded: set[str]

    def now(self) -> float:
        """Each time later."""


class Server:
    """One server without its threads: what they do, `tick` does."""

    def __init__(self, world: Ground, name: str) -> None:
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

    def record(self, token: str) -> None:
        """A decision, and what its threads do with it."""
        self.decide(token)
        self.tick()

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
