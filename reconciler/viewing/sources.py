"""Where revisions are looked up: the fleet's repository, on this machine or at its URL.

Called by filling, in a process that lives for one question. What it reads is a repository of its own that borrows from
the mirror, so that nothing which somebody asked for gets into what is served from.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from reconciler.repository.access import NO_ACCESS, RemoteAccess
from reconciler.repository.borrowed import borrow
from reconciler.repository.command import git
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.repository.remote import Remote
from reconciler.repository.source import is_git_dir, kind_of_source
from reconciler.viewing.revisions import commit_of, is_whole_id

_TRACKED = "refs/remotes/origin/"
_HEADS = "refs/heads/"


def beside(mirror: Path, directory: Path) -> Repository:
    """The repository that commits are read from; it is made where it is not there. Raises RepositoryUnreadable where
    nothing has been read from the source yet."""
    return Repository(directory) if is_git_dir(directory) else borrow(Repository(mirror), directory)


class RevisionSource:
    """`source`: a path or URL, as the mirror has it; `access`: to a URL; `repo`: see `beside`."""

    def __init__(self, repo: Repository, source: str, access: RemoteAccess = NO_ACCESS) -> None:
        self._repo, self._source = repo, source
        self._remote = Remote(repo, source, access=access) if kind_of_source(source) == "url" else None

    def commit(self, rev: str) -> str:
        """The id of the commit that is meant, whose objects are here then. Raises StatusError and RepositoryError."""
        whole = self._ids(rev) if is_whole_id(rev) else []
        found = whole[0] if whole else commit_of(rev, self._named, self._ids)
        if not self._repo.has(found) and self._remote is not None:
            self._remote.bring(found)
        self._repo.commit(found)  # it is there
        return found

    def _named(self, refs: Iterable[str]) -> dict[str, str]:
        if self._remote is not None:
            return self._remote.named(refs)
        there, found = Repository(self._source), dict[str, str]()
        for ref in refs:
            tracked = ref.replace(_HEADS, _TRACKED, 1) if ref.startswith(_HEADS) else ""
            commit = next((each for name in (ref, tracked) if name and (each := _peeled(there, name))), None)
            if commit is not None:
                found[ref] = commit
        return found

    def _ids(self, start: str) -> list[str]:
        """Commits whose ids begin so; one that only the source has counts where all of its id is given."""
        answer = git(self._repo.git_dir, "rev-parse", f"--disambiguate={start}")
        ids = [line for line in answer.output.splitlines() if self._repo.resolve(line) == line]
        if not ids and is_whole_id(start) and self._remote is not None:
            with contextlib.suppress(RepositoryError):
                ids = [start] if self._remote.bring(start) else []
        return ids


def _peeled(repo: Repository, ref: str) -> str | None:
    """The commit that a ref leads to, which may be a tag's."""
    return repo.resolve(ref) if repo.ref(ref) is not None else None
