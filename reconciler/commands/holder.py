"""The server that holds its repository: it loads commits, serves writes, and says what happened on the status branch.

Made by the reconciler's process (reconcile) for a store that is open. Order matters: the store is filled before
anything else runs, and the first status commit stands in the mirror before the first write to a cluster.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

from apiserver import bell
from apiserver.model import commits
from apiserver.model.commits import NONE
from apiserver.push import listen_push
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.commands import branching
from reconciler.commands.apart import Apart
from reconciler.commands.beside import Beside
from reconciler.commands.cameback import came_back
from reconciler.commands.counting import count, counted, written
from reconciler.commands.excerpting import Excerpting
from reconciler.commands.fleetsize import FleetSize
from reconciler.commands.installation import Installation
from reconciler.commands.proposing import Proposing, proposals
from reconciler.commands.pushes import Pushes, PushJudge
from reconciler.commands.roles import Work
from reconciler.commands.sourcing import Sourcing
from reconciler.commands.start import Beginning
from reconciler.commands.station import Station
from reconciler.commands.statusmove import MOVES, StatusMove
from reconciler.commands.tenure import Tenure
from reconciler.commands.tidying import tidying
from reconciler.commands.verdicts import Verdicts, unserved
from reconciler.controllers.fleetcondition import Trouble
from reconciler.loading import awaited, pins
from reconciler.loading.changeset import together
from reconciler.loading.committer import Branch, Committer
from reconciler.loading.identities import Identities
from reconciler.loading.keptsecrets import KeptSecrets
from reconciler.loading.lagging import Lagging
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.outcomes import Outcomes
from reconciler.loading.renderedagain import RenderedAgain
from reconciler.loading.secrets import SecretFiles
from reconciler.loading.trial import Trial
from reconciler.loading.whopushed import WhoPushed
from reconciler.repository.desired import Desired
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import Heads
from reconciler.repository.watch import HeadWatcher
from reconciler.saving.puttingback import UNRECORDED, PuttingBack
from reconciler.signatures.own import CommitKey
from reconciler.statusbranch import pushers
from reconciler.statusbranch.claim import claim_of
from reconciler.statusbranch.underway import UnderWay, forget

_KEEP = 1.0
"""Seconds between two of our own commits that are kept as the served one."""
_BEGINS = 2.0
"""Seconds that a process takes to begin, on a slow machine."""
_LOOK = 5.0
"""Seconds after which heads and Secrets are looked at without having been told to."""


class Holder:
    """`run` returns when the process is to end, or when another server holds the fleet."""

    def __init__(self, station: Station, installation: Installation, *, anew: bool = False) -> None:
        """`anew`: the fleet was served before, and begins with new identities."""
        self._station = station
        self._settings, self._lookout, self._teller = station.settings, station.lookout, station.teller
        self._store, self._mirror = station.store, station.mirror
        self._installation = installation
        self._anew = anew
        self._under_way = UnderWay()
        settings, store, mirror = station.settings, station.store, station.mirror
        self._secrets = SecretFiles(settings.keys_dir)
        self._seen = ""
        self._looked = False
        self._kept = 0.0
        """When the served commit was kept last."""
        self._size = FleetSize(settings.roles, store)
        self._called = 0.0
        """When the process was asked for to which this one hands over."""
        self._unread = False
        """Whether the head that was looked at last could not be loaded."""
        hosted = Path(settings.source) if settings.hosted else None
        self._verdicts = Verdicts(hosted, partial(pushers.of, store), partial(unserved, store))
        self._pushes: Pushes | None = None
        identities = Identities(settings.keys_dir / "identities")
        self._key = CommitKey.open(settings.keys_dir)
        vouching = branching.vouching_of(settings, mirror, hosted, self._key)
        branch = branching.settings_of(settings, mirror, vouching)
        keys = self._secrets.keys_of
        repositories, renders = mirror.repositories, station.renders
        self._loader = Loader(store, repositories, identities, self._secrets.of, branch, keys=keys, renders=renders)
        self._loader.steppers.carry = self._secrets.move
        ring = self._lookout.wake.set
        self._sourcing = Sourcing(settings, store, mirror, ring, renders)
        self._sourcing.lend(self._loader)
        self._excerpting = Excerpting(settings, store, mirror, ring, self._key.sign, self._check_ours)
        self._rendered_again = RenderedAgain(
            store,
            self._loader.sources,
            lambda: self._loader.tree_at(tree.fleet(store)),
            elsewhere=self._sourcing.render_again,
        )
        trial = Trial(self._loader, self._secrets.of, settings.keys_dir / "identities")
        self._proposals = proposals(settings, store, mirror, trial, self._check_ours)
        if settings.hosted:
            ref = f"refs/heads/{settings.branch}"
            judge = PushJudge(
                Path(settings.source), mirror.path, ref, store, trial, vouching, mirror.repository.folders
            )
            self._pushes = Pushes(judge, self._lookout.wake.set)
        self._who = WhoPushed(store, mirror.repository, vouching)
        self._outcomes = Outcomes(store, mirror.repository, settings.branch, wanted=settings.announces)
        self._lagging = Lagging(store, mirror.repository)
        self._move = StatusMove(mirror)
        self._putting_back = PuttingBack(settings.data_dir / UNRECORDED, store)

    def run(self, beginning: Beginning) -> None:
        fleet = tree.fleet(self._store)
        own(self._store, beginning)
        self._putting_back.begin()
        recorded = beginning.recorded.source if beginning.recorded is not None else NONE
        self._outcomes.begin(recorded, others=bool(fleet.holder or fleet.shown))
        forget(self._store)
        if self._size.is_large():
            self._teller.lends()  # it takes a moment to be there
        self._lookout.attach(self._store)
        self._teller.over(Trouble.OBSERVING)
        if not self._first_load(beginning):
            return
        unknown = self._loader.entrance.knows_nobody()
        if unknown:
            self._teller.note(unknown)
        self._committer = self._new_committer()
        tenure = self._new_tenure(beginning.epoch)
        self._beside = self._apart(tenure) if self._size.is_large() else self._here(tenure)
        try:
            with self._watched():
                self._hold()
                while self._outgrown():
                    self._hand_over(beginning.epoch)
        finally:
            self._beside.end()

    def _hold(self) -> None:
        # Of two that start at a time one finds here that the other was faster, before it has done anything.
        if not self._is_ours():
            self._give_way()
        elif not self._lookout.stop.is_set():
            self._serve()

    def _hand_over(self, epoch: int) -> None:
        """Another process does from now on what this one did beside loading. Nobody waits until it does: it is this
        server that holds the fleet, and what is loaded meanwhile is recorded once it is there. Should it find that the
        fleet is another's, this process hears so as ever."""
        self._beside.end()
        self._anew = False  # what was left was named
        apart = self._apart(self._new_tenure(epoch))
        self._beside = apart
        self._size.awaits = False
        apart.lend()
        self._serve()

    def _new_tenure(self, epoch: int) -> Tenure:
        installation = self._installation
        return Tenure(
            writer=installation.writer,
            epoch=epoch,
            ended=installation.ended,
            anew=self._anew,
            away=self._lookout.away or self._lookout.status_away,
            status_branch=self._mirror.status_branch,
            status_repository=self._mirror.status_repository,
            loading=self._station.roles.whose(Work.LOADING),
        )

    def _here(self, tenure: Tenure) -> Beside:
        """What is done beside loading, by this process."""
        return Beside(self._station, tenure, self._under_way, self._installation)

    def _apart(self, tenure: Tenure) -> Apart:
        """The same, by another."""
        apart = Apart(self._station, tenure)
        self._under_way = apart.under_way
        return apart

    def _outgrown(self) -> bool:
        """Whether another process is to do from now on what this one does beside loading."""
        ends = self._lookout.stop.is_set() or self._beside.lost.is_set()
        return not ends and isinstance(self._beside, Beside) and self._size.is_large()

    def _other_is_there(self) -> bool:
        """Whether the process that is to do the rest has had the time to begin. It is asked for first, where little is
        written, and this one goes on until then: between the two nobody does it."""
        if not self._called and self._size.is_busy():
            return False
        if not self._called:
            self._called = time.monotonic()
            self._teller.lends()
        return time.monotonic() - self._called >= _BEGINS

    def _is_ours(self) -> bool:
        """Makes the first status commit, and has it seen by others; False: another server was faster. What a load left
        takes a while to be recorded. Only the branch is followed meanwhile: nothing is written to a cluster yet, and to
        the branch neither."""
        with ThreadPoolExecutor(1, "first-status") as beside:
            recording = beside.submit(self._beside.begin)
            recording.add_done_callback(lambda _: self._lookout.wake.set())
            while not recording.done() and not self._lookout.stop.is_set():
                self._look()
            return recording.result()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Whatever moves the branch wakes who follows it."""
        lookout, data_dir = self._lookout, self._settings.data_dir
        watcher = HeadWatcher(self._settings.source, lookout.ring, self._settings.poll, lookout.looking.planned)
        stop_listening = listen_push(data_dir, lookout.wake.set)
        stop_asking = bell.listen(data_dir, bell.LOOK, partial(self._asked, watcher))
        watcher.start()
        self._verdicts.begin()
        if self._pushes is not None:
            self._pushes.begin(self._mirror.repository)
        self._lookout.wake.set()  # what came between the first look and the first watch
        try:
            yield
        finally:
            if self._pushes is not None:
                self._pushes.end()
            self._verdicts.end()
            stop_asking()
            stop_listening()
            watcher.stop()

    def _asked(self, watcher: HeadWatcher, about: bytes) -> None:
        """Somebody wants the fleet's repository looked at now, or a workspace's source."""
        if about:
            self._sourcing.ask(about.decode(errors="replace"))
        else:
            self._lookout.ask(watcher)

    def _serve(self) -> None:
        self._beside.start()
        packing, proposing = tidying(self._station), Proposing(self._store, self._proposals)
        packing.start()
        proposing.start()
        self._sourcing.start()
        self._excerpting.start()
        stop_hearing = self._store.subscribe(self._written)
        self._lookout.wake.set()  # writes that waited before
        self._loader.meanwhile = self._meanwhile
        try:
            self._follow()
        finally:
            self._loader.meanwhile = None
            stop_hearing()
            self._excerpting.close()
            self._sourcing.close()
            proposing.stop()
            if self._beside.lost.is_set():
                self._give_way()
            packing.stop()
            self._beside.stop()

    def _give_way(self) -> None:
        """Another server holds the fleet: no write is taken any more, and those that wait are answered."""
        heads = self._lookout.heads()
        theirs = heads.status if heads is not None else None
        holder = claim_of(self._mirror.repository, theirs).writer if theirs is not None else ""
        holder = holder or "another server"
        self._store.write(tree.put_fleet(replace(tree.fleet(self._store), holder=holder))).result()
        why = f"{holder} holds the fleet, and this server only shows what it records: write there"
        self._committer.turn_away(why)
        self._proposals.turn_away(why)

    def _first_load(self, beginning: Beginning) -> bool:
        began, heads, new = time.monotonic(), beginning.heads, not tree.fleet(self._store).loaded
        while not self._lookout.stop.is_set():
            if heads.desired is not None:
                loaded = self._loaded_first(heads.desired, beginning)
                if tree.fleet(self._store).loaded:
                    self._came_back(beginning, new=new)
                    with self._outcomes.watching():
                        self._loader.recheck(self._secrets.changed() | self._secrets.not_served(self._store))
                    self._lagging.count(head=heads.desired)
                    if loaded is not None:
                        self._teller.held_as_a_whole(loaded)
                    self._teller.loaded(self._store, tree.fleet(self._store).commit, time.monotonic() - began)
                    return True
                if loaded is not None:
                    self._teller.held(loaded)
            self._lookout.wake.wait(1.0)
            heads = self._lookout.look() or heads
        return False

    def _came_back(self, beginning: Beginning, *, new: bool) -> None:
        """What is said where the store was filled from the repository of a fleet that was served before."""
        if self._putting_back.waits:
            self._teller.note(self._putting_back.end())
        if new and beginning.recorded is not None:
            settings, repo = self._settings, self._mirror.repository
            self._teller.note(came_back(self._store, repo, beginning.recorded, settings))

    def _loaded_first(self, head: str, beginning: Beginning) -> Loaded | None:
        """None for a head that cannot be read: what was served before goes on to be, and it is tried again."""
        try:
            self._who.ahead_of(head, beginning.recorded.source.id if beginning.recorded else "")
            loaded = counted(lambda: self._loader.load(commits.own(head), beginning.recorded, self._teller.progress))
        except RepositoryError as error:
            self._cannot_be_read(head, error)
            return None
        self._outcomes.loaded(loaded)
        return loaded

    def _cannot_be_read(self, head: str, error: RepositoryError) -> None:
        self._unread = True
        self._teller.trouble(f"commit {head:.10} cannot be loaded: {error}", Trouble.UNREADABLE)

    def _follow(self) -> None:
        while not self._lookout.stop.is_set() and not self._beside.lost.is_set():
            quiet = not self._look()
            if self._size.awaits and self._outgrown():
                return
            if self._committer.waiting():
                self._commit()
            elif quiet and self._outgrown() and self._other_is_there():
                return
            self._renew()
            if self._move.is_due(tree.fleet(self._store).commit.id):
                self._teller.note(MOVES)
                return

    def _renew(self) -> None:
        """What ships with this version, where another one served the fleet before, as long as there is nothing else to
        do."""
        lookout, lost = self._lookout, self._beside.lost
        try:
            self._loader.renew(lambda: lookout.wake.is_set() or lookout.stop.is_set() or lost.is_set())
        except RepositoryError as error:
            self._teller.trouble(str(error))

    def _look(self) -> bool:
        """Waits until there may be something new in git or in keys/, a pin is over, or something is to be rendered
        again, and loads it. False: nothing woke it."""
        self._teller.keep_again()
        woken = self._lookout.wake.wait(self._sourcing.wait(pins.wait(self._store, _LOOK)))
        self._lookout.wake.clear()
        self._beside.ring()
        heads = self._lookout.heads()
        if heads is not None:
            self._take(heads)
        self._answer(heads)
        changed = self._secrets.changed()
        if changed:
            self._judge_again(changed)
        try:
            awaited.serve(self._store, self._look_again)
            pins.serve(self._store, self._look_again)
            self._sourcing.serve(self._look_again)
            self._excerpting.serve(self._sourcing.followed())
            rendered = self._rendered_again.due()
            if rendered:
                self._judge_again(rendered)
        except RepositoryError as error:
            self._teller.trouble(str(error))
        return woken

    def _answer(self, heads: Heads | None) -> None:
        """Whoever asked for a look."""
        lookout, began = self._lookout, self._lookout.began
        if not lookout.looking.is_asked(began):
            return
        head = (heads.desired if heads is not None and not lookout.why else None) or ""
        served, repo = tree.fleet(self._store).commit.id, self._mirror.repository
        wrong, troubles = lookout.why, tree.troubles(self._store)
        why = troubles.get(Trouble.HELD) or troubles.get(Trouble.UNREADABLE) or ""
        if not wrong and not head:
            wrong = f"the repository has no branch {self._mirror.branch}"
        elif not wrong and head != served and (why or not repo.is_ancestor(head, served)):
            # What is served may have gone on by itself; a branch that went back behind it is held.
            wrong = why or f"commit {head:.10} is not served yet"
        lookout.looking.answer(began, head, wrong)

    def _judge_again(self, paths: Collection[str]) -> None:
        with self._outcomes.watching():
            self._lagging.count(self._loader.recheck(paths).held, self._seen)

    def _look_again(self, paths: Collection[str]) -> None:
        with self._outcomes.watching():
            self._lagging.count(self._loader.look_again(paths).held, self._seen)

    def _take(self, heads: Heads, *, at_once: bool = False) -> None:
        """The desired branch, where it moved; a head that cannot be read is tried again at the next look. `at_once`:
        also what would better wait until another process does all else."""
        head = heads.desired
        if head is None or head == self._seen:
            if head is not None and self._unread:  # it is there again, after one that could not be read
                self._lookout.looking.seen(head)
                self._note_served(head)
                self._is_read()
            return
        try:
            if not at_once and self._makes_large(head):
                self._size.awaits = True
                return
            self._lookout.looking.seen(head)
            with self._under_way:
                self._who.ahead_of(head)
                loaded = counted(lambda: self._loader.load(commits.own(head)))
        except RepositoryError as error:
            self._cannot_be_read(head, error)
            self._lookout.looking.waits()
            return
        self._seen = head
        self._is_read()
        self._note_served(head)
        if self._looked:
            self._looked = False
            self._lookout.wake.set()  # what came meanwhile, and was not taken
        self._keep_served(tree.fleet(self._store).commit.id)
        self._lagging.count(together(loaded.steps).held, head)
        self._teller.held(loaded)
        if self._pushes is not None:
            self._pushes.settle(self._mirror.repository)
        self._verdicts.say(loaded)
        self._outcomes.loaded(loaded)

    def _is_read(self) -> None:
        self._unread = False
        self._teller.over(Trouble.UNREADABLE)

    def _note_served(self, head: str) -> None:
        if tree.fleet(self._store).commit.id == head:
            self._lookout.looking.served()
        else:
            self._lookout.looking.waits()

    def _makes_large(self, head: str) -> bool:
        return isinstance(self._beside, Beside) and self._size.would_grow(self._mirror.repository, head)

    def _meanwhile(self) -> None:
        """Between two workspaces of a commit that is being loaded: what was pushed or written since goes before the
        rest of it, if it may."""
        self._lookout.looking.waits(long=True)
        if not self._lookout.wake.is_set():
            return
        self._lookout.wake.clear()
        self._looked = True
        heads = self._lookout.heads()
        if heads is not None and heads.desired is not None:
            self._overtake(heads.desired)
        if self._committer.waiting():
            self._serve_writes()

    def _overtake(self, head: str) -> None:
        self._who.ahead_of(head)
        found = self._loader.overtake(commits.own(head))
        if found is not None:
            count(found)
            self._lagging.count(together(found.steps).held)
            self._verdicts.say(found)
            self._outcomes.loaded(found)

    def _commit(self) -> None:
        with self._under_way:
            self._serve_writes()

    def _serve_writes(self) -> None:
        with self._outcomes.committing():
            self._committer.serve()

    def _new_committer(self) -> Committer:
        def catch_up() -> None:
            heads = self._lookout.look()
            if heads is None or heads.desired is None:
                return
            if self._loader.is_under_way:
                self._overtake(heads.desired)
            else:
                self._take(heads, at_once=True)

        desired = Desired(self._mirror, self._check_ours, self._key.sign)
        branch = Branch(desired, self._mirror.repository, catch_up, self._moved)
        secrets = KeptSecrets(self._store, self._settings.keys_dir, self._secrets)
        return Committer(self._store, self._loader, branch, secrets)

    def _check_ours(self) -> None:
        """Raises where another process has the role by now."""
        self._station.roles.check(Work.LOADING, self._store)

    def _moved(self, commit: str) -> None:
        self._seen = commit
        if time.monotonic() - self._kept > _KEEP:
            self._keep_served(commit)
        self._lagging.count((), commit)
        written()
        self._outcomes.made(commit)

    def _keep_served(self, commit: str) -> None:
        """Each time flushes the disk. Of commits of ours, which the branch holds and which change no treeplane.yaml, it
        need not be the newest."""
        self._kept = time.monotonic()
        self._mirror.keep_served(commit)

    def _written(self) -> None:
        """The store changed: perhaps a write waits for its commit, or a workspace for what has gone."""
        if self._committer.waiting() or awaited.waiting(self._store):
            self._lookout.wake.set()


def own(store: Store, beginning: Beginning) -> None:
    """A store that showed what another server recorded is ours from here on, where it shows what is gone on from; any
    other that is not what is recorded is forgotten."""
    fleet = tree.fleet(store)
    recorded = beginning.taken or (beginning.recorded.commit.id if beginning.recorded is not None else "")
    if fleet.shown and fleet.shown.id == recorded:
        store.write(tree.put_fleet(replace(fleet, holder="", shown=NONE))).result()
    elif fleet.shown or fleet.holder or beginning.taken:
        store.clear()
