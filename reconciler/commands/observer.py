"""The server that only observes: another one holds the fleet, and this one shows what that records.

Made by the reconciler's process (reconcile). It writes to the store alone: nothing to git, nothing to clusters, and
none of the loops runs that would change an object. Reads are answered; writes get 503 with the holder's name.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from apiserver import bell
from apiserver.push import listen_push
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.commands import counting
from reconciler.commands.cameback import came_back
from reconciler.commands.sourcing import Sourcing
from reconciler.commands.start import Beginning, Start
from reconciler.commands.station import Station
from reconciler.commands.statusmove import StatusMove
from reconciler.commands.tidying import tidying
from reconciler.controllers import fleetcondition
from reconciler.controllers.fleetcondition import Trouble
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.heads import BranchSettings
from reconciler.loading.identities import Identities
from reconciler.loading.lagging import Lagging
from reconciler.loading.loader import Loader
from reconciler.loading.renderedagain import RenderedAgain
from reconciler.loading.secrets import SecretFiles
from reconciler.loading.shown import Shown
from reconciler.loading.sources import Sources
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import Heads
from reconciler.repository.watch import HeadWatcher
from reconciler.statusbranch.claim import claim_of
from reconciler.statusbranch.recorded import RecordedFleet

log = logging.getLogger(__name__)

_LOOK = 5.0


class Observer:
    """`run` returns when the process is to end."""

    def __init__(self, station: Station, start: Start) -> None:
        self._settings, self._lookout, self._teller = station.settings, station.lookout, station.teller
        self._store, self._mirror = station.store, station.mirror
        self._start, self._tidying = start, tidying(station)
        self._secrets = SecretFiles(station.settings.keys_dir)
        self._sourcing = Sourcing(
            station.settings, station.store, station.mirror, self._lookout.wake.set, station.renders, shows=True
        )
        self._shown = Shown(station.store, station.mirror.repository, self._loader, self._secrets.move)
        self._renders = station.renders
        sources = Sources(station.renders)
        self._again = RenderedAgain(station.store, sources, self._tree, elsewhere=self._sourcing.render_again)
        self._lagging = Lagging(station.store, station.mirror.repository)
        self._move = StatusMove(station.mirror)
        self._holder = ""

    def run(self, beginning: Beginning) -> None:
        recorded = beginning.recorded
        assert recorded is not None
        self._lookout.attach(self._store)
        self._is_held_by(beginning.holder)
        began, shown = time.monotonic(), tree.fleet(self._store).shown
        if shown and self._mirror.repository.has(shown.id):
            self._follow(recorded, self._secrets.not_served(self._store))
        else:
            held_by, progress = beginning.holder, self._teller.progress
            counting.counted(lambda: self._shown.begin(recorded, held_by, progress))
            self._lookout.attach(self._store)  # which forgot what was told
            self._lagging.count()
            self._teller.note(
                came_back(self._store, self._mirror.repository, recorded, self._settings, beginning.holder)
            )
        self._teller.loaded(self._store, tree.fleet(self._store).commit, time.monotonic() - began)
        lookout, data_dir = self._lookout, self._settings.data_dir
        watcher = HeadWatcher(self._settings.source, lookout.ring, self._settings.poll, lookout.looking.planned)
        stop_listening = listen_push(data_dir, lookout.wake.set)
        apart = self._status_watcher()
        stop_asking = bell.listen(data_dir, bell.LOOK, lambda _: self._asked(watcher, apart))
        for each in (watcher, *apart):
            each.start()
        self._tidying.start()
        self._sourcing.start()
        self._lookout.wake.set()
        try:
            while not self._lookout.stop.is_set():
                self._lookout.wake.wait(self._sourcing.wait(_LOOK))
                self._lookout.wake.clear()
                self._look()
                if self._move.is_due(tree.fleet(self._store).commit.id):
                    return
        finally:
            stop_asking()
            stop_listening()
            for each in (watcher, *apart):
                each.stop()
            self._sourcing.close()
            self._tidying.stop()

    def _status_watcher(self) -> list[HeadWatcher]:
        """Of a repository that the status branch has of its own."""
        mirror = self._mirror
        if not mirror.is_apart:
            return []
        return [HeadWatcher(mirror.status_repository, self._lookout.look_at_status, self._settings.poll)]

    def _asked(self, watcher: HeadWatcher, apart: list[HeadWatcher]) -> None:
        """Somebody wants the repositories looked at now."""
        self._lookout.ask(watcher)
        for each in apart:
            each.ring()

    def _look(self) -> None:
        self._teller.keep_again()
        heads = self._lookout.heads()
        shown = tree.fleet(self._store).shown
        changed = self._secrets.changed() | self._again.due()
        # A branch that is gone shows nothing new: it is the holder's to bring back.
        status = self._status(heads) or shown.id
        if status != shown.id or changed:
            self._follow(RecordedFleet(self._mirror.repository, status), changed)
        self._sourcing.serve(self._look_again)
        self._answer(heads)

    def _status(self, heads: Heads | None) -> str | None:
        """The status commit that counts. The last that a lost server had not pushed is pushed for it."""
        if heads is None:
            return None
        lost = self._start.lost
        lost.push(heads.status)
        return lost.newest(heads.status)

    def _answer(self, heads: Heads | None) -> None:
        """Whoever asked for a look: about the branch, as for who holds it, and not about the status branch."""
        looking, lookout = self._lookout.looking, self._lookout
        if not looking.is_asked(lookout.began):
            return
        head = (heads.desired if heads is not None and not lookout.why else None) or ""
        looking.answer(lookout.began, head, lookout.why or self._behind(heads, head))

    def _behind(self, heads: Heads | None, head: str) -> str:
        """Why the branch's head is not what is shown, "" if it is."""
        fleet, status = tree.fleet(self._store), self._status(heads)
        if status not in (None, fleet.shown.id):
            return f"the status branch is at {status:.10}, and {fleet.shown.id:.10} is shown"
        if not head:
            return f"the repository has no branch {self._mirror.branch}"
        repo, served = self._mirror.repository, fleet.commit.id
        if head == served or (repo.has(head) and repo.is_ancestor(head, served)):
            return ""
        return f"{self._holder}, which holds the fleet, has not recorded {head:.10} as served"

    def _look_again(self, paths: Collection[str]) -> None:
        """What comes from other repositories may be here by now."""
        self._follow(RecordedFleet(self._mirror.repository, tree.fleet(self._store).shown.id), paths)

    def _follow(self, recorded: RecordedFleet, also: Collection[str] = ()) -> None:
        """One status commit; what cannot be read is tried again at the next look."""
        self._is_held_by(claim_of(self._mirror.repository, recorded.commit.id).writer or self._holder)
        served, began = tree.fleet(self._store).commit, time.monotonic()
        try:
            self._mirror.repository.folders = recorded.facts().folders  # the holder may have followed a move
            looked = self._shown.follow(recorded, self._holder, also)
        except RepositoryError as error:
            text = f"status commit {recorded.commit:.10} cannot be shown: {error}"
            self._teller.trouble(text, Trouble.UNREADABLE)
            return
        self._teller.over(Trouble.UNREADABLE)
        if tree.fleet(self._store).commit != served:
            counting.shown(time.monotonic() - began, len(looked))
        self._lagging.count(looked)
        fleetcondition.show(self._store)  # root may have been recovered, and the holder does not observe
        self._mirror.keep_status(recorded.commit.id)
        log.info("shows %s of %s: %d workspaces differ", f"{recorded.commit:.10}", self._holder, len(looked))

    def _is_held_by(self, holder: str) -> None:
        if holder != self._holder:
            self._holder = holder
            self._teller.trouble(self._start.observing(holder), Trouble.OBSERVING)

    def _loader(self, store: Store) -> Loader:
        settings = self._settings
        identities = Identities(settings.keys_dir / "identities")
        branch = BranchSettings(settings.branch, settings.url)
        repositories, keys = self._mirror.repositories, self._secrets.keys_of
        loader = Loader(store, repositories, identities, self._secrets.of, branch, keys=keys, renders=self._renders)
        self._sourcing.lend(loader)
        return loader

    def _tree(self) -> WorkspaceTree:
        fleet, repo = tree.fleet(self._store), self._mirror.repository
        return WorkspaceTree(repo, repo.commit(fleet.commit.id).tree, fleet.claims)
