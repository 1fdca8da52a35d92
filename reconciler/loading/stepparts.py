"""What a step works with: the parts that know the world it is in, what its commit has, and who may go or move.

Made by steps, anew for each. None of them knows the step.
"""

from __future__ import annotations

from dataclasses import dataclass

from reconciler.loading.cases import Cases
from reconciler.loading.expected import ExpectedRenderings
from reconciler.loading.guard import Guard
from reconciler.loading.handover import Handover
from reconciler.loading.hearers import Hearers
from reconciler.loading.judge import Judge
from reconciler.loading.kept import KeptWorkspaces
from reconciler.loading.leavers import Leavers
from reconciler.loading.movable import Movable
from reconciler.loading.moves import WorkspaceMoves
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.siblings import Siblings
from reconciler.loading.site import Site
from reconciler.loading.step import StepTarget
from reconciler.loading.takings import Takings
from reconciler.loading.turns import Turns
from reconciler.loading.ways import Way
from reconciler.loading.world import World


@dataclass(frozen=True, slots=True)
class StepParts:
    """See the modules of the classes. `guard` is None where nothing is served yet."""

    world: World
    hearers: Hearers
    leavers: Leavers
    served: ServedTrees
    kept: KeptWorkspaces
    expected: ExpectedRenderings
    cases: Cases
    siblings: Siblings
    moves: WorkspaceMoves
    guard: Guard | None
    judge: Judge
    writes: Handover
    takings: Takings

    @classmethod
    def of(cls, site: Site, target: StepTarget, way: Way, turns: Turns) -> StepParts:
        """Wires them for one step."""
        world = World(site.store, turns, empty=way.fills)
        leavers = Leavers(site.store, world, target.moment, target.leaving)
        served = ServedTrees(site.store, site.trees, target)
        kept = KeptWorkspaces(site, target, served, world)
        cases = Cases(site, target, world, kept, served)
        movable = Movable(site.store, world, site.sources, served, leavers)
        guard = _guard(site, target, world, served)
        adopts = target.recorded is None and target.limits is None
        writes = way.handover(site.store, world.written)
        return cls(
            world=world,
            hearers=Hearers(site.store, world),
            leavers=leavers,
            served=served,
            kept=kept,
            expected=ExpectedRenderings(site.sources),
            cases=cases,
            siblings=Siblings(site.fleet, target, world, cases),
            moves=WorkspaceMoves(site, world, movable, target.kept, cases.barred),
            guard=guard,
            judge=Judge(site, way, world, served, guard, {} if adopts else None),
            writes=writes,
            takings=Takings(site.store, world, leavers, writes),
        )


def _guard(site: Site, target: StepTarget, world: World, served: ServedTrees) -> Guard | None:
    if target.limits is None:
        return None
    return Guard(
        site.store, site.trees.repositories.own, site.sources, site.catalog, target.limits.objects, world.before,
        served, target.moment.commit, target.limits.since,
    )  # fmt: skip
