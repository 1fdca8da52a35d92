"""The status branch's one writer: batches what the store's log says into commits, and pushes them.

Called by the wiring of the reconciler process. A commit is made in the mirror first (that is what `durable` waits for,
since the first write to a cluster must not come before its decision), and pushed with the next batch: a git server that
is away stops neither. The push's compare-and-swap is also the lock: when another server's push came first, `fenced` is
set until what the other wrote has been read.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from apiserver.registry import tree
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Compacted, Store
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RefMoved, RepositoryError
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import FleetFacts, RecordedFleet
from reconciler.statusbranch.render import Files, Rendering

log = logging.getLogger(__name__)

_BATCH = 4_096


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """`settle`: seconds for which changes are collected into a batch; `longest`: the same while a commit is being
    loaded, whose end is worth waiting for; `retry`: seconds until a failed push is tried again."""

    settle: float = 0.25
    longest: float = 5.0
    retry: float = 5.0


class StatusWriter:
    """`start` once the first load is complete; `flush` commits at once; `durable(revision)` blocks until covered."""

    def __init__(
        self,
        store: Store,
        mirror: Mirror,
        published: str | None,
        settings: WriterSettings = WriterSettings(),
        *,
        stepping: AbstractContextManager[Any] | None = None,
    ) -> None:
        """`published`: where the source's status branch is (None: nowhere yet). `stepping`: Loader.stepping; nothing is
        committed while it is held, since what some workspaces are at by then is not the commit that would be named."""
        self.fenced = threading.Event()
        self.loading = threading.Event()
        """Set by the loader's thread while it steps through commits."""
        self._store = store
        self._mirror = mirror
        self._repo: Repository = mirror.repository
        self._settings = settings
        self._lock = threading.Lock()
        self._between = stepping or nullcontext()
        self._covered = 0
        self._foreign = False  # the branch holds what our log does not explain: compare all
        self._pushed = published
        self._told = ""
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status-branch", daemon=True)
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Bring the branch up to the store, then follow it."""
        self.flush()
        self._unsubscribe = self._store.subscribe(self._wake.set)
        self._thread.start()

    def stop(self) -> None:
        """Commit and push what is waiting, and end."""
        self._unsubscribe()
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def durable(self, revision: int) -> None:
        """Returns once everything up to a store revision stands in a commit of the mirror."""
        if self._covered < revision:
            self.flush()
            self._wake.set()

    def flush(self) -> str | None:
        """Commit what the store says beyond what is covered; the new commit, or None if nothing differs."""
        with self._lock:
            head = self._repo.ref(STATUS_REF)
            with self._between:
                until, fleet = self._store.revision(), tree.fleet(self._store)
                files = self._files(head, until)
            commit = self._commit(head, files, fleet, until)
            self._covered = max(self._covered, until)
            self._foreign = False
            return commit

    def _files(self, head: str | None, until: int) -> Files:
        rendering = Rendering(self._store)
        after = self._covered or (RecordedFleet(self._repo, head).facts().revision if head else 0)
        if self._foreign or after > until:
            return self._everything(rendering, head)
        files: Files = {}
        try:
            while after < until:
                changes = self._store.changes(after, _BATCH)
                if not changes:
                    break
                files.update(rendering.changed(changes))
                after = changes[-1].revision
        except Compacted:
            return self._everything(rendering, head)
        return files

    def _everything(self, rendering: Rendering, head: str | None) -> Files:
        """All files, and the removal of those that the branch holds and the store does not explain."""
        files = rendering.everything()
        if head is not None:
            lost = rendering.lost()
            for path in RecordedFleet(self._repo, head).paths():
                if path != format.FLEET and format.owner_of(path) not in lost:
                    files.setdefault(path, None)
        return files

    def _commit(self, head: str | None, files: Files, fleet: FleetRecord, until: int) -> str | None:
        if not fleet.commit:
            return None
        base = self._repo.commit(head).tree if head else None
        new = edit_tree(self._repo, base, files)
        facts = FleetFacts(fleet.fleet, until, fleet.claims, fleet.branch)
        if head is not None and new == base:
            known = RecordedFleet(self._repo, head).facts()
            if known == replace(facts, revision=known.revision):
                return None
        new = edit_tree(self._repo, new, {format.FLEET: format.dump(facts.as_file())})
        message = _message(files, fleet.commit)
        parents = [head, fleet.commit] if head else [fleet.commit]
        return commit_tree(self._repo, new, parents, message, when=None, ref=STATUS_REF, expected=head)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._wake.wait(None if self._pushed == self._repo.ref(STATUS_REF) else self._settings.retry)
            self._wake.clear()
            self._collect()
            self._round()
        self._round()

    def _collect(self) -> None:
        until = time.monotonic() + self._settings.longest
        self._stop.wait(self._settings.settle)
        while self.loading.is_set() and time.monotonic() < until and not self._stop.wait(self._settings.settle):
            pass

    def _round(self) -> None:
        try:
            self.flush()
            self._publish()
        except RefMoved:
            log.warning("the status branch of the mirror moved under us; reading it again")
            self._foreign = True
        except RepositoryError as error:
            log.warning("status branch: %s", error)

    def _publish(self) -> None:
        head = self._repo.ref(STATUS_REF)
        if head is None or head == self._pushed:
            return
        try:
            self._mirror.push_status(head, self._pushed)
        except BranchCheckedOut as error:
            if str(error) != self._told:
                self._told = str(error)
                log.warning("the status branch waits to be pushed: %s", error)
        except PushRejected as error:
            self.fenced.set()
            log.warning("status branch: another server wrote to it; reading what it wrote (%s)", error)
            self._adopt()
        else:
            self._pushed, self._told = head, ""
            self.fenced.clear()

    def _adopt(self) -> None:
        """Put our files on top of what the other server wrote, and try again with the next batch."""
        heads = self._mirror.refresh()
        with self._lock:
            self._pushed = heads.status
            if heads.status is not None:
                self._mirror.keep_status(heads.status)
                self._foreign = True
        self._wake.set()


def _message(files: Files, commit: str) -> str:
    written = sum(1 for data in files.values() if data is not None)
    removed = len(files) - written
    subject = f"Record {written} file{'s' if written != 1 else ''}"
    if removed:
        subject += f", remove {removed}"
    return f"{subject}\n\n{format.TRAILER}: {commit}\n"
