"""Makes a repository of a plain directory, once; from then on the repository is the truth and the directory a copy.

Called by `treeplane up` for a directory that is not a repository itself.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from reconciler.repository import library
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.repository.write import Batch, Blob, commit_tree, plan_tree

_RECORD = "treeplane.seed"


def seed(
    directory: Path,
    git_dir: Path,
    branch: str,
    leave_out: Sequence[Path] = (),
    sign: library.Sign | None = None,
    folder: str = "",
) -> str:
    """Creates the bare repository `git_dir` with one commit of the directory's files on `branch`; returns its id.
    `sign`: None leaves it unsigned. `folder`: of the repository, in which they are put.

    Everything below the directory is taken but `.git`, `leave_out` and the data directory that `git_dir` lies in.
    Raises RepositoryUnreadable when there is nothing to take, or a file cannot be read. All or nothing: a repository
    that is there is whole.
    """
    batch = Batch()
    tree = _tree(directory, git_dir, leave_out, batch, folder)
    if len(batch.objects) < 2:
        raise RepositoryUnreadable(f"{directory} holds no files", "begin with: treeplane init <directory>")
    unfinished = git_dir.with_name(git_dir.name + ".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True, mode=0o700)
    library.create(unfinished, branch)
    repo = Repository(unfinished)
    batch.write(repo)
    ref = f"refs/heads/{branch}"
    message = f"Take over the files of {directory.resolve().name}\n"
    commit = commit_tree(repo, tree, [], message, None, ref, None, sign)
    repo.git.config[_RECORD] = tree
    unfinished.rename(git_dir)
    return commit


def moved_on(directory: Path, git_dir: Path, branch: str, leave_out: Sequence[Path] = ()) -> bool:
    """Whether the directory now holds something that neither was seeded from it nor is the branch's content."""
    repo = Repository(git_dir)
    now = _tree(directory, git_dir, leave_out, Batch())
    config = repo.git.config
    if _RECORD in config and config[_RECORD] == now:
        return False
    head = repo.ref(f"refs/heads/{branch}")
    return head is None or repo.commit(head).tree != now


def _tree(directory: Path, git_dir: Path, leave_out: Sequence[Path], batch: Batch, folder: str = "") -> str:
    skipped = {path.resolve() for path in (*leave_out, git_dir)}
    data_dir = git_dir.parent.parent if git_dir.parent.name == "repo" else git_dir
    if data_dir.resolve() == directory.resolve():
        raise RepositoryUnreadable(
            f"{directory} is the data directory and the directory to serve", "choose another with --data-dir"
        )
    skipped.add(data_dir.resolve())
    files: dict[str, bytes | Blob | None] = {}
    try:
        for path, name in _files(directory, skipped):
            files[joined(folder, name)] = _blob(path, batch)
    except OSError as error:
        raise RepositoryUnreadable(f"{directory} cannot be read ({error})", "check its permissions") from error
    return plan_tree(None, None, files, batch)


def _files(directory: Path, skipped: set[Path]) -> Iterator[tuple[Path, str]]:
    def give_up(error: OSError) -> None:
        raise error

    for at, names, files in os.walk(directory, onerror=give_up):
        here = Path(at)
        links = [name for name in names if (here / name).is_symlink()]
        names[:] = sorted(n for n in names if n != ".git" and n not in links and (here / n).resolve() not in skipped)
        for name in sorted(files + links):
            path = here / name
            if name != ".git" and (path.is_symlink() or path.is_file()) and path.resolve() not in skipped:
                yield path, path.relative_to(directory).as_posix()


def _blob(path: Path, batch: Batch) -> Blob:
    if path.is_symlink():
        return Blob(batch.add(3, os.fsencode(path.readlink())), b"120000")
    executable = path.stat().st_mode & 0o100
    return Blob(batch.add(3, path.read_bytes()), b"100755" if executable else b"100644")
