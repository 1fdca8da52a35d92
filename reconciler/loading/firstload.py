"""An empty store is filled: from the commit that the status branch says was reconciled, without one from the head.

Called by loader. What a recovery cannot bring back is known from then on as lost (FleetRecord.lost): it is tried again
with each commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

from apiserver.model.commits import NONE, CommitRef
from apiserver.registry import codec, tree
from apiserver.registry.keptschemas import kept_key
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Put, Store
from reconciler.layout.errors import LayoutError
from reconciler.layout.fleet import fleet_id
from reconciler.layout.grafts import BORDER, OF
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import behind, case
from reconciler.loading.ahead import Ahead
from reconciler.loading.case import Recorded
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.gate import Gate
from reconciler.loading.halfgrafted import HalfGrafted, led_to
from reconciler.loading.heads import BranchSettings
from reconciler.loading.moment import Moments
from reconciler.loading.returning import Returning
from reconciler.loading.step import FindRecorded
from reconciler.loading.steps import Stepper
from reconciler.loading.trees import Trees
from reconciler.loading.ways import FIRST_LOAD, RECHECK, RECOVERY
from reconciler.loading.whole import Whole, ships
from reconciler.plan import heldbefore
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import FleetFacts, RecordedFleet

Progress = Callable[[int], None]


class Making(NamedTuple):
    """What loader lends: `whole`, `stepper` of a way of working, a fleet and a commit, and `gate` where one is kept."""

    store: Store
    repo: Repository
    trees: Trees
    whole: Whole
    branch: BranchSettings
    stepper: Callable[..., Stepper]
    moments: Moments
    gate: Gate | None = None


class FirstLoad:
    """Of one fleet, from what the status branch says, if anything."""

    def __init__(self, making: Making, recorded: RecordedFleet | None) -> None:
        self._made = making
        self._recorded = recorded
        self._ahead: Ahead | None = None

    def begin(self, head: CommitRef, fleet: FleetRecord) -> FleetRecord | tuple[LayoutError, ...]:
        """Settle where it starts and what the fleet is called, before anything is written."""
        recorded, made = self._recorded, self._made
        commit = fleet.commit or (recorded.source if recorded else head)
        facts = recorded.facts() if recorded else FleetFacts()
        known = replace(fleet, claims=fleet.claims or facts.claims, grafts=fleet.grafts or facts.grafts)
        if recorded is not None:
            made.trees.known = directories_in(recorded, made.trees.at(commit).folder)
            made.trees.displaced = displaced_in(recorded)
        made.trees.stand(known)
        config, problems = made.whole.config(commit) if fleet.commit or recorded else made.whole.first_config(commit)
        if config is not None and made.gate is not None and not (fleet.commit or made.branch.takes(head)):
            stands = recorded.commit if recorded is not None else NONE
            verification = made.gate.verification
            problems = verification.recorded(stands, commit, config) if stands else verification.first(commit, config)
        if config is None or problems:
            made.whole.hold(replace(fleet, branch=made.branch.name), problems)
            return problems
        if recorded is not None:
            self._restore_schemas(recorded)
            self._ahead = Ahead(recorded, made.trees)
        record = FleetRecord(
            fleet=fleet.fleet or facts.id or config.uid or fleet_id(made.repo, commit.id),
            commit=commit,
            branch=made.branch.name,
            url=made.branch.url,
            writes=config.writes,
            claims=dict(made.trees.claims),
            kept=fleet.kept or facts.kept,
            holder=fleet.holder,
            ships=ships(),
            arriving=fleet.arriving or (self._ahead.arriving if self._ahead is not None else ()),
            admitted=fleet.admitted or facts.admitted,
            verified=fleet.verified or facts.verified,
            grafts=known.grafts,
            regrafting=fleet.regrafting or led_to(made.trees, facts),
        )
        made.whole.note(record)
        return record

    def fill(self, fleet: FleetRecord, progress: Progress) -> tuple[FleetRecord, list[ChangeSet]]:
        """All workspaces of where it starts, as they were served."""
        recorded, made = self._recorded, self._made
        here = made.trees.at(fleet.commit)
        way = FIRST_LOAD if tree.count(made.store) == 0 else RECOVERY
        left = recorded is not None and behind.has_objects(made.store)
        absent = self._ahead.absent(reader(recorded, here)) if recorded and self._ahead else frozenset[str]()
        half = HalfGrafted(made.trees, fleet, reader(recorded, here)) if recorded and fleet.regrafting else None
        absent |= half.gone() if half is not None else frozenset()
        stepper = made.stepper(way, fleet, fleet.commit, recorded=recorded, absent=absent, progress=progress)
        steps = [stepper.everything()]
        if left:
            behind.sweep(made.store)
        if recorded is not None:
            Returning(made.store, fleet, recorded, made.moments).take()
        if self._ahead is not None:
            # What is held was loaded as it is served: what its newest content waits for is known once that is judged.
            held = [r for r in _held(made.store) if r.served]
            staying = {r.path for r in held if self._ahead.are_held(made.store, r)}
            limits = made.whole.limits(fleet)
            recheck = made.stepper(RECHECK, fleet, fleet.commit, limits=limits, staying=staying)
            steps.append(recheck.difference(here, [r.path for r in held if r.path not in staying]))
            self._ahead.take(made.store, fleet, made.stepper)
        if half is not None and recorded is not None:
            half.bring(made.store, made.stepper, recorded)
        lost = recorded.commit if recorded is not None and is_lost(made.store, recorded, made.trees) else NONE
        fleet = replace(fleet, loaded=True, done=steps[0].judged, total=steps[0].judged, lost=lost)
        made.whole.note(fleet)
        return fleet, steps

    def _restore_schemas(self, recorded: RecordedFleet) -> None:
        for cluster, schema in recorded.schemas():
            self._made.store.fill(Put(kept_key(cluster, schema), codec.encode(schema))).result()


def directories_in(recorded: RecordedFleet, folder: str) -> Callable[[str, str, str], Iterator[str]]:
    """See Trees.known, by what the status branch has. `folder`: the fleet's."""

    def known(_cluster: str, directory: str, repository: str) -> Iterator[str]:
        for place in recorded.inside(format.directory_of("", directory)):
            there = recorded.folder(place)
            content = recorded.summary_in(place, there).content if there is not None else NONE
            if not content or content.repository == repository:
                yield joined(folder, format.directory_in_git(place))

    return known


def displaced_in(recorded: RecordedFleet) -> Callable[[str], Mapping[str, str]]:
    """See Trees.displaced, by what the status branch has; read once, for all."""

    @cache
    def found() -> dict[str, dict[str, str]]:
        out: dict[str, dict[str, str]] = {}
        for path, summary in recorded.apart():
            place = summary.source.get("path", "").removeprefix(f"{summary.source.get(BORDER, '')}/")
            out.setdefault(summary.source.get(OF, ""), {})[path] = place
        return out

    return lambda cluster: found().get(cluster, {})


def is_lost(store: Store, recorded: RecordedFleet, trees: Trees) -> bool:
    """Whether there are workspaces that a recovery could not bring back."""
    find = reader(recorded, trees.at(recorded.source), recorded.source)
    return any(case.is_lost(r, find(r.path, r.directory)) for r in _held(store) if not r.served)


def reader(recorded: RecordedFleet, here: WorkspaceTree, at: CommitRef = NONE) -> FindRecorded:
    """What the status branch knows of a workspace. `here`: where one may stand twice; then either place may be the one
    that it was recorded at. `at`: the commit at which it is brought back, for which one that was past it may do with a
    likeness."""
    later = recorded.facts().arriving if at == recorded.source else ()

    def found_in(place: str) -> Recorded | None:
        folder = recorded.folder(place) if place else None
        if folder is None:
            return None
        summary = heldbefore.likeness(recorded.summary_in(place, folder), at, later)
        if not (folder.status or folder.ending):
            return Recorded(summary)
        endings = partial(recorded.endings, place) if folder.ending else tuple
        return Recorded(summary, recorded.residue_reader(place), endings, plain=False)

    def read(path: str, directory: str) -> Recorded | None:
        apart = found_in(format.directory_of(path, format.apart(path))) if recorded.has_apart else None
        if apart is not None:
            return replace(apart, apart=True)
        places = (format.directory_of(path, each) for each in (directory, *here.duplicates.get(path, ())))
        found = next((found for place in places if (found := found_in(place)) is not None), None)
        return found or found_in(recorded.folder_of(path))

    return read


def _held(store: Store) -> list[tree.WorkspaceRecord]:
    found = (tree.workspace_at(store, path) for path in tree.held(store))
    return [record for record in found if record is not None]
