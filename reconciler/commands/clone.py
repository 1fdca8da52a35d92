"""The clone that somebody is in: for commands that work without a server."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from reconciler.commands import fleetfolder
from reconciler.commands.failure import Failure
from reconciler.layout.tree import ROOT
from reconciler.repository.command import git
from reconciler.repository.errors import RepositoryError
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository


def top_of(directory: Path) -> Path | None:
    """Of the work tree that a directory is in, None for one that is in none."""
    here = directory.absolute()
    return next((above for above in (here, *here.parents) if (above / ".git").exists()), None)


def clone_of(directory: Path, folder: str = "") -> tuple[Path, Repository]:
    """The top of the work tree that a directory is in, and its repository. `folder`: see `opened`. Raises
    RepositoryError."""
    top = top_of(directory)
    if top is None:
        raise Failure(f"{directory} is in no clone", "go to a clone of the fleet's repository, or name one", 2)
    repo = Repository(top)
    fleetfolder.settle(repo, top, directory.absolute(), folder)
    return top, repo


def opened(directory: Path, folder: str = "") -> tuple[Repository, Path | None]:
    """The repository that a directory is in, or is, and the top of its work tree, None where it has none. `folder`: of
    the fleet, "": as fleetfolder finds it."""
    try:
        if (directory / "HEAD").is_file() and (directory / "objects").is_dir():
            repo = Repository(directory)
            fleetfolder.settle(repo, None, directory, folder)
            return repo, None
        top, repo = clone_of(directory, folder)
    except RepositoryError as error:
        raise Failure(str(error), code=2) from error
    return repo, top


class WorkTree(NamedTuple):
    """Of a clone; `top` is where it begins."""

    top: Path
    repo: Repository

    def named(self, directory: Path) -> str:
        """A directory, as the repository names it."""
        try:
            return directory.absolute().relative_to(self.top).as_posix()
        except ValueError:
            raise Failure(f"{directory} is not in {self.top}", "name a directory of this clone", 2) from None

    def place(self, directory: Path) -> str:
        """The same of one that can be that of a workspace and move."""
        found = self.named(directory)
        root = joined(self.repo.folders[0], ROOT)
        if not found.startswith(f"{root}/"):
            raise Failure(f"{found} is no workspace: those that move stand below {root}/", "", 2)
        return found

    def require_committed(self, place: str) -> None:
        """That a file, or all in a directory, is what a commit says."""
        if self.run("status", "--porcelain", "--", place).strip():
            raise Failure(f"{place} has changes that are in no commit", "commit them first, or take them back", 2)

    def commit(self, revision: str) -> str:
        """The commit that a revision of this clone names."""
        hint = "give a commit, branch or tag that is here; or fetch it: git fetch"
        if revision.startswith("-"):
            raise Failure(f"{revision} names no commit", hint, 2)
        found = self.repo.resolve(revision)
        if found is not None:
            return found
        try:
            self.run("rev-parse", "--verify", f"{revision}^{{commit}}")
        except Failure as error:
            raise Failure(f"{revision} names no commit, or several: {error.message}", hint, 2) from error
        raise Failure(f"{revision} names no commit", hint, 2)

    def run(self, *arguments: str, given: bytes = b"") -> str:
        """What git says. `given`: what it reads. Paths are taken as they are, and are no patterns."""
        literal = {"GIT_LITERAL_PATHSPECS": "1"}
        answer = git(self.repo.git_dir.absolute(), "-C", str(self.top), *arguments, given=given, variables=literal)
        if answer.code != 0:
            raise Failure(f"git {arguments[0]}: {answer.error or answer.output}", "", 2)
        return answer.output
