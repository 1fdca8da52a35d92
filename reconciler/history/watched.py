"""What stands at a path in one tree after the other, at the cost of what differs on the way to it.

Called by follow and blame, for each commit of a branch: a step that changes nothing on the way is one look.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.layout import ignore
from reconciler.layout.level import WORKSPACE_FILES
from reconciler.repository.objects import Repository, TreeEntry

_TELLING = (*WORKSPACE_FILES, ignore.FILE)
"""What a directory says of what is in it."""


class _Level(NamedTuple):
    """A directory on the way: its tree, the rules in it, and whether it is a workspace."""

    tree: str
    rules: str
    marked: bool


class SeenAt(NamedTuple):
    """What is at the path in one tree: its id ("" for nothing), and what the directories above say of it. Equal where
    nothing about it differs."""

    id: str
    above: tuple[tuple[str, bool], ...]


class Watched:
    """One path. Trees are looked at in the order of a history: neighbours share most of the way."""

    def __init__(self, repo: Repository, path: str) -> None:
        self._repo, self._parts = repo, path.split("/")
        self._way: list[_Level] = []
        self._end = ""

    def look(self, tree: str) -> SeenAt:
        way: list[_Level] = []
        entry: TreeEntry | None = None
        end, last = "", len(self._parts) - 1
        for number, part in enumerate(self._parts):
            if number < len(self._way) and self._way[number].tree == tree:
                way += self._way[number:]
                end = self._end
                break
            found = self._repo.pick(tree, (part, *_TELLING))
            rules = found.get(ignore.FILE)
            marked = any(name in found for name in WORKSPACE_FILES)
            way.append(_Level(tree, rules.id if rules is not None else "", marked))
            entry = found.get(part)
            if entry is None or (number < last and entry.kind != "tree"):
                break
            tree = entry.id
            end = f"{entry.kind} {tree}" if number == last else ""
        self._way, self._end = way, end
        return SeenAt(end, tuple((level.rules, level.marked) for level in way))
