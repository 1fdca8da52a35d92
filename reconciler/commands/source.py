"""From the REPOSITORY that a user names to what is served: a repository, a URL, or a directory that seeds one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from apiserver.endpoints.githooks import install_hooks
from reconciler.commands.failure import Failure
from reconciler.layout.fleet import status_branch
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import SERVED_REF
from reconciler.repository.objects import Repository
from reconciler.repository.seed import moved_on, seed
from reconciler.repository.source import is_git_dir, kind_of_source


@dataclass(frozen=True, slots=True)
class Source:
    """`location`: a path or URL for the mirror; `hosted`: the bare repository that the server itself hosts, if any;
    `notes`: what the user should know."""

    location: str
    hosted: Path | None
    notes: tuple[str, ...] = ()


def resolve(repository: str, data_dir: Path, branch: str) -> Source:
    """Seeds `repo/fleet.git` from a plain directory at the first time, and uses it from then on."""
    try:
        kind = kind_of_source(repository)
    except (RepositoryError, ValueError) as error:
        raise Failure(str(error), "name a git repository, a URL or a directory of manifests", 2) from error
    if kind == "url":
        return Source(repository, None)
    path = Path(repository).resolve()
    if kind == "repository":
        return Source(str(path), None)
    return _hosted(path, data_dir, branch)


def guard(location: str, data_dir: Path, branch: str, status_branch: str) -> None:
    """Keep pushes away from the status branch if the repository is one that the server hosts."""
    git_dir = _git_dir(data_dir)
    if location == str(git_dir):
        install_hooks(git_dir, branch, status_branch)


def _git_dir(data_dir: Path) -> Path:
    return data_dir / "repo" / "fleet.git"


def _hosted(directory: Path, data_dir: Path, branch: str) -> Source:
    git_dir = _git_dir(data_dir)
    notes = []
    if not git_dir.exists():
        git_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            seed(directory, git_dir, branch, [data_dir])
        except RepositoryError as error:
            raise Failure(str(error)) from error
        notes.append(f"created {git_dir} from {directory}: it is the truth from now on (clone it, push to it)")
    elif moved_on(directory, git_dir, branch, [data_dir]):
        notes.append(
            f"serving {git_dir}; {directory} has changed since it was seeded from it: "
            "those changes are not served (commit them in a clone and push)"
        )
    guard(str(git_dir), data_dir, branch, _status_branch(git_dir, data_dir, branch))
    return Source(str(git_dir), git_dir, tuple(notes))


def _status_branch(git_dir: Path, data_dir: Path, branch: str) -> str:
    """As the commit names it that was served last; before there was one, the branch's head."""
    repo, mirror = Repository(git_dir), data_dir / "mirror"
    served = Repository(mirror).ref(SERVED_REF) if is_git_dir(mirror) else None
    return status_branch(repo, served or repo.ref(f"refs/heads/{branch}"))
