"""From the REPOSITORY that a user names to what is served: a repository, a URL, or a directory that seeds one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from apiserver.endpoints.githooks import install_hooks
from reconciler.commands.failure import Failure
from reconciler.repository.errors import RepositoryError
from reconciler.repository.seed import moved_on, seed
from reconciler.repository.source import kind_of_source

STATUS_BRANCH = "treeplane/status"


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


def _hosted(directory: Path, data_dir: Path, branch: str) -> Source:
    git_dir = data_dir / "repo" / "fleet.git"
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
    install_hooks(git_dir, branch, STATUS_BRANCH)
    return Source(str(git_dir), git_dir, tuple(notes))
