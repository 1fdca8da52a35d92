"""Some workspaces of a fleet, judged as the whole fleet would judge them, at the cost of the part.

Called by `treeplane validate` and review. What a verdict follows from is the workspace's own content, what is recorded
of it, and what other workspaces say that it asks: those above it, providers, types. So a load of the part alone finds
it, once all who are asked are of the part: a load tells whom it missed, and is made again with those. Where a verdict
follows from everybody (whether anyone holds objects of an export that goes, how many workspaces a commit removes),
nothing less than the whole says it, and `Everybody` is raised; but for one who finds out by himself whom it concerns.

A commit that is held as a whole for its weight is not noticed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from apiserver.model import paths
from apiserver.model.tables import Table
from apiserver.registry.indexes import FINALIZERS, PLACED
from apiserver.storage.declared import Index, IndexEntry
from apiserver.storage.protocol import Page, Row, Store
from reconciler.layout.grouping import Grouping
from reconciler.layout.part import Outside, Part, PartTree
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.changeset import ChangeSet, together
from reconciler.loading.loader import Loaded
from reconciler.loading.trees import Trees
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories
from reconciler.statusbranch.recorded import RecordedFleet

_OF_ONE = (FINALIZERS, PLACED)
"""Indexes that a load asks about one workspace, or tells apart."""
_ROUNDS = 100
"""Loads after which whoever is asked still has somebody to ask: then all are."""

LoadPart = Callable[[Trees, "Heard"], Loaded]
"""Loads into an empty store, as what was heard shows it, and reads these trees."""


class Everybody(Exception):
    """A part cannot tell."""


Further = Callable[["Heard", ChangeSet], Iterable[str]]
"""After a load: the workspaces that it concerns besides those whom it asked for. Raises Everybody."""


def judged(
    repositories: Repositories,
    recorded: RecordedFleet | None,
    part: Part,
    load: LoadPart,
    further: Further | None = None,
) -> Loaded:
    """A load of a part, and of whoever that needs. `recorded`: what the load begins from, if anything. `further`: None
    where nobody knows whom it concerns. Raises Everybody."""
    if recorded is not None and recorded.facts().kept:
        raise Everybody
    known, further = _Recorded(repositories, recorded), further or _nobody
    for _ in range(_ROUNDS):
        outside, heard = Outside(part, known), Heard()
        loaded = load(PartTrees(repositories, outside), heard)
        asked = outside.asked | heard.paths | {*further(heard, together(loaded.steps))}
        more = {path for path in asked if path not in part and paths.is_path(path)}
        if not more:
            return loaded
        part = part.and_(more)
    raise Everybody


def _nobody(heard: Heard, found: ChangeSet) -> Iterable[str]:
    if heard.objects or heard.placed or found.deleted or found.kept:
        raise Everybody
    return ()


def below(top: str, loaded: Loaded) -> ChangeSet:
    """What became of the workspace at `top` and of those below it."""
    found, part, out = together(loaded.steps), Part(top), ChangeSet()
    out.became = {path: change for path, change in found.became.items() if part.is_below(path)}
    out.held = {path: why for path, why in found.held.items() if part.is_below(path)}
    out.refused = {path: why for path, why in found.refused.items() if part.is_below(path)}
    out.locked = {path: said for path, said in found.locked.items() if part.is_below(path)}
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
        self._known: dict[str, tuple[Mapping[bytes, bool], frozenset[bytes]]] = {}

    def workspaces(self, directory: str) -> frozenset[bytes]:
        return self._in(directory)[1]

    def was_workspace(self, directory: str, name: str) -> bool:
        return name.encode("utf-8", "surrogateescape") in self._in(directory)[0]

    def _in(self, directory: str) -> tuple[Mapping[bytes, bool], frozenset[bytes]]:
        """The names of workspaces in a directory as recorded, and the entries of the tree that these were. What stands
        where one was that is held may be something else."""
        if directory not in self._known:
            tree = self._repo.tree_at(self._tree, directory) if self._recorded is not None else None
            names = self._recorded.workspaces_in(directory) if self._recorded is not None and tree else {}
            subs = self._repo.subtrees(tree) if tree and names else ()
            entries = frozenset(entry for entry, name, _ in subs if names.get(name) is False)
            self._known[directory] = names, entries
        return self._known[directory]


class Heard:
    """What a load asked for, by what it read of its store. `paths`: workspaces; `providers`: those whose consumers it
    looked for; `followers`: whether it looked for those of a type; `held`: for those that are held; `objects`: for
    whoever has some of a kind; `placed`: for what runs on a sync target."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.forget_others()

    def forget_others(self) -> None:
        """What was asked about nobody in particular does not matter so far."""
        self.providers: set[str] = set()
        self.followers = self.held = self.objects = self.placed = False

    def in_(self, store: Store) -> Store:
        return cast(Store, _Listening(store, self))


class _Listening:
    """A store that tells."""

    def __init__(self, store: Store, heard: Heard) -> None:
        self._store, self._heard = store, heard

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def get_row(self, table: Table, row: str) -> bytes | None:
        if table == Table.WORKSPACES:
            self._heard.paths.add(row)
        return self._store.get_row(table, row)

    def scan_rows(self, table: Table, prefix: str = "", **options: Any) -> list[Row]:
        if table == Table.CONSUMERS:
            self._heard.providers.add(prefix.partition("\0")[0])
        self._heard.followers |= table == Table.WORKSPACES and not prefix
        self._heard.held |= table == Table.HELD
        return self._store.scan_rows(table, prefix, **options)

    def scan(self, resource: str, cluster: str | None = None, *args: Any, **options: Any) -> Page:
        self._heard.objects |= cluster is None and not resource.startswith("~")
        return self._store.scan(resource, cluster, *args, **options)

    def indexed(self, index: Index, *args: Any, **options: Any) -> list[IndexEntry]:
        self._heard.placed |= index == PLACED
        self._heard.objects |= index not in _OF_ONE
        return self._store.indexed(index, *args, **options)
