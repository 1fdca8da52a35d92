"""`treeplane validate`: every error that serving a tree would meet, without a server.

The same loader as the server's, into a store that is thrown away: what validates here loads there.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from apiserver.storage.lmdb import open_store
from apiserver.stores import MARKED
from reconciler.commands.failure import Failure
from reconciler.layout.errors import LayoutError
from reconciler.loading.identities import Identities
from reconciler.loading.loader import Loader
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.repository.seed import seed


@dataclass(frozen=True, slots=True)
class Checked:
    """All problems, sorted by file and line, and how many workspaces were looked at."""

    problems: tuple[LayoutError, ...]
    workspaces: int

    def render(self, output: str) -> str:
        """`text`, `json` or `yaml`."""
        if output == "text":
            lines = [str(p) for p in self.problems]
            errors = "no errors" if not lines else f"{len(lines)} error{'s' if len(lines) != 1 else ''}"
            lines.append(f"{errors} in {self.workspaces} workspaces")
            return "\n".join(lines) + "\n"
        found = {"problems": [asdict(p) for p in self.problems], "workspaces": self.workspaces}
        return json.dumps(found, indent=2) + "\n" if output == "json" else yaml.safe_dump(found, sort_keys=False)


def validate_path(path: Path) -> Checked:
    """The files below `path`, whether committed or not."""
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        git_dir = Path(scratch) / "fleet.git"
        try:
            seed(path.resolve(), git_dir, "main")
        except RepositoryError as error:
            raise Failure(str(error)) from error
        return _check(Repository(git_dir), "refs/heads/main", Path(scratch))


def validate_revision(path: Path, revision: str) -> Checked:
    """A commit, branch or tag of the repository at `path`."""
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        try:
            repo = Repository(path.resolve())
        except RepositoryError as error:
            raise Failure(str(error), "--rev needs a git repository", 2) from error
        return _check(repo, revision, Path(scratch))


def _check(repo: Repository, revision: str, scratch: Path) -> Checked:
    commit = repo.resolve(revision)
    if commit is None:
        raise Failure(f"{revision} names no commit of {repo.path}", "give a commit, branch or tag", 2)
    store = open_store(scratch / "store", marked=MARKED, sync=False)
    try:
        loaded = Loader(store, repo, Identities(scratch / "identities"), lambda _: ()).load(commit)
    finally:
        store.close()
    problems = {*loaded.problems, *(p for s in loaded.steps for found in s.held.values() for p in found)}
    return Checked(tuple(sorted(problems)), sum(s.judged for s in loaded.steps))
