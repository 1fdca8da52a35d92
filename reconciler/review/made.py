"""A review, made of what was foreseen. Called by `treeplane diff`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from apiserver.model import conditions
from apiserver.model.counts import counted
from apiserver.model.keys import Key
from apiserver.model.origins import file_of
from apiserver.model.storagenames import BINDINGS
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.fleet import FILE
from reconciler.layout.yamldoc import parse
from reconciler.loading.changeset import ChangeKind
from reconciler.loading.consequences import told_once
from reconciler.plan.deletions import ALLOW, RefusedDeletion, command
from reconciler.plan.pushedby import NOBODY
from reconciler.plan.system import shipped_workspaces
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.chain import brought
from reconciler.repository.folder import joined
from reconciler.review.ends import End, Ends
from reconciler.review.fields import FieldChange, differences
from reconciler.review.foresight import Foreseen, foresee
from reconciler.review.objects import ByWorkspace, by_workspace
from reconciler.review.result import ChangeReview, ReviewedCommit, Warned, WorkspaceDifference
from reconciler.statusbranch.pushtrailers import pushed_by

Object = dict[str, Any]

_EVERYBODY = "all workspaces were judged, since what changes may concern any of them"
_MOST = 1_000
"""Commits that are told of: the newest."""
_UNDECIDED = "of some Placements no decision is recorded: where they run is decided as if they were new"


def review(ends: Ends, scratch: Path, renders: Renders = NOWHERE) -> ChangeReview:
    """`renders`: for directories that are rendered. Raises RepositoryError."""
    return _Making(ends, foresee(ends, scratch, renders)).run()


class _Making:
    def __init__(self, ends: Ends, foreseen: Foreseen) -> None:
        self._ends, self._foreseen = ends, foreseen
        held = {path: errors for path, errors in foreseen.found.held.items() if not self._stays_held(path)}
        self._once = told_once(held)
        self._waiting = {path for those in self._once.waiting.values() for path in those}
        self._consequences = self._once.consequences(held)
        self._objects = by_workspace(foreseen.pairs, {**foreseen.before, **foreseen.after})

    def run(self) -> ChangeReview:
        ends, foreseen = self._ends, self._foreseen
        workspaces = tuple(self._workspaces(self._objects))
        held = {each.path for each in workspaces if each.why}
        tip, base = ends.tip, ends.base.commit.id
        brings, more = brought(ends.repo, base, tip, _MOST) if tip else ([], 0)
        return ChangeReview(
            str(ends.base),
            str(ends.target),
            (ends.base.commit, ends.target.commit),
            tuple(_settings(ends)),
            workspaces,
            foreseen.targets,
            foreseen.problems,
            tuple(sorted(self._warnings(), key=lambda each: (each.path, each.file, each.text))),
            {path: refused for path, refused in foreseen.found.refused.items() if path in held},
            foreseen.found.renames,
            (*ends.notes, *self._notes(), *_unlisted(more)),
            tuple(_brings(ends, brings)),
            self._once.waiting,
        )

    def _workspaces(self, objects: ByWorkspace) -> Iterator[WorkspaceDifference]:
        foreseen, found = self._foreseen, self._foreseen.found
        old_of = {new: old for old, new in foreseen.found.moves.items()}
        clusters = {path: cluster for cluster, path in foreseen.before.items()}
        clusters |= {path: cluster for cluster, path in foreseen.after.items()}
        for path in sorted({*found.became, *found.held, *old_of}):
            if path in found.moves and path not in foreseen.after.values():
                continue  # told where it is now
            cluster = clusters.get(path, "")
            declared, others = objects.declared.get(cluster, ()), objects.others.get(cluster, 0)
            why = self._why(path)
            if why and self._stays_held(path):
                continue
            why = tuple(each for each in why if each not in self._consequences)
            something, waits = bool(declared or others), path in self._waiting
            if waits and not why and not something:
                continue  # one of a number
            change = ChangeKind.HELD if why or waits else self._change(path, something, path in old_of)
            if change is None or (path in shipped_workspaces() and not declared and not why):
                continue
            yield WorkspaceDifference(path, change, tuple(declared), others, old_of.get(path, ""), why)

    def _why(self, path: str) -> tuple[LayoutError, ...]:
        """What of it is told: a deletion that has to be allowed is, by itself."""
        refused = self._foreseen.found.refused.values()
        return tuple(_short(problem, refused) for problem in self._foreseen.found.held.get(path, ()))

    def _stays_held(self, path: str) -> bool:
        """Whether it is held as before, for the same, and this change is not to blame."""
        foreseen = self._foreseen
        before = foreseen.held_before.get(path)
        return path not in foreseen.touched and before == [*map(str, foreseen.found.held[path])]

    def _change(self, path: str, something: bool, moved: bool) -> ChangeKind | None:
        if moved:
            return ChangeKind.MOVED
        became = self._foreseen.found.became.get(path)
        if became in (ChangeKind.CREATED, ChangeKind.DELETED):
            return became
        if something or path in self._foreseen.found.mended:
            return ChangeKind.CONFIGURED
        return ChangeKind.UNCHANGED if path in self._foreseen.touched else None

    # -- what somebody may not have meant

    def _warnings(self) -> Iterator[Warned]:
        paths = {**self._foreseen.before, **self._foreseen.after}
        for key, pair in self._foreseen.pairs.items():
            if key.resource == BINDINGS and pair.after is not None:
                said = _unbound(pair.after)
                if said and said != (_unbound(pair.before) if pair.before else ""):
                    yield Warned(paths.get(key.cluster, ""), file_of(pair.after), f"APIBinding {key.name}: {said}")
        then, now = self._foreseen.placed
        for key, why in now.troubled.items():
            if then.troubled.get(key) != why:
                yield Warned(paths.get(key.cluster, ""), self._file(key), f"Placement {key.name}: {why}")
        yield from self._trailers()

    def _trailers(self) -> Iterator[Warned]:
        foreseen = self._foreseen
        said = ", ".join(sorted(foreseen.said))
        needed = ", ".join(sorted({refused.digest for refused in foreseen.found.refused.values()}))
        deletes = any(pair.after is None for pair in foreseen.pairs.values())
        if said and needed:
            yield Warned(
                "", "", f"{ALLOW}: {said} (a commit says it) is not what is held for deletion; that is {needed}"
            )
        elif said and not deletes:
            yield Warned("", "", f"{ALLOW}: {said} (a commit says it) allows nothing, since nothing is deleted")

    def _file(self, key: Key) -> str:
        pair = self._foreseen.pairs.get(key)
        return file_of(pair.value) if pair is not None and pair.value else ""

    def _notes(self) -> Iterator[str]:
        if self._foreseen.whole:
            yield _EVERYBODY
        for error in self._foreseen.nothing_before:
            instead = "what was served before it is compared" if self._foreseen.before else "all counts as new"
            yield f"nothing of {self._ends.base} can be served, so {instead}: {error}"
        undecided = self._foreseen.placed[0].undecided
        if self._foreseen.targets and self._ends.recorded is not None and undecided:
            yield _UNDECIDED


def _unlisted(older: int) -> list[str]:
    return [counted(older, "older commit is not listed", "older commits are not listed")] if older else []


def _brings(ends: Ends, commits: Iterable[str]) -> Iterator[ReviewedCommit]:
    """Who pushed them the status branch says."""
    known = pushed_by(ends.repo, ends.status, commits) if ends.status else {}
    for commit in commits:
        info = ends.repo.commit(commit)
        yield ReviewedCommit(commit, info.author, info.message.partition("\n")[0], known.get(commit, NOBODY))


def _settings(ends: Ends) -> Iterator[FieldChange]:
    """What of treeplane.yaml is another."""
    sides = [_fleet(ends, end) for end in (ends.base, ends.target)]
    if None not in sides:
        yield from differences(_file(ends, ends.target), sides[0] or {}, sides[1] or {})


def _file(ends: Ends, end: End) -> str:
    return joined(ends.repo.folder_at(ends.repo.commit(end.commit.id).tree), FILE)


def _fleet(ends: Ends, end: End) -> Object | None:
    file = _file(ends, end)
    entry = ends.repo.entry_at(ends.repo.commit(end.commit.id).tree, file)
    if entry is None or entry.kind != "blob":
        return None
    try:
        documents = parse(ends.repo.blob(entry.id), file)
    except BadFile:
        return None  # why it is not taken is told
    return documents[0].value if len(documents) == 1 else None


def _short(problem: LayoutError, refused: Iterable[RefusedDeletion]) -> LayoutError:
    found = next((each for each in refused if str(each) in problem.message), None)
    if found is None:
        return problem
    said = f"what it deletes has to be allowed first: {found.why}"
    return replace(problem, message=said, hint=f"to delete it, push: {command([found.digest])}")


def _unbound(binding: Object) -> str:
    """Why an APIBinding brings nothing, "" where it does."""
    found = (binding.get("status") or {}).get("conditions") or ()
    wrong = [each for each in found if each.get("type") == "APIExportValid" and each.get("status") == "False"]
    return str(wrong[0].get("message", "")) if wrong and not conditions.is_true(found, "APIExportValid") else ""
