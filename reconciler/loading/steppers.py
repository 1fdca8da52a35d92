"""Makes the steps of a loader: where each goes, and what it works with.

Held by loader, which knows when a step is taken; the steps themselves are steps' and overtaker's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import Intent, waiting
from apiserver.registry.tree import FleetRecord
from apiserver.storage.protocol import Store
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.admission import FREE, Admission
from reconciler.loading.asked import NOTHING, Asked, Proposed
from reconciler.loading.entrance import Entrance
from reconciler.loading.firstload import Progress, reader
from reconciler.loading.identities import Identities
from reconciler.loading.moment import Moment, Moments
from reconciler.loading.overtaker import Overtaker
from reconciler.loading.remotes import Remotes
from reconciler.loading.site import SeenHead, Site
from reconciler.loading.sources import Sources
from reconciler.loading.step import Carry, FindKeys, LostFleet, SafetyLimits, Secrets, StepTarget
from reconciler.loading.steps import Earlier, Stepper
from reconciler.loading.trees import Trees
from reconciler.loading.ways import COMMIT, FIRST_LOAD, PROPOSAL, RECOVERY, Way
from reconciler.loading.whole import Whole
from reconciler.repository.objects import Repository
from reconciler.statusbranch.recorded import RecordedFleet


@dataclass(slots=True)
class Steppers:
    """What all steps of a loader share. `carry`: see step; `guesses`, `remotes`, `heads`, `most_objects`: see Site."""

    store: Store
    repo: Repository
    trees: Trees
    moments: Moments
    whole: Whole
    entrance: Entrance
    sources: Sources
    catalog: Catalog
    identities: Identities
    secrets: Secrets
    keys: FindKeys
    heads: dict[str, SeenHead]
    most_objects: int
    carry: Carry = lambda _: None
    guesses: bool = False
    remotes: Remotes | None = None

    def stepper(
        self, way: Way, fleet: FleetRecord, commit: CommitRef, *, progress: Progress = lambda _: None, **further: Any
    ) -> Stepper:
        """`further`: see `_target`."""
        target, site = self._target(fleet, commit, **further), self._site(fleet)
        if target.recorded is None and way in (FIRST_LOAD, RECOVERY):
            site = replace(site, owners=False)  # nobody is asked about the first commit
        return Stepper(site, target, way, progress)

    def overtaker(
        self,
        fleet: FleetRecord,
        commit: CommitRef,
        intents: Mapping[Key, Intent] | None,
        earlier: Callable[[str], Earlier],
        admission: Admission = FREE,
    ) -> Overtaker:
        """See overtaking.Makes."""
        asked = self.asked() if intents is None else Proposed(intents, self.store)
        way, limits = (COMMIT if intents is None else PROPOSAL), self.whole.limits(fleet)
        taken = [*dict.fromkeys((*fleet.arriving, commit))]
        beyond = frozenset(taken[taken.index(commit) :])
        target = self._target(fleet, commit, limits=limits, asked=asked, ahead=beyond, admission=admission)
        return Overtaker(self._site(fleet), target, way, earlier)

    def asked(self) -> Asked:
        """The writes through the API that wait. Our own commit, where a crash came between it and the store: whoever
        waits for it is answered."""
        return Asked({intent.key: intent for intent in waiting(self.store)}, self.store)

    def _site(self, fleet: FleetRecord) -> Site:
        return Site(
            fleet.fleet, fleet.writes, self.store, self.sources, self.trees, self.moments, self.identities,
            self.catalog, self.most_objects, self.guesses, self._asks_owners(fleet), self._remotes(fleet), self.heads,
        )  # fmt: skip

    def _remotes(self, fleet: FleetRecord) -> Remotes | None:
        """With who may sign, and who may take what, as it is served."""
        if self.remotes is None:
            return None
        entrance = self.entrance
        rights, unsigned = partial(entrance.source_rights, fleet), partial(entrance.unsigned, fleet)
        return replace(self.remotes, rights=rights, unsigned=unsigned)

    def _asks_owners(self, fleet: FleetRecord) -> bool:
        """Of a commit that is not here, or cannot be read, nobody knows: then nothing is taken for asked about."""
        config = self.whole.config(fleet.commit)[0] if self.repo.has(fleet.commit.id) else None
        return config is None or config.owners

    def _target(
        self,
        fleet: FleetRecord,
        commit: CommitRef,
        *,
        recorded: RecordedFleet | None = None,
        limits: SafetyLimits | None = None,
        asked: Asked = NOTHING,
        ahead: frozenset[CommitRef] = frozenset(),
        left: tuple[CommitRef, ...] = (),
        absent: Collection[str] = (),
        staying: Collection[str] = (),
        moment: Moment | None = None,
        admission: Admission = FREE,
        here: WorkspaceTree | None = None,
    ) -> StepTarget:
        """`ahead`: the commit and those that come after it. `moment`: None: that of the commit. `here`: its tree, where
        that is not the one that follows from what is served."""
        here = here or self.trees.at(commit)
        lost = RecordedFleet(self.repo, fleet.lost.id) if fleet.lost and not recorded else None
        return StepTarget(
            moment or self.moments.at(commit),
            here,
            fleet.commit,
            fleet.arriving,
            self.secrets,
            self.keys,
            reader(recorded, here, commit) if recorded else None,
            LostFleet(reader(lost, here), lost.source, lost.facts().claims) if lost is not None else None,
            limits,
            fleet.kept,
            asked,
            ahead.intersection(fleet.arriving),
            left,
            absent,
            frozenset(recorded.leaving()) if recorded is not None else (),
            staying,
            self.carry,
            admission,
        )
