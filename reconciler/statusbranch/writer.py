"""The status branch's one writer: batches what the store's log says into commits of the mirror.

Called by the wiring of the reconciler process. A commit in the mirror is what `durable` waits for, since the first
write to a cluster must not come before its decision; publisher brings it to the source. When a commit is made is
schedule's and urgency's, what it says of itself message's, how long its history is history's.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from apiserver.metrics.fleet import PHASES, STATUS_BEGAN, STATUS_COMMITS
from apiserver.model.commits import NONE, CommitRef
from apiserver.registry import tree
from apiserver.registry.tree import FleetRecord
from apiserver.storage.baton import BATON
from apiserver.storage.protocol import Compacted, NoSpace, Store
from reconciler.layout.fleet import FILE
from reconciler.repository.chain import CONTINUES
from reconciler.repository.difference import difference
from reconciler.repository.errors import RefMoved, RepositoryError
from reconciler.repository.library import Sign
from reconciler.repository.messages import with_trailers
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree
from reconciler.statusbranch import covered, fleetfacts, format, history, pushtrailers, urgency
from reconciler.statusbranch.claim import Claim
from reconciler.statusbranch.content import StatusContent
from reconciler.statusbranch.folders import Folders
from reconciler.statusbranch.message import describe
from reconciler.statusbranch.recorded import FleetFacts, RecordedFleet
from reconciler.statusbranch.render import Rendering
from reconciler.statusbranch.schedule import Schedule
from reconciler.statusbranch.stretches import Stretches
from reconciler.statusbranch.underway import UnderWay
from reconciler.statusbranch.unsettled import Unsettled
from reconciler.statusbranch.urgency import Urgency

log = logging.getLogger(__name__)

_BATCH = 4_096
_FAR = 65_536
"""Entries that left nothing to commit, after which it is noted that they were read."""
_AHEAD = 256
"""Entries behind a batch that may say which workspace its last ones were of."""


@dataclass(frozen=True, slots=True)
class WriterSettings:
    """Seconds. `quiet`, `longest`: see Schedule. `together`: what comes so soon after another is written with it.
    `loading`: how long the end of a commit that is being loaded is worth waiting for. `retry`: until what could not be
    committed is tried again. `looks`: after which it is looked for what no object tells."""

    quiet: float = 0.25
    longest: float = 30.0
    together: float = 0.1
    loading: float = 5.0
    retry: float = 5.0
    looks: float = 5.0


class _Recording(NamedTuple):
    """All that there is to record up to a revision: its tree, but for fleet.yaml, and the fleet's record of then."""

    tree: str
    fleet: FleetRecord
    until: int
    unsettled: Unsettled


class StatusWriter:
    """`start` once the first load is complete; `flush` commits at once; `durable(revision)` blocks until covered."""

    def __init__(
        self,
        store: Store,
        mirror: Mirror,
        settings: WriterSettings = WriterSettings(),
        *,
        under_way: UnderWay | None = None,
        claim: Callable[[], Claim] = Claim,
        sign: Sign | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`under_way`: whether commits are being loaded; None: nobody loads. `claim`: who writes, asked before each
        commit. `sign`: what signs the commits; None leaves them unsigned. `now`: seconds since 1970, for the age of the
        history."""
        self.committed: Callable[[], None] = lambda: None
        """Called after each commit."""
        self.told: Callable[[str], None] = lambda _: None
        """Called with why nothing can be recorded, and with "" when it can."""
        self._store = store
        self._mirror = mirror
        self._repo: Repository = mirror.repository
        self._settings = settings
        self.claim = claim
        """Who writes: this server and its epoch, for whatever else has to say so. It is on disk before it is told."""
        self._sign, self._now = sign, now
        self._schedule = Schedule(settings.quiet, settings.longest)
        self._lock = threading.Lock()
        self._under_way = under_way or UnderWay()
        self._covered = 0
        self._unsettled = Unsettled()
        self._looked = self._noted = 0
        self._served = NONE  # when it was last looked
        self._whole = False  # the branch holds what our log does not explain: compare all
        self._endless = False  # the source does not let its history end
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status-branch", daemon=True)
        self._unsubscribe: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Bring the branch up to the store, then follow it. A process that is begun because of a commit that is being
        loaded leaves the machine to who loads that for a while, as later ones are."""
        self._await_load()
        self.flush()
        self._looked, self._served = self._covered, tree.fleet(self._store).commit
        self._unsubscribe = self._store.subscribe(self._wake.set)
        self._thread.start()

    def stop(self) -> None:
        """Commit what is waiting, and end."""
        self._unsubscribe()
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def durable(self, revision: int) -> None:
        """Returns once everything up to a store revision stands in a commit of the mirror, whatever is being loaded."""
        if self._covered < revision:
            self.flush()

    def flush(self) -> str | None:
        """Commit what the store says beyond what is covered; the new commit, or None if nothing differs."""
        with self._lock:
            began = time.monotonic()
            head = self._repo.ref(STATUS_REF)
            rendering = Rendering(self._store, sparing=self._under_way.is_so())
            said = self._said(rendering, head)
            commit = self._commit(head, said, rendering) if said.fleet.commit else None
            self._unsettled = said.unsettled
            self._covered = max(self._covered, said.until)
            self._whole = False
            if commit is None and head is not None:
                self._note(head)
            if commit is not None:
                PHASES.took(time.monotonic() - began, "record")
                STATUS_COMMITS.add()
        if commit is not None:
            self.committed()
        return commit

    def _note(self, head: str) -> None:
        """Nothing was committed: so that who goes on from here does not read it all again. What cannot be noted is read
        again, and nothing else comes of that."""
        settled = self._unsettled.settled
        if settled > self._noted and (self._stop.is_set() or settled - self._noted >= _FAR):
            with suppress(NoSpace):
                self._store.write(covered.note(head, settled)).result()
                self._noted = settled

    # -- what the source makes of it

    def put_on_top(self, of: str) -> None:
        """Goes on from a commit of the source that is no ancestor of ours; what it holds and we do not goes."""
        with self._lock:
            self._mirror.keep_status(of)
            self._whole = True
        self.flush()

    def join(self, ended: str) -> None:
        """Takes the end of the history back, which the source refused: the newest content becomes a child of `ended`,
        the last commit before it. History does not end any more until the next start."""
        with self._lock:
            head = self._repo.ref(STATUS_REF)
            assert head is not None
            recorded = RecordedFleet(self._repo, head)
            facts = replace(recorded.facts(), began=RecordedFleet(self._repo, ended).facts().began)
            content = edit_tree(self._repo, recorded.tree, {format.FLEET: format.dump(facts.as_file())})
            trailers = self._trailers(recorded.source, RecordedFleet(self._repo, ended).source)
            message = with_trailers("Go on with the history", [], trailers)
            parents = [ended, recorded.source.id]
            commit_tree(self._repo, content, parents, message, None, STATUS_REF, head, self._sign)
            self._endless = True

    # -- commits

    def _said(self, rendering: Rendering, head: str | None) -> _Recording:
        """All that there is to record: what the log tells of, or all there is."""
        if not self._covered and head is not None:
            facts = RecordedFleet(self._repo, head).facts()
            self._noted = max(facts.settled, covered.noted(self._store, head))
            self._unsettled.settled, rendering.recorded = self._noted, facts.revision
        after = self._covered or self._unsettled.settled
        if self._whole or after > self._store.revision():
            return self._everything(rendering, head)
        unsettled = self._unsettled.copy()
        content = StatusContent(self._repo, self._repo.commit(head).tree if head is not None else None)
        stretches = Stretches(self._store, rendering, unsettled, after)
        try:
            content.add(stretches)
        except Compacted:
            return self._everything(rendering, head)
        return _Recording(content.tree(), stretches.fleet, stretches.until, unsettled)

    def _everything(self, rendering: Rendering, head: str | None) -> _Recording:
        """All files anew, and those of the branch that the store cannot explain and that stay. In one view, which the
        store's file grows by: nothing is loaded beside it as a rule."""
        content, unsettled = StatusContent(self._repo, None), Unsettled()
        with self._store.view() as view:
            fleet, until = rendering.over(view), view.revision()
            unsettled.look(fleet)
            if head is not None:
                recorded = self._repo.commit(head).tree
                content.keep_file(recorded, format.FLEET)
                for folder in rendering.lost():
                    content.keep(recorded, folder)
            content.add(rendering.everything())
            unsettled.ahead(rendering.ahead)
        unsettled.read(until)
        return _Recording(content.tree(), fleet, until, unsettled)

    def _commit(self, head: str | None, said: _Recording, rendering: Rendering) -> str | None:
        new, fleet = said.tree, said.fleet
        before = RecordedFleet(self._repo, head) if head is not None else None
        base = before.tree if before is not None else None
        known = before.facts() if before is not None else FleetFacts()
        facts = fleetfacts.of_store(self._store, fleet, known, self._repo.folders)
        if before is not None and new == base and facts == known and not self._is_told(before.source, fleet):
            return None
        served = fleet.commit.id
        ends = head is not None and self._ends(head, known, served)
        begins = head is None or ends
        began = self._time() if begins else history.began(self._repo, head or "", known.began)
        facts = replace(facts, revision=said.until, settled=said.unsettled.settled)
        facts = replace(facts, began=began.isoformat(timespec="seconds"))
        STATUS_BEGAN.set(began.timestamp())
        facts = replace(facts, arriving=fleet.arriving, admitted=fleet.admitted)
        new = edit_tree(self._repo, new, {format.FLEET: format.dump(facts.as_file())})
        named: set[str] = set()
        changes = history.noting(self._repo, difference(self._repo, base, new), named)
        subject, lines = describe(changes, Folders(self._store, rendering.gone))
        trailers = self._trailers(fleet.commit, before.source if before is not None else None)
        trailers |= {CONTINUES: head} if ends and head is not None else {}
        message = with_trailers(subject, lines, trailers)
        if head is not None and ends:
            self._mirror.keep_history(head, self._time().date())
            parents = [*history.unreachable(self._repo, history.named(self._repo, new), [served]), served]
            return self._made(new, parents, message, head)
        if head is None:
            first = self._made(new, [served], message, None)
            more = history.unreachable(self._repo, history.named(self._repo, new), [served])
            return self._made(new, [first, *more, served], message, first) if more else first
        more = history.unreachable(self._repo, named, [head, served])
        return self._made(new, [head, *more, served], message, head)

    def _is_told(self, before: CommitRef, fleet: FleetRecord) -> bool:
        """Whether a commit that changes nothing is not left to be recorded with the next that does: where a branch that
        left it is held, and where it says something else of the fleet, which others read here."""
        if before == fleet.commit:
            return False
        return bool(fleet.error) or self._settings_at(before) != self._settings_at(fleet.commit)

    def _settings_at(self, commit: CommitRef) -> str:
        """What treeplane.yaml is in a commit, as git's id; "" where there is none."""
        there = self._repo.has(commit.id)
        entry = self._repo.entry_at(self._repo.commit(commit.id).tree, FILE) if there else None
        return entry.id if entry is not None else ""

    def _made(self, content: str, parents: Sequence[str], message: str, head: str | None) -> str:
        return commit_tree(self._repo, content, parents, message, int(self._now()), STATUS_REF, head, self._sign)

    def _ends(self, head: str, known: FleetFacts, served: str) -> bool:
        """Whether the history has come to its age."""
        age = self._time() - history.began(self._repo, head, known.began)
        return not self._endless and age >= history.retention(self._repo, served)

    def _trailers(self, source: CommitRef, before: CommitRef | None) -> dict[str, str | list[str]]:
        """`before`: the commit that the status commit before it is about."""
        pushed = pushtrailers.lines(self._repo, self._store, before.id if before is not None else None, source.id)
        return {format.TRAILER: str(source), **self.claim().trailers(), pushtrailers.PUSHED_BY: pushed}

    def _time(self) -> datetime:
        return datetime.fromtimestamp(self._now(), UTC)

    # -- the thread

    def _run(self) -> None:
        while not self._stop.is_set():
            due = self._schedule.due - time.monotonic()
            self._wake.wait(min(max(0.0, due), self._settings.looks))
            self._stop.wait(self._settings.together)
            self._wake.clear()
            self._look()
            if self._schedule.due <= time.monotonic():
                self._await_load()
                self._write()
        self._write()

    def _look(self) -> None:
        """What came since the last look, and how urgent it is."""
        now, until = time.monotonic(), self._store.revision()
        try:
            while self._looked < until and self._schedule.due > now:
                with BATON:
                    if not self._look_at_page(now):
                        break
        except Compacted:
            self._schedule.urgent(now)
        self._looked = max(self._looked, until)
        self._look_at_settings(now)

    def _look_at_page(self, now: float) -> bool:
        """Whether there was one."""
        changes = self._store.changes(self._looked, _BATCH, urgency.of_workspaces_end)
        if not changes:
            return False
        self._looked = changes[-1].revision
        rest = len(changes) == _BATCH
        ahead = self._store.changes(self._looked, _AHEAD, urgency.of_workspaces_end) if rest else []
        without = urgency.unrecorded([*changes, *ahead])
        for change in changes:
            asked = urgency.of(change, without)
            if asked == Urgency.URGENT:
                self._schedule.urgent(now)
                break
            if asked == Urgency.STATUS:
                self._schedule.status(now)
        return True

    def _look_at_settings(self, now: float) -> None:
        """No object tells that the fleet says something else."""
        before, self._served = self._served, tree.fleet(self._store).commit
        if self._served == before:
            return
        try:
            if self._settings_at(before) != self._settings_at(self._served):
                self._schedule.urgent(now)
        except RepositoryError:
            self._schedule.urgent(now)  # what is wrong is told where it is written

    def _await_load(self) -> None:
        until = time.monotonic() + self._settings.loading
        while self._under_way.is_so() and time.monotonic() < until and not self._stop.wait(self._settings.together):
            pass

    def _write(self) -> None:
        try:
            self.flush()
            self._schedule.wrote()
            self.told("")
        except Exception as error:  # whatever it is: this thread is the only one that records
            log.warning("status branch: %s", error, exc_info=not isinstance(error, RepositoryError))
            self._whole = isinstance(error, RefMoved)  # in the mirror, under us: read all of it again
            if not self._whole:
                self.told(f"what happens is not recorded, until this is mended: {error}")
            self._stop.wait(self._settings.retry)
