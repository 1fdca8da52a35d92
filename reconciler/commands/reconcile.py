"""The reconciler's process: git in, store, clusters and status branch out. Started by `up`, one for a data directory.

Wiring and order only. Order matters at the start: the store is filled before anything else runs, and the first status
commit stands in the mirror before the first write to a cluster.
"""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sys
import threading
import time
from pathlib import Path

from apiserver import garbage
from apiserver.auth.keys import Keys
from apiserver.auth.pki import Signer
from apiserver.push import listen_push
from apiserver.registry import tree
from apiserver.registry.catalog import Catalog
from apiserver.registry.kinds import KUBERNETES
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Store
from apiserver.stores import MARKED
from reconciler.commands.report import Report
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.standins import StandIns
from reconciler.commands.targets import Kubeconfigs
from reconciler.commands.tidying import Tidying
from reconciler.controllers.clusterparts import cluster_loops
from reconciler.controllers.follower import Follower
from reconciler.controllers.housekeeping import housekeeping
from reconciler.controllers.served import started_with
from reconciler.controllers.settings import HousekeepingSettings, TargetSettings
from reconciler.controllers.tokensecrets import token_secrets
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import STATUS_BRANCH, read_fleet
from reconciler.loading.committer import Branch, Committer
from reconciler.loading.declared import Declarations
from reconciler.loading.identities import Identities
from reconciler.loading.keptsecrets import KeptSecrets
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.secrets import SecretFiles
from reconciler.repository.desired import Desired
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import Heads, Mirror
from reconciler.repository.objects import set_fsync
from reconciler.repository.watch import HeadWatcher
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.statusbranch.writer import StatusWriter
from reconciler.syncing.service import Syncing
from reconciler.syncing.settings import SyncSettings
from reconciler.syncing.upstream import Item

log = logging.getLogger(__name__)

_NAMESPACES_LINGER = 2.0
"""Seconds; see HousekeepingSettings."""
_LAST = 8.0
"""Seconds at the end for a source that does not answer."""
_LOOK = 5.0
"""Seconds after which heads and Secrets are looked at without having been told to."""


class Reconciler:
    """Call `run`; `stop` from any thread ends it."""

    def __init__(self, settings: ReconcileSettings, report: Report) -> None:
        self._settings = settings
        self._report = report
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._secrets = SecretFiles(settings.keys_dir)
        self._mirror = Mirror(settings.data_dir, settings.source, settings.branch, self._status_branch())
        self._told = ""
        self._away = False
        self._seen = ""

    def stop(self) -> None:
        self._mirror.close(_LAST)
        self._stop.set()
        self._wake.set()

    def run(self) -> None:
        set_fsync(self._settings.sync_writes)
        self._mirror.clear_locks()
        heads = self._first_heads()
        if heads is None:
            return
        status = self._settle_status(heads)
        recorded = RecordedFleet(self._mirror.repository, status) if status else None
        store = open_store(
            self._settings.data_dir / "store",
            marked=MARKED,
            sync=self._settings.sync_writes,
            start=recorded.facts().revision if recorded else None,
        )
        try:
            self._serve(store, heads, recorded)
        finally:
            store.close()

    def _serve(self, store: Store, heads: Heads, recorded: RecordedFleet | None) -> None:
        settings = self._settings
        loader = Loader(
            store,
            self._mirror.repository,
            Identities(settings.keys_dir / "identities"),
            self._secrets.of,
            settings.branch,
            settings.url,
        )
        writer = StatusWriter(store, self._mirror, heads.status, stepping=loader.stepping)
        if not self._first_load(store, loader, heads, recorded):
            return
        writer.start()
        keys = Keys(settings.keys_dir)
        standins = StandIns(store, settings.data_dir / "targets", keys, sync=settings.sync_writes)
        loops = self._cluster_loops(store)
        tokens = token_secrets(store, Signer(keys), keys.ca.read_text(), lambda cluster: cluster)
        bounds = HousekeepingSettings(settings.events, settings.history, _NAMESPACES_LINGER)
        keeping = housekeeping(store, Catalog(store).kinds, bounds)
        for follower in (keeping, loops, tokens):
            follower.busy = writer.loading.is_set
        keeping.start()
        loops.start()
        tokens.start()
        syncing = self._syncing(store, writer)
        standins.load(syncing.informer)
        syncing.start()
        committer = self._committer(store, loader, writer)
        tidying = Tidying(self._own_repositories(), store.revision)
        watcher = HeadWatcher(settings.source, self._ring, settings.poll)
        stop_listening = listen_push(settings.data_dir, self._wake.set)
        stop_hearing = store.subscribe(lambda: self._written(committer))
        watcher.start()
        tidying.start()
        self._wake.set()  # what came between the first look and the first watch
        try:
            self._follow(loader, writer, committer)
        finally:
            stop_hearing()
            stop_listening()
            watcher.stop()
            tidying.stop()
            syncing.stop()
            tokens.stop()
            loops.stop()
            keeping.stop()
            standins.stop()
            writer.stop()

    def _committer(self, store: Store, loader: Loader, writer: StatusWriter) -> Committer:
        def catch_up() -> None:
            heads = self._look()
            if heads is not None and heads.desired is not None:
                self._take(heads.desired, loader, writer)

        def moved(commit: str) -> None:
            self._seen = commit
            self._mirror.keep_served(commit)

        branch = Branch(Desired(self._mirror), self._mirror.repository, catch_up, moved)
        return Committer(store, loader, branch, KeptSecrets(store, self._settings.keys_dir, self._secrets))

    def _cluster_loops(self, store: Store) -> Follower:
        bundle = Keys(self._settings.keys_dir).ca.read_text()
        return cluster_loops(store, started_with(store, KUBERNETES), bundle)

    def _syncing(self, store: Store, writer: StatusWriter) -> Syncing:
        declarations = Declarations(store, self._mirror.repository)

        def declared(path: str, commit: str, item: Item) -> bool:
            return declarations.declared(path, commit, item.kind.group, item.kind.resource, item.namespace, item.name)

        def barred() -> str:
            return "another server writes to the status branch; waiting to read it" if writer.fenced.is_set() else ""

        credentials = Kubeconfigs(store, Keys(self._settings.keys_dir), self._settings.local_url)
        return Syncing(store, _sync_settings(self._settings), credentials, writer.durable, declared, barred)

    def _own_repositories(self) -> list[Path]:
        """Those whose packing is ours: never a user's."""
        return [self._mirror.path, *([Path(self._settings.source)] if self._settings.hosted else [])]

    # -- the desired branch ------------------------------------------------------------------------------------------

    def _first_heads(self) -> Heads | None:
        """Wait until the repository answers and has the branch. One that is away, but was seen before, delays nothing:
        what runs is kept running."""
        while not self._stop.is_set():
            try:
                heads = self._mirror.refresh()
                if heads.desired is not None:
                    return heads
                self._trouble(f"the repository has no branch {self._settings.branch}: push one")
            except RepositoryError as error:
                self._trouble(str(error))
                heads = self._mirror.last_seen()
                if heads.desired is not None:
                    return heads
            self._wake.wait(1.0)
        return None

    def _settle_status(self, heads: Heads) -> str | None:
        """The status commit to start from: ours where it goes on from the published one, else the published one."""
        ours, published = self._mirror.status(), heads.status
        repo = self._mirror.repository
        if published is None or (ours is not None and repo.is_ancestor(published, ours)):
            return ours
        if ours is not None and not repo.is_ancestor(ours, published):
            self._trouble("the status branch was written to by another server: going on from what it wrote")
        self._mirror.keep_status(published)
        return published

    def _first_load(self, store: Store, loader: Loader, heads: Heads, recorded: RecordedFleet | None) -> bool:
        began = time.monotonic()
        while not self._stop.is_set():
            if heads.desired is not None:
                loaded = loader.load(heads.desired, recorded, self._report.progress)
                if tree.fleet(store).loaded:
                    loader.recheck(self._secrets.changed())
                    self._tell_loaded(store, loaded, time.monotonic() - began)
                    return True
                self._tell_held(loaded)
            self._wake.wait(1.0)
            heads = self._look() or heads
        return False

    def _follow(self, loader: Loader, writer: StatusWriter, committer: Committer) -> None:
        while not self._stop.is_set():
            self._wake.wait(_LOOK)
            self._wake.clear()
            # A URL was looked at by the watcher's thread: it may take long to answer.
            heads = self._mirror.last_seen() if self._mirror.is_remote else self._look()
            if heads is not None and heads.desired not in (None, self._seen):
                self._take(heads.desired, loader, writer)
            changed = self._secrets.changed()
            if changed:
                loader.recheck(changed)
            if committer.waiting():
                self._commit(committer, writer)

    @staticmethod
    def _commit(committer: Committer, writer: StatusWriter) -> None:
        writer.loading.set()
        try:
            committer.serve()
        finally:
            writer.loading.clear()

    def _take(self, head: str, loader: Loader, writer: StatusWriter) -> None:
        """One head of the desired branch; one that cannot be read is tried again at the next look."""
        writer.loading.set()
        try:
            loaded = loader.load(head)
        except RepositoryError as error:
            self._trouble(str(error))
            return
        finally:
            writer.loading.clear()
        self._seen = head
        self._mirror.keep_served(head)
        self._tell_held(loaded)

    def _ring(self) -> bool:
        """Called by the watcher; whether the source answers."""
        answers = not self._mirror.is_remote or self._look() is not None
        self._wake.set()
        return answers

    def _written(self, committer: Committer) -> None:
        """The store changed: perhaps a write waits for its commit."""
        if committer.waiting():
            self._wake.set()

    def _look(self) -> Heads | None:
        try:
            heads = self._mirror.refresh()
        except RepositoryError as error:
            self._trouble(str(error))
            self._away = True
            return None
        if self._away:
            self._away, self._told = False, ""
        return heads

    def _status_branch(self) -> str:
        """As the newest treeplane.yaml names it."""
        try:
            mirror = Mirror(self._settings.data_dir, self._settings.source, self._settings.branch, STATUS_BRANCH)
            head = mirror.refresh().desired
            if head is None:
                return STATUS_BRANCH
            return read_fleet(mirror.repository, mirror.repository.commit(head).tree).status_branch
        except (RepositoryError, BadFile):
            return STATUS_BRANCH

    # -- words -------------------------------------------------------------------------------------------------------

    def _tell_loaded(self, store: Store, loaded: Loaded, seconds: float) -> None:
        held, count = tree.held(store), tree.count(store)
        self._report.say("loaded", commit=loaded.head, workspaces=count, seconds=round(seconds, 2), held=held)

    def _tell_held(self, loaded: Loaded) -> None:
        if loaded.problems:
            self._trouble(f"commit {loaded.head:.10} is held: {'; '.join(map(str, loaded.problems))}")
        for step in loaded.steps:
            for path in step.mended:
                self._report.say("mended", workspace=path)
            for path, problems in step.held.items():
                self._report.say("held", workspace=path, problems=[str(p) for p in problems])

    def _trouble(self, text: str) -> None:
        if text != self._told:
            self._told = text
            self._report.say("trouble", text=text)


def _sync_settings(settings: ReconcileSettings) -> SyncSettings:
    targets = TargetSettings(heartbeat=settings.heartbeat, threshold=settings.threshold, tolerance=settings.tolerance)
    return SyncSettings(targets=targets)


def main() -> None:
    """Settings come as JSON in the environment variable TREEPLANE_RECONCILE."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s", filename=None)
    # Many threads that wait, one that works: it lets go of the interpreter at every read of git and of the store, and
    # would wait five milliseconds each time for a loop that is catching up with the log.
    sys.setswitchinterval(0.0005)
    garbage.settle()
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    settings = ReconcileSettings.from_json(os.environ["TREEPLANE_RECONCILE"])
    Path(settings.data_dir).mkdir(mode=0o700, parents=True, exist_ok=True)
    with (settings.data_dir / "reconciler.lock").open("w") as lock:
        # One for a data directory: what is left of a server that crashed ends first.
        fcntl.flock(lock, fcntl.LOCK_EX)
        reconciler = Reconciler(settings, Report())
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: reconciler.stop())
        threading.Thread(target=_end_with_parent, args=(reconciler,), name="parent", daemon=True).start()
        reconciler.run()


def _end_with_parent(reconciler: Reconciler) -> None:
    """The parent never writes; standard input ends when it is gone, however it went."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    reconciler.stop()


if __name__ == "__main__":
    main()
