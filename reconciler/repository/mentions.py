"""Which files of a commit hold certain names, found by git itself, which reads a hundred thousand in a second or two.

Called by whoever has to know who names something, where no store says it.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from reconciler.repository.command import Patience, git
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository

_BOUND = "(^|[^a-zA-Z0-9:._-])%s($|[^a-zA-Z0-9:._-])"
_PATIENCE = Patience(total=600)
_NONE = 1
"""What git grep ends with where nothing is found."""


def mentions(repo: Repository, tree: str, directory: str, names: Collection[str]) -> list[str]:
    """The files below a directory of a tree that hold one of the names as a whole: not as a part of a longer name, nor
    of a path that goes on."""
    if not names or repo.tree_at(tree, directory) is None:
        return []
    patterns = [part for name in sorted(names) for part in ("-e", _BOUND % re.escape(name).replace(r"\-", "-"))]
    answer = git(
        repo.git_dir,
        *("grep", "--files-with-matches", "--extended-regexp", "--null", "--full-name", "--text"),
        *(*patterns, tree, "--", directory),
        patience=_PATIENCE,
    )
    if answer.code not in (0, _NONE):
        raise RepositoryUnreadable(f"{repo.path} cannot be searched ({answer.error})", "see what git says")
    start = len(tree) + 1
    return [found[start:] for found in answer.output.split("\0") if found]
