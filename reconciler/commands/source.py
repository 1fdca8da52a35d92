"""From the REPOSITORY that a user names to what is served: a repository, a URL, or a directory that seeds one."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from urllib.parse import urlsplit

from apiserver.auth.pki import SHARD_ADMIN
from apiserver.auth.user import MASTERS, User
from apiserver.endpoints.githooks import install_hooks
from apiserver.model.hostedrepository import PLACE, URL
from reconciler.commands import fleetfolder
from reconciler.commands.failure import Failure
from reconciler.commands.nofleet import require_whole
from reconciler.layout.fleet import STATUS_BRANCH, status_place
from reconciler.repository import origin
from reconciler.repository.errors import RepositoryError
from reconciler.repository.library import Sign
from reconciler.repository.local import Local
from reconciler.repository.mirror import STATUS_REF
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecords
from reconciler.repository.rehost import behind, rehost
from reconciler.repository.seed import moved_on, seed
from reconciler.repository.source import is_git_dir, kind_of_source
from reconciler.statusbranch.clones import stood_in
from reconciler.statusbranch.naming import Undecided, in_use, served_before


@dataclass(frozen=True, slots=True)
class Source:
    """`location`: a path or URL for the mirror; `hosted`: the bare repository that the server itself hosts, if any;
    `notes`: what the user should know."""

    location: str
    hosted: Path | None
    notes: tuple[str, ...] = ()


def resolve(
    repository: str, data_dir: Path, branch: str, urls: Sequence[str] = (), sign: Sign | None = None, folder: str = ""
) -> Source:
    """Makes `repo/fleet.git` of a plain directory, or of a clone of what was hosted, the first time, and uses it then,
    also where it is named itself. `urls`: the server's own. `sign`: what signs the first commit of a plain directory.
    `folder`: in which the fleet stands."""
    try:
        kind = kind_of_source(repository)
    except (RepositoryError, ValueError) as error:
        raise Failure(str(error), "name a git repository, a URL or a directory of manifests", 2) from error
    if kind == "url":
        return Source(repository, None)
    path = Path(repository).resolve()
    if kind == "repository":
        if path == _git_dir(data_dir).resolve():
            return _served(data_dir, branch, folder, ())
        if _was_hosted(path, urls):
            return _rehosted(path, data_dir, branch, urls, folder)
        with contextlib.suppress(RepositoryError):
            fleetfolder.require(Repository(path), branch, folder)
        return Source(str(path), None)
    return _hosted(path, data_dir, branch, sign, folder)


def check(repository: str, data_dir: Path, folder: str = "") -> None:
    """Raises Failure where `resolve` would make a repository of a directory that is no fleet, before there is a data
    directory; what names nothing is left to it."""
    with contextlib.suppress(RepositoryError, ValueError):
        if repository and kind_of_source(repository) == "directory" and not _git_dir(data_dir).exists():
            require_whole(Path(repository) / folder, "treeplane up")


def _was_hosted(clone: Path, urls: Sequence[str]) -> bool:
    """Whether a repository is a clone of one that a server hosted: at one of these URLs, or where there is none any
    more. One that answers is another server's, and alive."""
    try:
        repo = Repository(clone)
        where = origin.url(repo)
        parts = urlsplit(where)
        if not parts.scheme:
            return where.endswith(f"/{PLACE}") and not Path(where).exists()
        if parts.scheme != "https" or parts.path != URL:
            return False
        if parts.netloc.rpartition("@")[2] in {urlsplit(url).netloc for url in urls}:
            return True
        origin.has_branch(repo, STATUS_BRANCH)
    except RepositoryError:
        return True
    return False


def _rehosted(clone: Path, data_dir: Path, branch: str, urls: Sequence[str], folder: str) -> Source:
    git_dir = _git_dir(data_dir)
    notes = []
    if not git_dir.exists():
        git_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            put_there(git_dir, rehost(clone, git_dir, branch))
        except RepositoryError as error:
            raise Failure(str(error)) from error
        where = f"{urls[0]}{URL}" if urls else URL
        notes.append(
            f"created {git_dir} from {clone}, a clone of what was hosted before: it is the truth from now on, for all "
            f"clones, at {where} (push to it)"
        )
        if origin.url(Repository(clone)) != where:
            notes.append(f"clones come from another address: in each, git remote set-url origin {where}")
    elif behind(clone, git_dir, branch):
        notes.append(f"serving {git_dir}; {clone} has commits that it lacks: those are not served (push them)")
    return _served(data_dir, branch, folder, notes)


def _served(data_dir: Path, branch: str, folder: str, notes: Sequence[str]) -> Source:
    """What is hosted by now."""
    git_dir = _git_dir(data_dir)
    guard(str(git_dir), data_dir, branch, _status_branch(git_dir, data_dir, branch, folder))
    return Source(str(git_dir), git_dir, tuple(notes))


def guard(location: str, data_dir: Path, branch: str, status_branch: str) -> None:
    """Keep pushes away from the status branch if the repository is one that the server hosts."""
    git_dir = _git_dir(data_dir)
    if location == str(git_dir):
        install_hooks(git_dir, branch, status_branch)


def _git_dir(data_dir: Path) -> Path:
    return data_dir / PLACE


def _hosted(directory: Path, data_dir: Path, branch: str, sign: Sign | None, folder: str) -> Source:
    git_dir = _git_dir(data_dir)
    notes = []
    if not git_dir.exists():
        require_whole(directory / folder, "treeplane up")
        git_dir.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            put_there(git_dir, seed(directory, git_dir, branch, [data_dir], sign))
        except RepositoryError as error:
            raise Failure(str(error)) from error
        notes.append(f"created {git_dir} from {directory}: it is the truth from now on (clone it, push to it)")
    elif moved_on(directory, git_dir, branch, [data_dir]):
        notes.append(
            f"serving {git_dir}; {directory}, which it was made of, is only a copy and differs from it: what stands "
            f"there is not served. To push that, in a clone:\n  {_taking(directory, data_dir)}"
        )
    return _served(data_dir, branch, folder, notes)


def _taking(directory: Path, data_dir: Path) -> str:
    """The commands that have a clone take a directory's files, and what is missing there for deleted. They never take
    the data directory, which has the keys."""
    inside = data_dir.resolve().is_relative_to(directory)
    but = f" {quote(f':(exclude,literal){data_dir.resolve().relative_to(directory)}')}" if inside else ""
    message = quote(f"Take the files of {directory.name}")
    return (
        f"git rm -r --quiet . && git --work-tree={quote(str(directory))} add --all -- .{but} && "
        f"git commit -m {message} && git push && git checkout --force"
    )


def put_there(git_dir: Path, head: str) -> None:
    """Notes that nobody pushed what a repository is made with: that is the word of who runs the server."""
    try:
        PushRecords(git_dir).note(head, "", User(SHARD_ADMIN, (MASTERS,)).as_json())
    except OSError as error:
        raise Failure(f"{git_dir} cannot be written: {error}") from error


def _status_branch(git_dir: Path, data_dir: Path, branch: str, folder: str) -> str:
    """Its name, as the commit has it that was served last; where that is not known, see naming. Where that cannot tell,
    nothing is served. One in a repository of its own is not asked here."""
    repo, mirror, served = Repository(git_dir, (folder,)), data_dir / "mirror", ""
    if is_git_dir(mirror):
        before = Repository(mirror)
        stood_in(repo, before.ref(STATUS_REF))
        served = served_before(before)
    head = repo.ref(f"refs/heads/{branch}")
    if served or head is None:
        return status_place(repo, served or None).branch
    with contextlib.suppress(Undecided):
        return in_use(repo, head, branch, Local(str(git_dir))).branch
    return status_place(repo, head).branch
