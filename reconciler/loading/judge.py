"""One workspace at one commit: is its content good, and what does it come to?

Called by steps for each workspace that a commit touches. A judgement passes the phases that its way of working lists
for it (`ways`). A bad workspace keeps what it serves; the verdict then only says so (its record, the conditions of its
Workspace object). Judging is pure: it follows from the case, from what the store and the trees say, and from what other
workspaces provide; it changes nothing, and asked again it says the same.
"""

from __future__ import annotations

from apiserver.model.origins import SHIPPED
from apiserver.registry import workspacetypes as types
from apiserver.registry.kinds import builtins_of
from reconciler.layout.errors import LayoutError
from reconciler.layout.source import Piece
from reconciler.loading.case import Case, Coming, Needs, Verdict, was_served
from reconciler.loading.changeset import WorkspaceChanges
from reconciler.loading.guard import Guard
from reconciler.loading.identities import Keyring
from reconciler.loading.newcomers import Newcomers
from reconciler.loading.offers import Offers
from reconciler.loading.phases.effecting import uids_of
from reconciler.loading.phases.holding import away, held
from reconciler.loading.phases.judgement import Adopted, Go, Grounds, Judgement, summary_of
from reconciler.loading.phases.kinds import bring_kinds_back, find_kinds
from reconciler.loading.phases.publishing import seal
from reconciler.loading.phases.typed import identity
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.site import Site
from reconciler.loading.sources import generated
from reconciler.loading.treeobjects import TreeObjects
from reconciler.loading.unsealing import Unsealing
from reconciler.loading.ways import Way
from reconciler.loading.world import Waits, World
from reconciler.plan import system

_FAULT = "could not be judged: an error inside Treeplane, see its log"
_KINDS = frozenset({find_kinds, bring_kinds_back})


class Judge:
    """Judges workspaces of one step. `guard` None: nothing is served yet that could be lost. `adopted`: see Grounds."""

    def __init__(
        self,
        site: Site,
        way: Way,
        world: World,
        served: ServedTrees,
        guard: Guard | None = None,
        adopted: Adopted | None = None,
    ) -> None:
        self._way = way
        tree_objects, newcomers = TreeObjects(world.record), Newcomers(site, world)
        self._grounds = Grounds(site, site.store, world, served, guard, tree_objects, newcomers, adopted)

    def judge(self, case: Case) -> Verdict | Needs:
        """The verdict on one workspace, or whose word it needs: then it is asked again with that. The step's world
        already shows its parent as it will be."""
        try:
            return self._judged(case)
        except Waits as waits:
            return Needs(waits.path)

    def _judged(self, case: Case) -> Verdict:
        phases, at, next_ = self._way.phases(case.coming), Judgement(case, self._grounds), 0
        while next_ < len(phases):
            go = phases[next_](at)
            if go is None:
                next_ += 1
            elif go is Go.DONE:
                break
            elif go is Go.KINDS:
                next_ = next(n for n, phase in enumerate(phases) if phase in _KINDS)
            else:
                phases, at, next_ = self._way.phases(Coming.WHOLE), Judgement(case, self._grounds), 0
        return at.verdict

    def offers(self, case: Case) -> Offers:
        """What a workspace provides as its manifests say, none of it judged."""
        at, site = self._begun(case), self._grounds.site
        found, pieces = generated(system.manifests(case.path), SHIPPED), list[Piece]()
        if case.content is not None:
            pieces = [*site.sources.of(*case.content).pieces()]
            found.extend(manifest for piece in pieces for manifest in piece.manifests)
        unsealing = Unsealing(case.keys)
        said = (*map(unsealing.opened, found), *case.secrets)
        keyring = Keyring(site.identities, case.path, at.record.cluster, at.known.identities, said)
        builtins = builtins_of(at.record.builtins, case.path)
        unread = any(piece.problems for piece in pieces)
        hash_of, uids = lambda each: keyring.of(each).hash, uids_of(at)
        return Offers(case.path, at.record.cluster, builtins, found, hash_of, uids, unread=unread)

    def refuse(self, case: Case) -> Verdict:
        """The verdict where judging itself failed: the workspace stays as it is, and says so."""
        at = self._begun(case)
        at.record = case.record or at.record
        changes = WorkspaceChanges(case.path, why=[LayoutError(case.path, 0, 0, _FAULT)], fault=True)
        record = away(at.record, changes) if was_served(case.recorded) else held(at, changes)
        at.verdict = Verdict(record, changes)
        seal(at)
        return at.verdict

    def _begun(self, case: Case) -> Judgement:
        """A judgement of which nothing is known but whose it is."""
        at = Judgement(case, self._grounds)
        at.record = identity(self._grounds, case, types.ResolvedType(types.TypeRef(*types.DEFAULT)))
        at.known = summary_of(self._grounds, case, at.record)
        return at
