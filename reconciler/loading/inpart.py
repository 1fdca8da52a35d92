"""One workspace of a fleet, and what is below it, judged as the whole fleet would judge it, at the cost of the part.

Called by `treeplane validate`. What a verdict follows from is the workspace's own content, what is recorded of it, and
what other workspaces say that it asks: those above it, providers, types. So a load of the part alone finds it, once all
who are asked are of the part: a load tells whom it missed, and is made again with those. Where a verdict follows from
everybody (whether anyone holds objects of an export that goes, how many workspaces a commit removes), nothing less
than the whole says it, and `Everybody` is raised.

A commit that is held as a whole for its weight is not noticed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from apiserver.model import paths
from apiserver.model.tables import Table
from apiserver.storage import declared
from apiserver.storage.protocol import Page, Store
from reconciler.layout.grouping import Grouping
from reconciler.layout.part import Outside, Part, PartTree
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.changeset import ChangeSet, together
from reconciler.loading.loader import Loaded
from reconciler.loading.trees import Trees
from reconciler.repository.objects import Repository, TreeEntry
from reconciler.repository.repositories import Repositories
from reconciler.statusbranch.recorded import RecordedFleet

_ROUNDS = 100
"""Loads after which whoever is asked still has somebody to ask: then all are."""

LoadPart = Callable[[Trees, Callable[[Store], Store]], Loaded]
"""Loads into an empty store, which it has to show to the other function first, and reads these trees."""


class Everybody(Exception):
    """A part cannot tell."""


def judged(repositories: Repositories, recorded: RecordedFleet | None, top: str, load: LoadPart) -> Loaded:
    """A load of the workspace at `top`, all below it, and whoever that needs. `recorded`: what the load begins from, if
    anything. Raises Everybody."""
    if recorded is not None and recorded.facts().kept:
        raise Everybody
    known, part = _Recorded(repositories, recorded), Part(top)
    for _ in range(_ROUNDS):
        outside, heard = Outside(part, known), _Heard()
        loaded = load(PartTrees(repositories, outside), heard.in_)
        found = together(loaded.steps)
        if heard.everybody or found.deleted or found.kept:
            raise Everybody
        more = {path for path in outside.asked | heard.paths if path not in part and paths.is_path(path)}
        if not more:
            return loaded
        part = part.and_(more)
    raise Everybody


def below(top: str, loaded: Loaded) -> ChangeSet:
    """What became of the workspace at `top` and of those below it."""
    found, part, out = together(loaded.steps), Part(top), ChangeSet()
    out.became = {path: change for path, change in found.became.items() if part.is_below(path)}
    out.held = {path: why for path, why in found.held.items() if part.is_below(path)}
    out.refused = {path: why for path, why in found.refused.items() if part.is_below(path)}
    return out


class PartTrees(Trees):
    """Trees that show a part."""

    def __init__(self, repositories: Repositories, outside: Outside) -> None:
        super().__init__(repositories)
        self._outside = outside

    def _tree(self, repo: Repository, tree_id: str, claims: Mapping[str, str], grouping: Grouping) -> WorkspaceTree:
        return PartTree(repo, tree_id, claims, grouping, self._outside)


class _Recorded:
    """What the status branch knows of directories: a workspace's folder stands where its directory does."""

    def __init__(self, repositories: Repositories, recorded: RecordedFleet | None) -> None:
        self._recorded = recorded
        self._repo = repositories.own
        self._tree = self._repo.commit(recorded.source.id).tree if recorded is not None else ""
        self._known: dict[str, tuple[frozenset[str], dict[str, str]]] = {}

    def is_workspace(self, directory: str, sub: TreeEntry) -> bool:
        names, ids = self._in(directory)
        return sub.name in names and ids.get(sub.name) == sub.id

    def was_workspace(self, directory: str, name: str) -> bool:
        return name in self._in(directory)[0]

    def _in(self, directory: str) -> tuple[frozenset[str], dict[str, str]]:
        """The names of workspaces in a directory, and the ids of all subdirectories, as recorded."""
        if directory not in self._known:
            tree = self._repo.tree_at(self._tree, directory) if self._recorded is not None else None
            names = self._recorded.workspaces_in(directory) if self._recorded is not None and tree else frozenset[str]()
            ids = {e.name: e.id for e in self._repo.entries(tree)} if tree and names else {}
            self._known[directory] = names, ids
        return self._known[directory]


class _Heard:
    """Which workspaces a load asked for, by what it read of its store."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.everybody = False

    def in_(self, store: Store) -> Store:
        return cast(Store, _Listening(store, self))


class _Listening:
    """A store that tells."""

    def __init__(self, store: Store, heard: _Heard) -> None:
        self._store, self._heard = store, heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get_row(self, table: Table, row: str) -> bytes | None:
        if table == Table.WORKSPACES:
            self._heard.paths.add(row)
        return self._store.get_row(table, row)

    def scan(self, resource: str, cluster: str | None = None, *args: Any, **options: Any) -> Page:
        self._heard.everybody |= cluster is None and not resource.startswith("~")
        return self._store.scan(resource, cluster, *args, **options)

    def indexed(self, *args: Any, **options: Any) -> list[declared.IndexEntry]:
        self._heard.everybody = True
        return self._store.indexed(*args, **options)
