"""A repository to think in: it has what another one has, and what is written to it the other never sees.

Called by whoever judges what is in no branch yet: the files of a work tree, a merge that nobody made, a push. It goes
with the directory that it is in.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from reconciler.repository import library
from reconciler.repository.command import GitAnswer, git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree

_MERGES_FROM = (2, 38)
"""The version of git that merges without a work tree."""


def borrow(lender: Repository, directory: Path, also: Collection[Path] = ()) -> Repository:
    """A bare repository in `directory`, without a ref, that has all objects of `lender`. `also`: further directories of
    objects (what a push brings, before it is taken)."""
    directory.mkdir(parents=True)
    library.create(directory, "none")
    alternates = directory / "objects" / "info" / "alternates"
    alternates.parent.mkdir(exist_ok=True)
    places = (lender.git_dir.absolute() / "objects", *(place.absolute() for place in also))
    alternates.write_text("".join(f"{place}\n" for place in places))
    return Repository(directory, lender.folders)


def work_tree(lender: Repository, scratch: Repository, top: Path, parts: Collection[str], when: int) -> str:
    """The commit that the files of a work tree would make on its HEAD, as far as they stand below `parts`; HEAD itself
    where they are what it says. What .gitignore leaves out is left out. Raises RepositoryUnreadable."""
    head = lender.resolve("HEAD")
    if head is None:
        raise RepositoryUnreadable(f"{top} has no commit yet", "git commit, so that there is something to compare with")
    tree = lender.commit(head).tree
    index = scratch.git_dir / "index"
    known = Path(lender.git.path) / "index"
    if known.is_file():
        shutil.copyfile(known, index)  # so that files which did not change are not read
    # The place where git writes is this repository, whose alternates are the other's objects.
    variables = {"GIT_INDEX_FILE": str(index.absolute()), "GIT_OBJECT_DIRECTORY": str(scratch.git_dir / "objects")}
    there = [part for part in parts if (top / part).exists() or lender.entry_at(tree, part) is not None]
    where = ("-C", str(top), f"--work-tree={top}", "-c", "core.hooksPath=/dev/null")

    def run(*arguments: str) -> GitAnswer:
        answer = git(Path(lender.git.path), *where, *arguments, variables=variables)
        if answer.code != 0:
            raise RepositoryUnreadable(f"the files of {top} cannot be read ({answer.error})", "see what git says")
        return answer

    if there:
        run("-c", "advice.addEmbeddedRepo=false", "add", "--all", "--", *there)
    found = run("write-tree").output.strip()
    if found == tree:
        return head
    return commit_tree(scratch, found, [head], "The work tree\n", when)


def merged(scratch: Repository, ours: str, theirs: str, when: int) -> str | None:
    """The commit that merging `theirs` into `ours` makes; None where they conflict, or git is too old to say."""
    if scratch.is_ancestor(ours, theirs):
        return theirs
    if scratch.is_ancestor(theirs, ours):
        return ours
    tree = merged_tree(scratch, ours, theirs).tree
    return commit_tree(scratch, tree, [ours, theirs], "What merging makes\n", when) if tree else None


class MergedTree(NamedTuple):
    """`tree`: its id; "" where there is none. `conflicts`: the files that it takes somebody for."""

    tree: str
    conflicts: Sequence[str] = ()


def merged_tree(repo: Repository, ours: str, theirs: str) -> MergedTree:
    """What merging `theirs` into `ours` makes, written into `repo`. Nothing and no conflicts: git is too old to say."""
    command = ("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
    answer = git(repo.git_dir, *command)
    tree, *conflicts = answer.output.split("\0")
    return MergedTree(tree.strip()) if answer.code == 0 else MergedTree("", [*filter(None, conflicts)])


def merges() -> bool:
    """Whether the installed git can tell what a merge makes."""
    said = git(Path("/"), "version").output.split()
    numbers = tuple(int(part) for part in (said[2].split(".")[:2] if len(said) > 2 else ()) if part.isdigit())
    return numbers >= _MERGES_FROM
