"""Pins: workspaces whose own content is served as an earlier commit has it, since their workspace.yaml says so
(spec.serve). Children are served as ever, and so is workspace.yaml itself, whose next word ends the pin. What is pinned
of a workspace with a source is in its tenant's repository, and sourced's to say.

Called by cases, for each workspace that is judged: a pin is no more than another place where its content is read, so
all else (kinds, deletions that have to be allowed, what is recorded) is as with any content. The commit has to be one
that the branch was at, in which the workspace was there, as the same one; that is looked at where a pin is new.

A pin ends at its time. Whether it is over is asked of the clock once for each step, and the answer is recorded with the
workspace (Summary.over): a recovery takes it from there and asks no clock, and what is over stays over. When the next
ones are, rows of the store say; the holder serves these (`serve`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from apiserver.model import paths
from apiserver.model.commits import CommitRef
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.protocol import DeleteRow, Store
from reconciler.layout.errors import LayoutError
from reconciler.layout.pin import Pin
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.case import Case, Pinned, was_served
from reconciler.loading.servedtrees import ServedTrees
from reconciler.loading.site import Site
from reconciler.loading.sources import Content, Sources
from reconciler.loading.world import World
from reconciler.repository.errors import RepositoryUnreadable

FIELD = "spec.serve.commit"
_SHORTEST = 0.5
"""Seconds: where git is away, what is due stays due."""
_HINT = "name one {0}, as `git log --first-parent -- {1}` lists; or take spec.serve out: treeplane resume {1}"


def now() -> float:
    """The time by which pins end."""
    return time.time()


def serve(store: Store, judge_again: Callable[[Collection[str]], object]) -> None:
    """Has the workspaces judged again whose pins are over by now."""
    due = _over(store)
    if due:
        judge_again(due)
        # Who is not judged now (one that waits for its end, say) is by whatever comes next.
        store.write(*(DeleteRow(Table.PINNED, path) for path in _over(store) & due)).result()


def wait(store: Store, longest: float) -> float:
    """How many seconds it takes until `serve` has something to do; at most `longest`."""
    first = min(tree.pins_ending(store).values(), default=None)
    return longest if first is None else min(longest, max(_SHORTEST, first - now()))


def _over(store: Store) -> set[str]:
    at = now()
    return {path for path, due in tree.pins_ending(store).items() if due <= at}


class PinFault(NamedTuple):
    """Why a commit is none that a workspace can be pinned to, and what to do."""

    text: str
    hint: str


class AsServed:
    """Of one step: where a workspace that is held for where its content is read has what it is served with, so that
    nothing else is wrong with it."""

    def __init__(self, sources: Sources, served: ServedTrees) -> None:
        self._sources, self._served = sources, served

    def of(self, case: Case) -> Content | None:
        """None of one that is not served."""
        record = case.record
        base = self._served.of(record) if record is not None and record.served else None
        if record is None or base is None:
            return None
        place = base.find(record.path, record.directory)
        return self._sources.served(base, place, record.elsewhere) if place is not None else None


class Pins:
    """Of one step, which is all at one time."""

    def __init__(self, site: Site, world: World, as_served: AsServed) -> None:
        self._sources, self._store = site.sources, site.store
        self._world, self._as_served = world, as_served
        self._now = now()

    def applied(self, case: Case) -> Case:
        """The case with where its content is read, and what is wrong with that."""
        place = case.directory
        if place is None:
            return case
        own, pin = Content(case.tree, place), self._sources.pin(case.tree, place)
        if pin is None:
            return case._replace(content=own)
        if self.is_over(case, pin):
            return case._replace(content=own, pinned=Pinned(over=pin.name, there=True))
        found = self._sources.pinned(case.tree, place, pin.commit)
        fault = self._against(case, place, pin, found)
        if found is not None and fault is None:
            said = {**pin.as_said(), "file": place.manifest_path}
            return case._replace(content=found, pinned=Pinned(said, due=pin.due, there=True))
        assert fault is not None
        line = self._sources.line_in_workspace(case.tree, place, FIELD)
        error = LayoutError(place.manifest_path, line, 0, f"{FIELD} {fault.text}", fault.hint)
        content, pinned = self._as_served.of(case) or own, Pinned(due=pin.due, there=True)
        return case._replace(content=content, pinned=pinned, problems=(*case.problems, error))

    def is_over(self, case: Case, pin: Pin) -> bool:
        """Whether it is by now, or was once."""
        if case.recorded is not None and was_served(case.recorded):
            return case.recorded.summary.over == pin.name
        known = tree.summary(self._store, case.path) if case.record is not None and pin.until else {}
        return known.get("over") == pin.name or pin.is_over(self._now)

    def _against(self, case: Case, place: WorkspaceDir, pin: Pin, found: Content | None) -> PinFault | None:
        record = case.record
        if found is not None:
            if was_served(case.recorded) or (record is not None and record.pin.get("commit") == pin.commit):
                return None  # it was looked at when it came
            recorded = case.recorded.summary.as_json() if case.recorded is not None else {}
            known = tree.summary(self._store, case.path) if record is not None else recorded
            origin = record.origin if record is not None else case.origin
            above = self._world.record(paths.ROOT) if case.path != paths.ROOT else None
            # What was before the fleet was loaded first is nowhere recorded; of one that moved, not where it was.
            unsure = bool(known.get("first")) or above is None or origin == above.origin
            fault = against(case.tree, place, pin.commit, case.moment.commit.id, None if unsure else origin)
            return fault or next(self._inherited(case, found, pin.commit), None)
        return absent(case.tree, place, pin.commit)

    def _inherited(self, case: Case, found: Content, commit: str) -> Iterator[PinFault]:
        """A directory whose workspace.yaml was missing in that commit belonged to its own workspace still, which the
        commit alone does not tell."""
        repo, top = case.tree.repo, PurePosixPath(found.directory.directory)
        files = [path for path, _ in found.tree.files(found.directory)]
        files += [path for each in self._sources.rendered(*found) for path, _ in each.request.files()]
        inside = {above for path in files for above in PurePosixPath(path).parents}
        for directory in sorted(str(each) for each in inside if top in each.parents):
            now_there = case.tree.at(directory)
            record = self._world.record(now_there.path) if now_there is not None else None
            if record is not None and record.path != case.path and repo.is_ancestor(record.origin.id, commit):
                text = f"is {commit:.10}, in which {directory} had lost the workspace.yaml of {record.path}"
                yield PinFault(text, "name a commit in which it has it")


def absent(here: WorkspaceTree, place: WorkspaceDir, commit: str) -> PinFault:
    """Why a commit has no content of the workspace that stands in a place."""
    try:
        here.repo.commit(commit)
    except RepositoryUnreadable:
        hint = _HINT.format("that the branch was at", place.directory)
        text = f"is {commit:.10}, which is no commit of this repository"
        return PinFault(text, f"{hint}; a shallow clone lacks some: git fetch --unshallow")
    hint = _HINT.format("in which it was", place.directory)
    return PinFault(f"is {commit:.10}, in which {place.path} was not there", hint)


def against(
    here: WorkspaceTree, place: WorkspaceDir, commit: str, head: str, origin: CommitRef | None
) -> PinFault | None:
    """What is against serving a workspace, which stands in a place of the tree of `head`, as a commit has it that has
    one of its path. `origin`: the commit in which it appeared; None where that tells nothing."""
    repo = here.repo
    try:
        after = repo.first_parents(commit, head)
    except RepositoryUnreadable:
        after = None
    if not after:
        text = f"is {commit:.10}, which the branch never was at before this commit"
        return PinFault(text, _HINT.format("that it was at, and none that was merged in", place.directory))
    if origin is None:
        gone = _gap(here, place, after)
        text = f"is {commit:.10}, and {place.path} was not there in {gone:.10}, which came later"
        return PinFault(text, _HINT.format("that came after that", place.directory)) if gone else None
    if not repo.is_ancestor(origin.id, commit):
        text = f"is {commit:.10}, and another workspace was {place.path} then: this one appeared with {origin:.10}"
        return PinFault(text, _HINT.format("that is no older than that", place.directory))
    return None


def _gap(here: WorkspaceTree, place: WorkspaceDir, commits: list[str]) -> str:
    """The first of some commits in which a workspace is not there; "" if it is in all."""
    repo, directory, last = here.repo, place.directory, ""
    for commit in commits:
        top = repo.commit(commit).tree
        now_there = repo.tree_at(top, directory)
        if now_there is None or now_there != last:
            found = here.beside(top).find(place.path, directory)
            if found is None:
                return commit
            directory, now_there = found.directory, found.tree
        last = now_there
    return ""
