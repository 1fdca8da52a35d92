"""The refs of one source's repository: where the followed branch stands, and what stays besides.

    refs/treeplane/source/<branch>      its head, which was found whole
    refs/treeplane/keep/<id>            what loading has served, or the branch has left within the last hour

Called by visit.py, of one thread at a time for a repository. What no ref holds stays until room is wanted
(`make_room`): nothing else removes objects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from reconciler.repository.command import Patience, git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.write import move_ref

TRACKED, KEPT = "refs/treeplane/source/", "refs/treeplane/keep/"
_ASKED = 1024
"""How far back a server is told what there is here."""


class SourceRefs:
    def __init__(self, repository: Repository) -> None:
        self.repository = repository

    def head(self, branch: str) -> str:
        """ "" where there is none, or its objects are gone."""
        found = self.repository.ref(TRACKED + branch)
        return found if found is not None and _there(self.repository, found) else ""

    def names(self, prefix: str) -> list[str]:
        """In full."""
        return [name for name in self.repository.references if name.startswith(prefix)]

    def move(self, branch: str, commit: str) -> set[str]:
        """Makes `commit` the branch's head; what is left so and kept, that is, not contained in it. Raises
        RepositoryError."""
        ref, left = TRACKED + branch, set[str]()
        tracked = {name: self.repository.ref(name) or "" for name in self.names(TRACKED)}
        for before in tracked.values():
            if not self.repository.is_ancestor(before, commit):
                left.add(before)
        self.keep(left)
        for other in tracked.keys() - {ref}:  # followed no more, and its name may be a directory of the new one's
            move_ref(self.repository, other, None, tracked[other])
        move_ref(self.repository, ref, commit, tracked.get(ref))
        return left

    def keep(self, commits: Collection[str]) -> None:
        """Those of them that are here. Raises RepositoryError."""
        for commit in commits:
            if self.repository.ref(KEPT + commit) is None and _there(self.repository, commit):
                move_ref(self.repository, KEPT + commit, commit, None)

    def kept(self) -> set[str]:
        return {name.removeprefix(KEPT) for name in self.names(KEPT)}

    def let_go(self, commits: Collection[str]) -> None:
        """Raises RepositoryError."""
        for commit in commits:
            move_ref(self.repository, KEPT + commit, None, self.repository.ref(KEPT + commit))

    def mend(self) -> None:
        """Drops refs whose objects are gone: git would check nothing while there are any. Raises RepositoryError."""
        for name in self.names("refs/"):
            found = self.repository.ref(name)
            if found is not None and not _there(self.repository, found):
                move_ref(self.repository, name, None, found)

    def held(self) -> list[str]:
        """What a server is told is here: heads, and commits further and further behind them, so that a branch which was
        rewritten is met where it was left."""
        found = dict[str, None]()
        for name in (*self.names(TRACKED), *self.names(KEPT)):
            head = self.repository.ref(name)
            if head is not None:
                found |= dict.fromkeys(self._behind(head))
        return list(islice(found, 256))

    def make_room(self, patience: Patience, variables: Mapping[str, str]) -> None:
        """Drops whatever no ref leads to. Raises RepositoryUnreadable."""
        settings = {"pack.threads": "1", "pack.windowMemory": "64m", "repack.writeBitmaps": "false"}
        arguments = ("repack", "-a", "-d", "-q", "--no-write-bitmap-index")
        answer = git(self.repository.git_dir, *arguments, settings=settings, variables=variables, patience=patience)
        if answer.code != 0:
            raise RepositoryUnreadable(f"{self.repository.path} cannot be repacked ({answer.error})")
        self.repository.let_go()

    def _behind(self, head: str) -> Iterator[str]:
        following, step = head, 1
        for number in range(_ASKED):
            if number in (0, step):
                step *= 2 if number else 1
                yield following
            parents = self.repository.commit(following).parents
            if not parents:
                return
            following = parents[0]


def _there(repository: Repository, commit: str) -> bool:
    try:
        return repository.has(commit) and repository.has(repository.commit(commit).tree)
    except RepositoryUnreadable:
        return False
