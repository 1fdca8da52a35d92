"""What there is to judge of a workspace in a step: where its directory is, at which commit, and what is known of it.

Called by steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from apiserver.model import commits
from apiserver.model.commits import NONE, CommitRef
from apiserver.registry.tree import WorkspaceRecord, summary
from reconciler.layout.grafts import OF, Grafts
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.whereabouts import Whereabouts
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading import vacated
from reconciler.loading.case import Case, Coming, Recorded, is_lost, was_served
from reconciler.loading.elsewhere import Elsewhere
from reconciler.loading.kept import KeptWorkspaces
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.site import Site
from reconciler.loading.sourceheads import SourceHead
from reconciler.loading.step import StepTarget
from reconciler.loading.world import World
from reconciler.plan.deletions import ALLOW
from reconciler.plan.trespasses import Trespass, Trespasses


class Cases:
    """Of one step. `places`: directories that are known already, by path; `at`: one that is being looked at.
    `trespasses`: what its commit does without a right, by workspace; `vouched`: see Case, as its commit has it;
    `waited`: of workspaces that could not be judged until now, since another one left, what was known by then
    (Summary.asked)."""

    def __init__(self, site: Site, target: StepTarget, world: World, kept: KeptWorkspaces, served: ServedTrees) -> None:
        self._site, self._target, self._world, self._kept = site, target, world, kept
        self._elsewhere = Elsewhere(site, world, served)
        self.places = Whereabouts()
        self.trespasses: dict[str, list[Trespass]] = {}
        self.vouched: Callable[[str], str] = lambda _: ""
        self.waited = {path: known for each in vacated.standing(site.store).values() for path, known in each.items()}
        self.at: WorkspaceDir | None = None

    def known(self, path: str) -> list[str] | None:
        """See layout.compare.Known. One that is held is served from where it was, and may stand elsewhere by now."""
        record = self._world.record(path)
        if record is not None and record.errors:
            return None
        return [record.directory] if record is not None and record.directory else []

    def find(self, path: str) -> WorkspaceDir | None:
        """A workspace's directory in the commit, or where it was if it stays."""
        if path in self._target.absent:
            return None
        if self.at is not None and self.at.path == path:
            return self.at
        here, record = self.places.get(path) or self._kept.find(path), self._world.record(path)
        known = record.directory if record is not None else ""
        if here is not None and known not in ("", here.directory) and self._kept.of(path) is None:
            # Of one that stands twice the place counts where it is served from, whichever the commit touches.
            there = self._target.tree.find(path, known)
            return there if there is not None and there.directory == known else here
        found = here or self._target.tree.find(path, known)
        return found if found is None or self._kept.of(path) is not None or self._has_something(found) else None

    def is_there(self, path: str) -> bool:
        """Whether the commit has a workspace, whatever stays."""
        record = self._world.record(path)
        known = record.directory if record is not None else ""
        found = None if path in self._target.absent else self.places.get(path) or self._target.tree.find(path, known)
        return found is not None and self._has_something(found)

    def _has_something(self, place: WorkspaceDir) -> bool:
        """Whether there is more of a workspace than a directory that is its own while it stays (Whole.claims)."""
        here = self._target.tree
        return place.manifest is not None or place.directory not in here.claims or bool(here.leftovers(place))

    def forget(self, path: str) -> None:
        """It is judged, and its record says where it stands."""
        self.places.forget(path)

    def forget_all(self, some: Iterable[str]) -> None:
        """The same of several."""
        self.places.forget_all(some)

    def make(self, path: str, *, again: bool, forced: bool, provided: bool = False) -> Case:
        """`again`: it was judged in this step before; `forced`: all of its content counts; `provided`: so it does, as
        far as what others provide makes a difference to it."""
        target, directory, record = self._target, self.find(path), self._world.standing(path)
        recorded, served, claims = self._recorded(path, directory)
        moment, tree, kept, behind = target.moment, target.tree, self._kept.of(path), NONE
        stood = directory.directory if directory is not None else record.directory if record is not None else ""
        grafts = self._as_it_was(recorded, path, stood)
        if served:
            moment = self._site.moments.at(served, moment.time)
            tree = self._site.trees.at(moment.commit, claims, grafts)
            before, directory = directory, tree.find(path)
            if target.lost is not None and _tree_of(before) != _tree_of(directory):
                behind = target.moment.commit
        elif kept is not None:
            tree = kept.tree
        if grafts is not None and not served:
            tree = tree.regrafted(grafts)
            directory = tree.find(path, stood) or directory
        if record.errors if record is not None else forced or provided:
            tree.find_twins(path)  # what stands twice is judged so with every look, not only when that comes about
        problems = tuple(tree.problems(directory)) if directory is not None else ()
        why = kept.why if kept is not None else None
        if why is not None and not served:
            problems = (*problems, why)
        case = Case(
            path=path,
            coming=_coming(record, recorded, _why(directory, forced=forced, provided=provided), again=again),
            moment=moment,
            tree=tree,
            directory=directory,
            record=record,
            problems=problems,
            recorded=recorded,
            secrets=target.secrets(path),
            keys=target.keys(path),
            asked=target.asked,
            trespasses=self.trespassed(path) if recorded is None else _recorded_of(recorded),
            vouched=self._vouched(path, record) if recorded is None else recorded.summary.vouched,
            stays=kept is not None,
            removed=why if served else None,
            apart=recorded.apart if recorded is not None else self._kept.is_apart(path, target.tree),
            behind=behind,
        )
        return self._elsewhere.applied(case)

    def _as_it_was(self, recorded: Recorded | None, path: str, directory: str) -> Grafts | None:
        """Of one that is brought back and stood in a tenant's repository: as that had it then, its workspace.yaml
        included."""
        if recorded is None or not was_served(recorded) or not recorded.summary.source:
            return None
        known = {**recorded.summary.source, "commit": str(recorded.summary.content)}
        return self._site.trees.served_with(known, path, directory)

    def trespassed(self, path: str) -> Trespasses:
        """What was done to a workspace without a right, by this commit or before, as far as nobody allows it."""
        record = self._world.record(path)
        known = self._known(path, record) if record is None or record.errors or record.elsewhere else {}
        return self._still(path, Trespasses.in_summary(known))

    def _still(self, path: str, before: Trespasses) -> Trespasses:
        allowed = self._target.admission.allows.get(path, frozenset())
        return before.also(self.trespasses.get(path, ())).without(allowed)

    def asked(self, path: str, before: Mapping[str, Any]) -> dict[str, Any]:
        """What is known by now of who may have a workspace at a path at which another one leaves (Summary.asked)."""
        trespasses = self._still(path, Trespasses.in_summary(before)).as_json()
        vouched = self.vouched(path) or before.get("vouched") or ""
        return ({"trespasses": trespasses} if trespasses else {}) | ({"vouched": vouched} if vouched else {})

    def barred(self, path: str) -> Trespasses:
        """The same without what its objects would take: whether it may go, or move."""
        return self.trespassed(path).of_files

    def allowed_there(self, path: str) -> set[str] | None:
        """What commits of a tenant's repository allow to go of a workspace that stands there, which came since it was
        served; None of all others."""
        record = self._world.record(path)
        grafts = self._target.tree.grafts
        graft = grafts.of(record.source.get(OF, "")) if record is not None and record.source and grafts else None
        ref = SourceRef.kept(graft.said) if graft is not None else None
        if record is None or graft is None or graft.tree is None or ref is None:
            return None
        served, head = commits.parse(record.source.get("commit", "")), graft.key.commit
        served = served if served.repository == head.repository else NONE
        return SourceHead(ref, graft.tree.repo, head, served).said(ALLOW)

    def _vouched(self, path: str, record: WorkspaceRecord | None) -> str:
        if record is not None and record.served:
            return ""
        return self.vouched(path) or str(self._known(path, record).get("vouched") or "")

    def _known(self, path: str, record: WorkspaceRecord | None) -> dict[str, Any]:
        """What was found out about who may have it there: of one that was judged its summary says that."""
        return summary(self._site.store, path) if record is not None else self.waited.get(path) or {}

    def _recorded(
        self, path: str, directory: WorkspaceDir | None
    ) -> tuple[Recorded | None, CommitRef, Mapping[str, str] | None]:
        """What the status branch knows of a workspace that is to be brought back, and the commit that it was served at
        where that is not the step's, with the claims that counted there."""
        target, place, record = self._target, directory.directory if directory else "", self._world.standing(path)
        if target.recorded is not None:
            recorded = target.recorded(path, place)
            known = recorded.summary if recorded is not None else None
            return recorded, (known.served if known else None) or NONE, known.claims if known else None
        if target.lost is not None and record is not None and not record.served:
            recorded, served, claims = target.lost.served(path, place)
            if is_lost(record, recorded):
                return recorded, served, claims
        return None, NONE, None


def _recorded_of(recorded: Recorded) -> Trespasses:
    """Of one that was never served; any other comes back as it was, and what is known of the rest with it."""
    return Trespasses() if was_served(recorded) else Trespasses.of(recorded.summary.trespasses)


def _tree_of(directory: WorkspaceDir | None) -> str:
    return directory.tree if directory is not None else ""


def _coming(record: WorkspaceRecord | None, recorded: Recorded | None, why: Coming, *, again: bool) -> Coming:
    if recorded is not None:
        return Coming.RETURNING_AGAIN if again else Coming.RETURNING
    if record is None and not again:
        return Coming.NEW
    return why


def _why(directory: WorkspaceDir | None, *, forced: bool, provided: bool) -> Coming:
    """How one comes of which something may be stored."""
    if forced or directory is None:
        return Coming.WHOLE
    return Coming.PROVIDED if provided else Coming.CHANGED
