"""Which subdirectories are no workspaces by themselves, and which of those hold nothing but workspaces: found out once,
and remembered from one commit's tree to the next.

Called by tree. Beside a directory's thousands of workspaces only these few can hold something of the directory's own
workspace, or a workspace that is searched for. To tell them from workspaces each has to be opened: that happens once,
and later for those alone whose ids are others.

What is remembered of a directory follows from its tree, from where it stands and from the ignore rules above. It does
not follow from claims: a workspace by claim alone is opened each time.
"""

from __future__ import annotations

from sys import getsizeof
from typing import NamedTuple

from apiserver.model.remembered import Remembered
from reconciler.layout import ignore
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository, TreeEntry

_MOST = 8 * 1024 * 1024
"""Bytes in memory: some eight thousand directories, however many workspaces stand in each. What was not asked for for
the longest time goes first, and is found out again."""
_EACH = 1024
"""Bytes of one beside its names."""

_Rules = tuple[tuple[str, str], ...]
_NONE: frozenset[str] = frozenset()


class Subdirectories(NamedTuple):
    """Of one directory. `groups`: the names of those without a workspace.yaml of their own; `foreign`: those of them
    that are known to hold nothing of the workspace that they stand in, by nobody's claim; `unknown`: those that are to
    be opened to know."""

    groups: frozenset[str]
    foreign: frozenset[str]
    unknown: list[TreeEntry]


class _Known(NamedTuple):
    tree: str
    rules: _Rules
    groups: frozenset[str]
    foreign: frozenset[str]


class Grouping:
    """Of one repository. Safe from several threads."""

    def __init__(self, repo: Repository, most: int = _MOST) -> None:
        """`most`: bytes in memory of what is remembered."""
        self._repo = repo
        self._known: Remembered[str, _Known] = Remembered(most)

    def aside(self, repo: Repository) -> Grouping:
        """What is known, for who reads trees of `repo` that may never be anybody's."""
        out = Grouping(repo)
        out._known = self._known.copy()
        return out

    def look(self, directory: str, tree: str, stack: ignore.Stack, there: list[TreeEntry]) -> Subdirectories:
        """What is known of `there`, the subdirectories of a directory; `stack`: the rules for what is in it."""
        known = self._known.get(directory)
        if known is None or known.rules != _rules(stack):
            return Subdirectories(_NONE, _NONE, there)
        if known.tree == tree:
            return Subdirectories(known.groups, known.foreign, [])
        try:
            before = {entry.name: entry.id for entry in self._repo.entries(known.tree) if entry.kind == "tree"}
        except RepositoryUnreadable:
            return Subdirectories(_NONE, _NONE, there)  # of a commit that is gone from the repository
        same = {entry.name for entry in there}
        same.difference_update(entry.name for entry in there if before.get(entry.name) != entry.id)
        unknown = [entry for entry in there if entry.name not in same]
        return Subdirectories(known.groups & same, known.foreign & same, unknown)

    def note(self, directory: str, tree: str, stack: ignore.Stack, found: Subdirectories, count: int) -> None:
        """What was found out of a directory with `count` subdirectories, none of them unknown. It is kept where some of
        them need not be opened again."""
        if len(found.groups) == count and not found.foreign:
            return
        foreign = found.groups if found.foreign == found.groups else found.foreign
        size = _EACH + getsizeof(directory) + getsizeof(foreign) + sum(map(getsizeof, found.groups))
        size += getsizeof(found.groups) if foreign is not found.groups else 0
        self._known.put(directory, _Known(tree, _rules(stack), found.groups, foreign), size)


def _rules(stack: ignore.Stack) -> _Rules:
    return tuple((rules.directory, rules.id) for rules in stack)
