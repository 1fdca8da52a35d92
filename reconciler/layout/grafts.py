"""Workspaces of a tenant's repository as part of the fleet's tree: what that has below the directory which is the
content of a workspace (spec.source) stands, in the tree, below that workspace's own directory.

Used by tree, which asks where it reads a directory; made by loading/grafting. Of a directory that both repositories
have the fleet's counts. Ids of a tenant's directories bear a mark and the name of their repository, so that none is
ever taken for one of the fleet's, nor for one of another tenant's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from apiserver.model.commits import CommitRef
from reconciler.layout import ignore
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.level import WORKSPACE_FILES, Level
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir, marked, unmarked
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository, TreeEntry

OF = "of"
"""In what is recorded of a graft, or of a workspace in it: the logical cluster of the workspace that has the source."""
BORDER = "border"
"""In what is recorded of a workspace in a graft: the path of the source, below which its own directory stands."""


class GraftKey(NamedTuple):
    """What a graft is, so that two can be compared. `theirs`: the directory in the tenant's repository that is the
    workspace's content; `known`: see Graft."""

    commit: CommitRef
    theirs: str
    known: frozenset[str] | None = None


class Graft:
    """Of the workspace that stands in `directory` of the fleet's tree. `said`: what is recorded of it (see
    FleetRecord.grafts). `opened`: gives the tree of the tenant's commit; None where that is not here. Then the key's
    `known` are the directories (as of the fleet's tree) in which workspaces are known to be, of which nothing else
    is."""

    def __init__(
        self, directory: str, key: GraftKey, said: Mapping[str, str], opened: Callable[[], ContentTree] | None
    ) -> None:
        self.directory, self.key, self.said, self._opened = directory, key, said, opened

    @property
    def tree(self) -> ContentTree | None:
        return self._opened() if self._opened is not None else None

    @cached_property
    def top(self) -> str:
        """The id of the directory that is the content, "" where there is none."""
        tree = self.tree
        if tree is None:
            return self._unknown(self.directory) if self.key.known else ""
        found = tree.repo.tree_at(tree.tree_id, self.key.theirs)
        return marked(self.key.commit.repository, found) if found is not None else ""

    def real(self, directory: str) -> str:
        """Where a directory of the fleet's tree stands in the tenant's repository."""
        below = directory[len(self.directory) + 1 :]
        return joined(self.key.theirs, below) if below else self.key.theirs

    def stack(self, directory: str) -> ignore.Stack:
        """The ignore rules that hold for what is in a directory: those of the tenant's repository alone."""
        tree = self.tree
        return tree.stack(self.real(directory)) if tree is not None else ()

    def level(self, tree: str, directory: str) -> Level:
        """One directory, as WorkspaceTree.look has it."""
        there, real = self.tree, self.real(directory)
        if there is None:
            return self._level_of_known(tree, directory)
        level = there.look(unmarked(tree), real, there.above(real))
        name = self.key.commit.repository
        return level._replace(tree=tree, directories=[e._replace(id=marked(name, e.id)) for e in level.directories])

    def subdirectory(self, tree: str, directory: str, name: str) -> TreeEntry | None:
        """One that is not ignored."""
        there, real = self.tree, self.real(directory)
        if there is None:
            return next((e for e in self._level_of_known(tree, directory).directories if e.name == name), None)
        found = there.repo.pick(unmarked(tree), (name,)).get(name)
        if found is None or found.kind != "tree":
            return None
        if ignore.ignored(there.stack(real), joined(real, name), directory=True):
            return None
        return found._replace(id=marked(self.key.commit.repository, found.id))

    def files(self, place: WorkspaceDir) -> Iterator[tuple[str, TreeEntry]]:
        """A workspace's own files, by their paths in the tenant's repository."""
        there = self.tree
        found = there.content(place.path, place.theirs) if there is not None else None
        yield from there.files(found) if there is not None and found is not None else ()

    def _level_of_known(self, tree: str, directory: str) -> Level:
        known, inside = self.key.known or frozenset(), f"{directory}/"
        names = {each[len(inside) :].partition("/")[0] for each in known if each.startswith(inside)}
        below = [TreeEntry(name, self._unknown(f"{inside}{name}"), "tree") for name in sorted(names)]
        return Level(tree, (), below, [], [TreeEntry(WORKSPACE_FILES[0], "", "blob")] if directory in known else [])

    def _unknown(self, directory: str) -> str:
        return marked(self.key.commit.repository, directory)


class Grafts:
    """All of a fleet, by the directories of their workspaces. `counts`: whether one does, by the workspace.yaml that
    stands in that directory in the tree which is looked at: it still says that there is a source."""

    def __init__(
        self, found: Mapping[str, Graft], counts: Callable[[Repository, str, TreeEntry], bool] = lambda *_: True
    ) -> None:
        self.by_directory, self._counts = found, counts
        self.keys: Mapping[str, GraftKey] = {directory: graft.key for directory, graft in found.items()}
        self.digest = frozenset(self.keys.items())
        self._clusters = {graft.said.get(OF, ""): graft for graft in found.values()}

    def at(self, tree: WorkspaceTree, directory: str) -> Graft | None:
        """That of the workspace in a directory, where the tree has one there."""
        graft = self.by_directory.get(directory)
        found = tree.repo.tree_at(tree.tree_id, directory) if graft is not None and graft.top else None
        if graft is None or found is None:
            return None
        markers = tree.repo.pick(found, WORKSPACE_FILES)
        manifest = next((markers[name] for name in WORKSPACE_FILES if name in markers), None)
        if manifest is None or manifest.kind == "tree":
            return None
        return graft if self._counts(tree.repo, f"{directory}/{manifest.name}", manifest) else None

    def differing(self, other: Grafts) -> frozenset[str]:
        """The directories of those that are not the same."""
        if self is other or self.digest == other.digest:
            return frozenset()
        both = self.keys.keys() | other.keys.keys()
        return frozenset(each for each in both if self.keys.get(each) != other.keys.get(each))

    def with_(self, graft: Graft) -> Grafts:
        return Grafts({**self.by_directory, graft.directory: graft}, self._counts)

    def of(self, cluster: str) -> Graft | None:
        """That of the workspace with this logical cluster."""
        return self._clusters.get(cluster)


NO_GRAFTS = Grafts(MappingProxyType({}))
