"""The desired branch into the store: the first load, recovery, and every commit after that.

Called by the reconciler process whenever the branch may have moved. Git is the truth and the store its cache: an empty
store is filled from the commit that the status branch says was reconciled (with no status branch: from the head), then
follows the first-parent chain to the head, judging each commit in turn. A commit that cannot be taken as a whole (a
broken treeplane.yaml, a missing workspace root) is held for everybody and deletes nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from apiserver.model.keys import Key
from apiserver.registry import codec, tree
from apiserver.registry.catalog import KEPT_SCHEMAS, Catalog
from apiserver.registry.intents import Intent, waiting
from apiserver.registry.kinds import KUBERNETES
from apiserver.registry.tree import FLEET_KEY, FleetRecord
from apiserver.storage.protocol import Note, Put, Store
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.fleet import FleetConfig, read_fleet
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.case import Recorded, was_served
from reconciler.loading.identities import Identities
from reconciler.loading.judge import Site
from reconciler.loading.moment import Moments
from reconciler.loading.sources import Sources
from reconciler.loading.steps import Secrets, Step, Stepper, Target, TooManyRemoved
from reconciler.loading.trees import Trees
from reconciler.plan import bootstrap, system
from reconciler.repository.objects import Repository
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import FleetFacts, RecordedFleet

log = logging.getLogger(__name__)

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a call of `load` did. `problems`: why the whole commit is held ([] if it is not); `step`: the last step."""

    head: str
    problems: tuple[LayoutError, ...] = ()
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A commit on top of the served one that is judged and not written: `held` says who would not take it, `faults` who
    of them for a fault of this program. `take` writes it, once it is the branch's."""

    held: Mapping[str, list[LayoutError]]
    faults: Collection[str]
    take: Callable[[], None]


class Loader:
    """One fleet's loader. Not thread-safe: one thread calls `load`. `branch` and `url` (the server's) are recorded.

    `stepping` is held while a commit is on its way into the store: workspaces are ahead of the fleet's record then.
    """

    def __init__(
        self,
        store: Store,
        repo: Repository,
        identities: Identities,
        secrets: Secrets,
        branch: str = "main",
        url: str = "",
    ) -> None:
        self.stepping = threading.Lock()
        self._store = store
        self._repo = repo
        self._identities = identities
        self._secrets = secrets
        self._branch = branch
        self._url = url
        self._trees = Trees(repo)
        self._moments = Moments(repo)
        self._sources = Sources(repo)
        self._catalog = Catalog(store)

    def load(self, head: str, recorded: RecordedFleet | None = None, progress: Progress = lambda _: None) -> Loaded:
        """Bring the store to `head`. `recorded`: the status branch, looked at only while the store is empty."""
        fleet = tree.fleet(self._store)
        self._trees.claims = fleet.claims
        steps: list[Step] = []
        if not fleet.loaded:
            begun = self._begin(head, fleet, recorded)
            if isinstance(begun, tuple):
                return Loaded(head, begun)
            fleet, steps = self._fill(begun, recorded, progress)
        problems: tuple[LayoutError, ...] = ()
        for commit in self._commits(fleet.commit, head):
            with self.stepping:
                fleet, step_or_problems = self._advance(fleet, commit)
            if isinstance(step_or_problems, Step):
                problems = ()
                steps.append(step_or_problems)
            else:
                problems = step_or_problems
        return Loaded(head, problems, tuple(steps))

    def recheck(self, paths: Iterable[str] = ()) -> Step:
        """Judge what does not follow from a commit: shipped content (after an upgrade), and `paths` (their Secrets
        changed). In step already: writes nothing."""
        fleet, ships = tree.fleet(self._store), bootstrap.digest()
        outdated = tree.with_builtins(self._store, KUBERNETES) if fleet.ships != ships else []
        self._trees.claims = fleet.claims
        here = self._trees.at(fleet.commit)
        also = {"root", *system.shipped_workspaces(), *outdated, *paths}
        step = self._stepper(fleet, fleet.commit, here).difference(here, also)
        self._note(replace(fleet, url=self._url, ships=ships, branch=self._branch))
        return step

    def recover(self, fleet: FleetRecord, recorded: RecordedFleet, paths: Collection[str]) -> Step:
        """Judge workspaces that the store lacks, as a first load from the status branch does: at their recorded
        commits, with what is recorded of them. Nothing is noted of the fleet."""
        self._trees.claims = fleet.claims
        here = self._trees.at(recorded.source)
        find = _recorded_reader(recorded, here)
        for path in paths:
            place = here.find(path)
            if place is not None and not was_served(find(path, place.directory)):
                # It is judged as it stands now, and may stand twice.
                directories = here.directories(path)
                here.duplicates |= {path: directories} if len(directories) > 1 else {}
        return self._stepper(fleet, recorded.source, here, recorded=recorded).difference(here, paths)

    def propose(self, commit: str, intents: Mapping[Key, Intent]) -> Proposal:
        """Judge a commit that was made of `intents`, whose parent is the served one."""
        fleet = tree.fleet(self._store)
        self._trees.claims = fleet.claims
        here = self._trees.at(commit)
        stepper = self._stepper(fleet, commit, here, intents=intents, proposed=True)
        step = stepper.difference(self._trees.at(fleet.commit))

        def take() -> None:
            with self.stepping:
                stepper.release()
                self._note(replace(fleet, commit=commit, claims=here.claims))

        return Proposal(step.held, step.faults, take)

    # -- the first load ----------------------------------------------------------------------------------------------

    def _begin(
        self, head: str, fleet: FleetRecord, recorded: RecordedFleet | None
    ) -> FleetRecord | tuple[LayoutError, ...]:
        """Settle where a first load starts and what the fleet is called, before anything is written."""
        commit = fleet.commit or (recorded.source if recorded else head)
        facts = recorded.facts() if recorded else FleetFacts()
        self._trees.claims = fleet.claims or facts.claims
        config, problems = self._config(commit)
        if config is None:
            self._note(replace(fleet, error=_joined(problems), branch=self._branch))
            return problems
        record = FleetRecord(
            fleet=fleet.fleet or facts.id or config.uid or self._repo.root_commit(commit),
            commit=commit,
            branch=self._branch,
            url=self._url,
            writes=config.writes,
            claims=self._trees.claims,
            ships=bootstrap.digest(),
            holder=fleet.holder,
        )
        if recorded is not None:
            self._restore_schemas(recorded)
        self._note(record)
        return record

    def _restore_schemas(self, recorded: RecordedFleet) -> None:
        for cluster, schema in recorded.schemas():
            key = Key(KEPT_SCHEMAS, cluster, "", schema["metadata"]["name"])
            self._store.write(Put(key, codec.encode(schema)), log=False).result()

    def _fill(
        self, fleet: FleetRecord, recorded: RecordedFleet | None, progress: Progress
    ) -> tuple[FleetRecord, list[Step]]:
        here = self._trees.at(fleet.commit)
        fresh = self._store.count("~workspaces") == 0
        stepper = self._stepper(fleet, fleet.commit, here, recorded=recorded, fresh=fresh, progress=progress)
        steps = [stepper.everything()]
        if recorded is not None:
            # What is held was loaded as it is served: what its newest content waits for is known once that is judged.
            records = (tree.workspace_at(self._store, path) for path in tree.held(self._store))
            held = [record.path for record in records if record is not None and record.served]
            steps.append(self._stepper(fleet, fleet.commit, here).difference(here, held))
        lost = recorded.commit if recorded is not None and self._lost(recorded) else ""
        fleet = replace(fleet, loaded=True, done=steps[0].judged, total=steps[0].judged, lost=lost)
        self._note(fleet)
        return fleet, steps

    def _lost(self, recorded: RecordedFleet) -> bool:
        """Whether there are workspaces that a recovery could not bring back."""
        find = _recorded_reader(recorded, self._trees.at(recorded.source))
        found = (tree.workspace_at(self._store, path) for path in tree.held(self._store))
        return any(r is not None and not r.served and was_served(find(r.path, r.directory)) for r in found)

    # -- commits -----------------------------------------------------------------------------------------------------

    def _commits(self, served: str, head: str) -> list[str]:
        if served == head:
            return []
        chain = self._repo.first_parents(served, head) if self._repo.has(served) else None
        if chain is None:
            log.warning("the branch was rewritten: following it as the difference of %.10s and %.10s", served, head)
            return [head]
        return chain

    def _advance(self, fleet: FleetRecord, commit: str) -> tuple[FleetRecord, Step | tuple[LayoutError, ...]]:
        config, problems = self._config(commit)
        if config is not None and config.uid and config.uid != fleet.fleet:
            text = f"metadata.uid is {config.uid}, but this fleet is {fleet.fleet}"
            problems = (LayoutError("treeplane.yaml", 0, 0, text, "restore it: all identities hang on it"),)
        if config is None or problems:
            fleet = replace(fleet, error=_joined(problems))
            self._note(fleet)
            return fleet, problems
        began = time.perf_counter()
        here = self._trees.at(commit)
        # Our own commit, where a crash came between it and the store: whoever waits for it is answered.
        intents = {i.key: i for i in waiting(self._store)}
        then = replace(fleet, writes=config.writes)
        stepper = self._stepper(then, commit, here, most_removed=config.max_deleted_workspaces, intents=intents)
        try:
            step = stepper.difference(self._trees.at(fleet.commit))
        except TooManyRemoved as error:
            problem = LayoutError(
                "treeplane.yaml", 0, 0, f"commit {commit:.10} {error}", "raise the limit, or split it"
            )
            fleet = replace(fleet, error=str(problem))
            self._note(fleet)
            return fleet, (problem,)
        log.info(
            "commit %.10s: %d judged, %d configured, %d deleted, %d held in %.0f ms", commit, step.judged,
            len(step.moved), len(step.removed), len(step.held), 1000 * (time.perf_counter() - began),
        )  # fmt: skip
        lost = then.lost if then.lost and self._lost(RecordedFleet(self._repo, then.lost)) else ""
        fleet = replace(then, commit=commit, error="", claims=here.claims, lost=lost)
        self._note(fleet)
        return fleet, step

    def _config(self, commit: str) -> tuple[FleetConfig | None, tuple[LayoutError, ...]]:
        """treeplane.yaml and the workspace root of a commit, or why the commit is held as a whole."""
        here = self._trees.at(commit)
        fault = here.fault()
        errors = [fault] if fault else []
        try:
            config = read_fleet(self._repo, here.tree_id)
        except BadFile as bad:
            errors += bad.errors
        return (None, tuple(errors)) if errors else (config, ())

    def _stepper(
        self,
        fleet: FleetRecord,
        commit: str,
        here: WorkspaceTree,
        *,
        recorded: RecordedFleet | None = None,
        fresh: bool = False,
        most_removed: int | None = None,
        intents: Mapping[Key, Intent] | None = None,
        proposed: bool = False,
        progress: Progress = lambda _: None,
    ) -> Stepper:
        site = Site(
            fleet.fleet,
            fleet.writes,
            self._store,
            self._sources,
            self._trees,
            self._moments,
            self._identities,
            self._catalog,
        )
        find = _recorded_reader(recorded, here) if recorded else None
        lost = RecordedFleet(self._repo, fleet.lost) if fleet.lost and not recorded else None
        target = Target(
            self._moments.at(commit),
            here,
            self._secrets,
            find,
            (_recorded_reader(lost, here), lost.source) if lost is not None else None,
            fresh,
            most_removed,
            intents or {},
            proposed,
        )
        return Stepper(site, target, progress)

    def _note(self, fleet: FleetRecord) -> None:
        """While the fleet is served, its head moving on is no change that anybody watches."""
        before = tree.fleet(self._store)
        if fleet != before:
            write = Note if fleet.loaded and before.loaded else Put
            self._store.write(write(FLEET_KEY, fleet.encode())).result()
        self._trees.claims = fleet.claims


def _recorded_reader(recorded: RecordedFleet, here: WorkspaceTree) -> Callable[[str, str], Recorded | None]:
    """`here`: where a workspace may stand twice; then either place may be the one that it was recorded at."""

    def at(place: str) -> Recorded | None:
        summary = recorded.summary(place)
        if summary is None:
            return None
        return Recorded(summary, recorded.residue_reader(place), lambda: recorded.endings(place))

    def read(path: str, directory: str) -> Recorded | None:
        for each in (directory, *here.duplicates.get(path, ())):
            found = at(format.directory_of(path, each))
            if found is not None:
                return found
        return None

    return read


def _joined(problems: Iterable[LayoutError]) -> str:
    return "; ".join(str(p) for p in problems)
