"""`treeplane validate`: every error that serving a tree would meet, without a server.

The same loader as the server's, into a store that is thrown away: what validates here loads there. A commit is compared
with the one that is served, where the repository has the status branch, or with any other: then what it would delete is
told as the server would tell it.

One workspace is judged as the whole fleet would judge it, at the cost of that workspace and whoever it relies on
(loading/inpart).
"""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef, own
from apiserver.model.counts import counted
from apiserver.stores import open_at
from reconciler.commands import fleetfolder
from reconciler.commands.answers import deletions
from reconciler.commands.answers import moves as told_moves
from reconciler.commands.dangling import Dangling
from reconciler.commands.failure import Failure
from reconciler.commands.nofleet import require_fleet
from reconciler.commands.rendering import renderer_of_user
from reconciler.layout.errors import LayoutError
from reconciler.layout.fleet import FILE
from reconciler.layout.part import Part
from reconciler.loading.changeset import ChangeKind, ChangeSet, together
from reconciler.loading.consequences import told_once, waiting_lines
from reconciler.loading.identities import Identities
from reconciler.loading.inpart import Everybody, Heard, below, judged
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.renames import REMEDY
from reconciler.loading.trees import Trees
from reconciler.plan.deletions import RefusedDeletion
from reconciler.rendering.rendering import Renders
from reconciler.repository import borrowed
from reconciler.repository.errors import RepositoryError
from reconciler.repository.folder import unfit
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories
from reconciler.repository.seed import seed
from reconciler.repository.write import commit_tree
from reconciler.statusbranch import clones
from reconciler.statusbranch.naming import Undecided
from reconciler.statusbranch.recorded import RecordedFleet


@dataclass(frozen=True, slots=True)
class Checked:
    """All problems, sorted by file and line, and how many workspaces were looked at. `base`: the commit that was
    compared with, "" for none; `refused`: the deletions that have to be allowed, by the uppermost workspace; `moves`,
    `renames`: see ChangeSet. `unchecked`: what was not looked at, since it is encrypted. `warnings`: what is served and
    waits for something that is not there; looked for where all of a fleet is judged, and nothing holds all of it.
    `waiting`: by workspace with a mistake, who is held for that; `consequences`: which of the problems follow so."""

    problems: tuple[LayoutError, ...]
    workspaces: int
    base: CommitRef = NONE
    refused: dict[str, RefusedDeletion] = field(default_factory=dict)
    moves: dict[str, str] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    warnings: tuple[LayoutError, ...] = ()
    waiting: dict[str, list[str]] = field(default_factory=dict)
    consequences: frozenset[LayoutError] = frozenset()

    def render(self, output: str) -> str:
        """`text`, `json` or `yaml`."""
        if output == "text":
            mistakes = [each for each in self.problems if each not in self.consequences]
            lines = [*map(str, mistakes), *waiting_lines(self.waiting)]
            lines += [*told_moves(self.moves, self.renames), *deletions(self.refused)]
            lines += [*self.unchecked, *(f"warning: {each}" for each in self.warnings)]
            count, warned = len(mistakes), len(self.warnings)
            errors = counted(count, "error") if count else "no errors"
            errors += f" and {counted(warned, 'warning')}" if warned else ""
            compared = f", compared with {self.base:.10}" if self.base else ""
            lines.append(f"{errors} in {counted(self.workspaces, 'workspace')}{compared}")
            return "\n".join(lines) + "\n"
        found: dict[str, Any] = {"problems": [each.as_json() for each in self.problems], "workspaces": self.workspaces}
        found |= {"unchecked": [*self.unchecked]} if self.unchecked else {}
        found |= {"warnings": [each.as_json() for each in self.warnings]} if self.warnings else {}
        waiting = sorted(self.waiting.items())
        found |= {"waiting": [{"for": path, "workspaces": those} for path, those in waiting]} if waiting else {}
        if self.base:
            found |= {"base": str(self.base), "deletions": [_deletion(*each) for each in sorted(self.refused.items())]}
            found["moves"] = [{"from": old, "to": new, "moved": True} for old, new in sorted(self.moves.items())]
            renamed = sorted(self.renames.items())
            found["moves"] += [{"from": old, "to": new, "moved": False, "remedy": REMEDY} for old, new in renamed]
        return json.dumps(found, indent=2) + "\n" if output == "json" else yaml.safe_dump(found, sort_keys=False)


def _deletion(path: str, refused: RefusedDeletion) -> dict[str, Any]:
    return {"workspace": path, "reason": refused.why, "hash": refused.digest, "lines": refused.lines()}


def validate_path(path: Path, workspace: str = "", folder: str = "") -> Checked:
    """The files below `path`, whether committed or not. `workspace`, `folder`: see validate_revision."""
    top, folder = _place(path, folder)
    path = top / folder
    require_fleet(path, "treeplane validate")
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        git_dir = Path(scratch) / "fleet.git"
        try:
            seed(path.resolve(), git_dir, "main", folder=folder)
        except RepositoryError as error:
            raise Failure(str(error)) from error
        seeded = Repository(git_dir, (folder,))
        repo, commit = _on_top(top.resolve(), seeded, _commit(seeded, "refs/heads/main"), Path(scratch))
        return _check(repo, commit, _Base(), Path(scratch), workspace)


def _place(path: Path, folder: str) -> tuple[Path, str]:
    """The top of the work tree that a fleet is in, and its folder there: paths are told as the repository has them. A
    directory of no work tree is its own top."""
    if folder or (path / ".git").exists():
        return path, folder
    here = path.resolve()
    top = (
        next((above for above in here.parents if (above / ".git").exists()), None) if (path / FILE).is_file() else None
    )
    inside = here.relative_to(top).as_posix() if top is not None else ""
    return (top, inside) if top is not None and not unfit(inside) else (path, "")


def _on_top(top: Path, seeded: Repository, commit: CommitRef, scratch: Path) -> tuple[Repository, CommitRef]:
    """The files of a clone as what comes on top of its HEAD: what they say may name commits that came before."""
    if not (top / ".git").exists():
        return seeded, commit
    try:
        clone = Repository(top, seeded.folders)
        head = clone.resolve("HEAD")
        if head is None:
            return seeded, commit
        repo = borrowed.borrow(clone, scratch / "clone.git", (seeded.git_dir / "objects",))
        made = commit_tree(repo, repo.commit(commit.id).tree, [head], "The files\n", repo.commit(head).time)
    except RepositoryError:
        return seeded, commit
    return repo, own(made)


def validate_revision(path: Path, revision: str, base: str = "", workspace: str = "", folder: str = "") -> Checked:
    """A commit, branch or tag of the repository at `path`; `base`: another to compare it with, "" for what is served,
    if the repository knows. `workspace`: the path of one that is judged alone, with those below it; "" for all.
    `folder`: of the repository, in which the fleet stands; "": as fleetfolder finds it."""
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        try:
            top, _ = _place(path, "")
            repo = Repository(top.resolve())
        except RepositoryError as error:
            raise Failure(str(error), "--rev needs a git repository", 2) from error
        fleetfolder.settle(repo, top, path, folder)
        commit = _commit(repo, revision)
        start = _Base(_commit(repo, base)) if base else _served(repo, commit)
        return _check(repo, commit, start, Path(scratch), workspace)


class _Base(NamedTuple):
    """What to compare with. `recorded`: it is served, and this is what the status branch says of it."""

    commit: CommitRef = NONE
    recorded: RecordedFleet | None = None


def _commit(repo: Repository, revision: str) -> CommitRef:
    found = repo.resolve(revision)
    if found is None:
        raise Failure(f"{revision} names no commit of {repo.path}", "give a commit, branch or tag", 2)
    return own(found)


def _served(repo: Repository, commit: CommitRef) -> _Base:
    """The served commit where `commit` contains it, else the last that both contain: the difference from there on is
    what a merge brings."""
    recorded = recorded_for(repo, commit.id)
    if recorded is None:
        return _Base()
    if repo.is_ancestor(recorded.source.id, commit.id):
        return _Base(recorded.source, recorded)
    return _Base(own(repo.merge_base(recorded.source.id, commit.id) or ""))


def recorded_for(repo: Repository, commit: str) -> RecordedFleet | None:
    """What the status branch of a commit's fleet says, as a clone has it; None where it has none."""
    try:
        return clones.recorded_for(repo, commit)
    except Undecided as error:
        raise Failure(f"commits name several status branches, and each is one: {error}", "give --base", 2) from error


def _check(repo: Repository, commit: CommitRef, base: _Base, scratch: Path, workspace: str) -> Checked:
    with closing(renderer_of_user()) as renders:
        return _checked_with(renders, repo, commit, base, scratch, workspace)


def _checked_with(
    renders: Renders, repo: Repository, commit: CommitRef, base: _Base, scratch: Path, workspace: str
) -> Checked:
    repositories, numbers, warnings = Repositories(repo), count(), list[LayoutError]()

    def load(trees: Trees, heard: Heard) -> Loaded:
        store = open_at(scratch / f"store{next(numbers)}", sync=False)
        try:
            identities = Identities(scratch / "identities")
            loader = Loader(heard.in_(store), repositories, identities, lambda _: (), trees=trees, renders=renders)
            loader.steppers.guesses = bool(base.commit) and base.recorded is None
            loaded = _load(loader, commit, base)
            if not workspace and not loaded.problems:
                warnings.extend(Dangling(store, repo, commit).warnings())
            return loaded
        finally:
            store.close()

    if not workspace:
        loaded = load(Trees(repositories), Heard())
        return replace(_checked(loaded, together(loaded.steps), base), warnings=tuple(warnings))
    if not paths.is_path(workspace):
        raise Failure(f"{workspace} is no path of a workspace", "give one like root:shop:web", 2)
    try:
        loaded = judged(repositories, base.recorded, Part(workspace), load)
    except Everybody:
        loaded = load(Trees(repositories), Heard())
    return _checked(loaded, below(workspace, loaded), base)


def _checked(loaded: Loaded, found: ChangeSet, base: _Base) -> Checked:
    """`found`: what is told of it."""
    problems = {*loaded.problems, *(p for each in found.held.values() for p in each)}
    there = sum(change is not ChangeKind.DELETED for change in found.became.values())
    unchecked = tuple(sorted(said for each in found.locked.values() for said in each))
    once = told_once(found.held)
    return Checked(
        tuple(sorted(problems)),
        there,
        base.commit,
        found.refused,
        found.moves,
        found.renames,
        unchecked,
        waiting=once.waiting,
        consequences=frozenset(once.consequences(found.held)),
    )


def _load(loader: Loader, commit: CommitRef, base: _Base) -> Loaded:
    if base.recorded is not None:
        return loader.load(commit, base.recorded)
    if not base.commit or base.commit == commit:
        return loader.load(commit)
    before = loader.load(base.commit)
    if before.problems:
        return loader.load(commit)  # nothing was served that it could take away
    after = loader.take(commit)
    return Loaded(commit, after.problems, (*before.steps, *after.steps))
