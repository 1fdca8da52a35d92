"""A part of a fleet's tree: some workspaces, as if there were no others.

Made by loading.inpart, which judges a part as if it were all. Directories of other workspaces are not opened where it
is known what they are; the ones that only group are, since they may hold a twin of a workspace that is of the part, or
manifests of one.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Protocol

from apiserver.model import paths
from reconciler.layout import ignore
from reconciler.layout.grouping import Grouping
from reconciler.layout.level import Level
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import is_marked, named
from reconciler.repository.objects import Repository, TreeEntry, entry_of


class Part:
    """`top` with all below it ("": nobody); what is above it; and some more, each with what is above it. `around`: of
    this one those right below it as well."""

    def __init__(self, top: str = "", more: Iterable[str] = (), around: str = "") -> None:
        self.top, self.around = top, around
        self._paths = {path for each in (top, *more) if each for path in _with_above(each)}
        names = {paths.base(path) for path in self._paths}
        self.names = frozenset(each.encode("utf-8", "surrogateescape") for name in names for each in _directories(name))
        """Those that the directories of its workspaces have, but for what is below the top."""

    def __contains__(self, path: str) -> bool:
        return path in self._paths or self.is_below(path) or (bool(self.around) and paths.parent(path) == self.around)

    def is_below(self, path: str) -> bool:
        """Whether it is the top, or below it."""
        return bool(self.top) and paths.is_within(path, self.top)

    def and_(self, more: Iterable[str]) -> Part:
        return Part(self.top, (*self._paths, *more), self.around)


def _with_above(path: str) -> Iterator[str]:
    at: str | None = path
    while at is not None:
        yield at
        at = paths.parent(at)


def _directories(name: str) -> tuple[str, ...]:
    """What the directory of a workspace of that name may be called."""
    return name, name.replace("%3A", ":")


class KnownDirectories(Protocol):
    """What is known of directories without opening them."""

    def workspaces(self, directory: str) -> Container[bytes]:
        """The entries of subdirectories that are workspaces, of this very content."""

    def was_workspace(self, directory: str, name: str) -> bool:
        """Whether it was one, whatever it holds by now."""


class Outside:
    """Of the trees that are looked at one after the other. `asked`: paths that were found to matter, and are not of the
    part."""

    def __init__(self, part: Part, known: KnownDirectories) -> None:
        self.part, self.known = part, known
        self.asked: set[str] = set()
        self.members: set[str] = set()
        """Directories of workspaces of the part."""
        self._seen: set[str] = set()
        """Directories of other workspaces that were opened."""

    def leaves_out(self, tree: PartTree, level: Level, directory: str, owner: str, sub: TreeEntry) -> bool:
        """Whether a subdirectory of what belongs to `owner` is another workspace's. One that was another's and is no
        workspace any more is that one's still, or nobody's: it has to be of the part to know."""
        path, place = paths.join(owner, named(sub.name)), f"{directory}/{sub.name}"
        if path in self.part:
            return False
        claimed = tree.claims.get(place)
        if claimed is not None:
            return claimed not in self.part
        if entry_of(sub) in self.known.workspaces(directory):
            return True
        if tree.is_marked(sub.id, place, level.stack):
            self._seen.add(place)
            return True
        if place in self._seen or self.known.was_workspace(directory, sub.name):
            self.asked.add(path)
            return True
        return False


class PartTree(WorkspaceTree):
    """Shows of a tree what belongs to a part, in every way in which it is read."""

    def __init__(
        self, repo: Repository, tree_id: str, claims: Mapping[str, str], grouping: Grouping, outside: Outside
    ) -> None:
        super().__init__(repo, tree_id, claims, grouping)
        self._outside = outside
        self._owners: dict[str, str] = {}
        self._shown: dict[tuple[str, str], Level] = {}
        """What is left of directories that were looked at, by id and place: of wide ones little is."""

    def beside(self, tree_id: str) -> PartTree:
        return PartTree(self.repo, tree_id, {}, self._grouping, self._outside)

    def look(self, tree: str, directory: str, stack: ignore.Stack) -> Level:
        known = self._shown.get((tree, directory))
        if known is not None:
            return known
        if self.grafts is not None and (is_marked(tree) or self.graft_at(directory) is not None):
            return super().look(tree, directory, stack)  # few, and which there are is known with the source alone
        if not (directory == self.root or directory.startswith(f"{self.root}/")):
            return super().look(tree, directory, stack)
        level = self._narrowed(tree, directory, stack)
        owner, members = self._owner(level, directory), self._outside.members
        lost = directory in members and not level.markers and directory != self.root
        if self.boundary(level, directory, "") is not None and owner in self._outside.part:
            members.add(directory)
        if lost or self._outside.part.is_below(owner):
            # Whose the directories below are by now is found out by who compares the trees.
            return super().look(tree, directory, stack)
        left_out = self._outside.leaves_out
        kept = [sub for sub in level.directories if not left_out(self, level, directory, owner, sub)]
        shown = self._shown[tree, directory] = level._replace(directories=kept)
        return shown

    def _narrowed(self, tree: str, directory: str, stack: ignore.Stack) -> Level:
        """Without the subdirectories that are other workspaces', as far as that is known of all of them at once."""
        part = self._outside.part
        if self.claims or part.around:
            return super().look(tree, directory, stack)
        return self.level(
            tree, directory, stack, self.repo.besides(tree, self._outside.known.workspaces(directory), part.names)
        )

    def is_marked(self, tree: str, directory: str, stack: ignore.Stack) -> bool:
        """Whether a directory has a workspace.yaml that counts."""
        return bool(self._markers(tree, directory, stack).markers)

    def _owner(self, level: Level, directory: str) -> str:
        """The path of the workspace that a directory belongs to."""
        above = directory.rpartition("/")[0]
        owner = self._owners.get(above, "") if directory != self.root else ""
        if not owner and directory != self.root:
            found = self._descend(above)
            owner = found.path if found is not None else paths.ROOT
        path = self._owners[directory] = self.boundary(level, directory, owner) or owner
        return path
