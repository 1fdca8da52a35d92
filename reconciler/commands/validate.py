"""`treeplane validate`: every error that serving a tree would meet, without a server.

The same loader as the server's, into a store that is thrown away: what validates here loads there. A commit is compared
with the one that is served, where the repository has the status branch, or with any other: then what it would delete is
told as the server would tell it.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from apiserver.model.commits import NONE, CommitRef, own
from apiserver.registry import tree
from apiserver.stores import open_at
from reconciler.commands.failure import Failure
from reconciler.commands.verdicts import deletions
from reconciler.layout.errors import LayoutError
from reconciler.loading.changeset import together
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loaded, Loader
from reconciler.plan.deletions import Refused
from reconciler.repository.errors import RepositoryError
from reconciler.repository.local import Local
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories
from reconciler.repository.seed import seed
from reconciler.statusbranch.naming import Undecided, in_use
from reconciler.statusbranch.recorded import RecordedFleet


@dataclass(frozen=True, slots=True)
class Checked:
    """All problems, sorted by file and line, and how many workspaces were looked at. `base`: the commit that was
    compared with, "" for none; `refused`: the deletions that have to be allowed, by the uppermost workspace."""

    problems: tuple[LayoutError, ...]
    workspaces: int
    base: CommitRef = NONE
    refused: dict[str, Refused] = field(default_factory=dict)

    def render(self, output: str) -> str:
        """`text`, `json` or `yaml`."""
        if output == "text":
            lines = [*map(str, self.problems), *deletions(self.refused)]
            count = len(self.problems)
            errors = f"{count} error{'s' if count != 1 else ''}" if count else "no errors"
            compared = f", compared with {self.base:.10}" if self.base else ""
            lines.append(f"{errors} in {self.workspaces} workspaces{compared}")
            return "\n".join(lines) + "\n"
        found: dict[str, Any] = {"problems": [asdict(p) for p in self.problems], "workspaces": self.workspaces}
        if self.base:
            found |= {"base": str(self.base), "deletions": [_deletion(*each) for each in sorted(self.refused.items())]}
        return json.dumps(found, indent=2) + "\n" if output == "json" else yaml.safe_dump(found, sort_keys=False)


def _deletion(path: str, refused: Refused) -> dict[str, Any]:
    return {"workspace": path, "reason": refused.why, "hash": refused.digest, "lines": refused.lines()}


def validate_path(path: Path) -> Checked:
    """The files below `path`, whether committed or not."""
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        git_dir = Path(scratch) / "fleet.git"
        try:
            seed(path.resolve(), git_dir, "main")
        except RepositoryError as error:
            raise Failure(str(error)) from error
        repo = Repository(git_dir)
        return _check(repo, _commit(repo, "refs/heads/main"), _Base(), Path(scratch))


def validate_revision(path: Path, revision: str, base: str = "") -> Checked:
    """A commit, branch or tag of the repository at `path`; `base`: another to compare it with, "" for what is served,
    if the repository knows."""
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        try:
            repo = Repository(path.resolve())
        except RepositoryError as error:
            raise Failure(str(error), "--rev needs a git repository", 2) from error
        commit = _commit(repo, revision)
        start = _Base(_commit(repo, base)) if base else _served(repo, commit)
        return _check(repo, commit, start, Path(scratch))


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
    try:
        name = in_use(repo, commit.id, "", Local(str(repo.path)))
    except Undecided as error:
        raise Failure(f"commits name several status branches, and each is one: {error}", "give --base", 2) from error
    refs = [repo.ref(f"refs/{place}/{name}") for place in ("remotes/origin", "heads")]
    heads = [ref for ref in refs if ref is not None]
    newest = next((h for h in heads if all(repo.is_ancestor(other, h) for other in heads)), next(iter(heads), None))
    if newest is None:
        return _Base()
    recorded = RecordedFleet(repo, newest)
    if repo.is_ancestor(recorded.source.id, commit.id):
        return _Base(recorded.source, recorded)
    return _Base(own(repo.merge_base(recorded.source.id, commit.id) or ""))


def _check(repo: Repository, commit: CommitRef, base: _Base, scratch: Path) -> Checked:
    store = open_at(scratch / "store", sync=False)
    try:
        loader = Loader(store, Repositories(repo), Identities(scratch / "identities"), lambda _: ())
        loaded = _load(loader, commit, base)
        changes = together(loaded.steps)
        problems = {*loaded.problems, *(p for found in changes.held.values() for p in found)}
        return Checked(tuple(sorted(problems)), tree.count(store), base.commit, changes.refused)
    finally:
        store.close()


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
