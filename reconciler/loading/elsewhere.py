"""Where the own content of a workspace that is judged is read: in its directory, as an earlier commit has it (pins), or
in another repository (sourced), which may be pinned as well, since its workspace.yaml says so; or there, since that
stands there itself (inherited).

Called by cases.
"""

from __future__ import annotations

from apiserver.model import paths
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.case import Case, Sourced
from reconciler.loading.inherited import InheritedContent
from reconciler.loading.pins import AsServed, Pins
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.site import Site
from reconciler.loading.sourced import SourcedContent
from reconciler.loading.world import World


class Elsewhere:
    """Of one step."""

    def __init__(self, site: Site, world: World, served: ServedTrees) -> None:
        self._sources, self._as_served = site.sources, AsServed(site.sources, served)
        self._pins = Pins(site, world, self._as_served)
        self._sourced = SourcedContent(site, self._as_served, self._pins.is_over)
        self._inherited = InheritedContent(site, self._as_served)

    def applied(self, case: Case) -> Case:
        """The case with where its content is read, and what is wrong with that."""
        place = case.directory
        if place is None:
            return case
        if place.theirs:
            return self._inherited.applied(case, place)
        ref = self._sources.source(case.tree, place)
        if ref is not None:
            return self._sourced.applied(case, place, ref)
        stands = self._as_served.of(case) if self._may_be_as_it_was(case, place) else None
        if stands is not None and case.record is not None:
            return case._replace(content=stands, sourced=Sourced(follows=case.record.follows))
        return self._pins.applied(case)

    def _may_be_as_it_was(self, case: Case, place: WorkspaceDir) -> bool:
        """Whether a workspace of which content is read elsewhere is held for a file that cannot be read, or is lost: it
        is as pinned, or has the source, as before."""
        if case.record is None or not case.record.elsewhere:
            return False
        said = self._sources.workspace(case.tree, place)
        return bool(said.problems) if said is not None else place.path != paths.ROOT
