"""Which workspaces a change concerns: those whose files differ, and whoever takes something of them.

Called by foresight, which judges these and nobody else, and by viewing/filling. Who takes something is found by
searching all files for what he has to name it by, a workspace's path or the name of a type: a text that is found stands
for its workspace, which is judged then. Where that does not tell (types name others by default), everybody is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from apiserver.model.storagenames import EXPORTS, SYNC_TARGETS
from apiserver.storage.protocol import Store
from reconciler.controllers.locations import LOCATIONS
from reconciler.layout.compare import touched
from reconciler.layout.errors import BadFile
from reconciler.layout.level import WORKSPACE_FILES
from reconciler.layout.tree import ROOT, WorkspaceTree
from reconciler.layout.workspace import declaration
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.layout.yamldoc import parse
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.inpart import Everybody, Heard
from reconciler.plan.system import workspace_types
from reconciler.repository.difference import difference
from reconciler.repository.folder import joined
from reconciler.repository.mentions import mentions
from reconciler.repository.objects import Repository
from reconciler.review.sharers import sharers
from reconciler.statusbranch.format import directory_in_git, workspace_of
from reconciler.statusbranch.recorded import RecordedFleet

_MOST = 20_000
"""Workspaces that name something, from which on it costs no more to judge all."""
_TYPE = b"WorkspaceType"
_TAKING = (b"APIBinding", b"Placement", _TYPE)
"""Kinds that name a workspace to take something of it."""
_PINNING = ("serve", "serve:")
"""How a workspace.yaml says that it is pinned, among others who say so."""
PLACING = (SYNC_TARGETS, LOCATIONS)
OFFERING = (EXPORTS, *PLACING)
"""What others have something of."""
_SHIPPED = frozenset(str(each["metadata"]["name"]) for each in workspace_types())
"""Types that nobody has to name."""


class Offering(NamedTuple):
    """What a load found workspaces to offer. `types`: names of WorkspaceTypes that change; `paths`: workspaces that
    have exports, targets or Locations, or had; `touched`: those whose files differ; `placing`: of these those with
    Locations or targets; `allowed`: hashes of deletions that a commit allows."""

    types: Collection[str] = ()
    paths: Collection[str] = ()
    touched: Collection[str] = ()
    placing: Collection[str] = ()
    allowed: Collection[str] = ()


def offers(store: Store, cluster: str) -> bool:
    """Whether others may have something of a workspace."""
    return any(store.count(each, cluster) for each in OFFERING)


class WhomItConcerns:
    """Of the step from one tree to another. `recorded`: what the status branch says of the first, if anything."""

    def __init__(self, repo: Repository, before: WorkspaceTree, after: WorkspaceTree) -> None:
        self._repo, self._before, self._after = repo, before, after
        self._searched: set[str] = set()
        self._found: set[str] = set()
        self._pinned_found = False

    def touched(self) -> frozenset[str]:
        """The paths of workspaces whose files differ. Raises BadFile where the second tree has no root."""
        stood: dict[str, set[str]] = {}
        for change in difference(self._repo, self._root(self._before), self._root(self._after), self._after.root):
            owner = self._before.owner(change.path)
            if owner is not None:
                stood.setdefault(owner.path, set()).add(owner.directory)
        # Of one that stands twice the part finds out, once it is judged.
        found = touched(self._after, self._before, lambda path: sorted(stood.get(path, ())))
        # What is rendered of what is no manifest: whose that is, is judged.
        fed = {place.path for place in sharers(self._before, self._after)}
        return frozenset(found.changed | found.appeared | found.removed | fed | self._rendering(found.stirred))

    def _rendering(self, stirred: Collection[str]) -> set[str]:
        """Those of some workspaces that have a directory which is rendered."""
        places = ((path, self._before.find(path)) for path in stirred)
        return {path for path, place in places if place is not None and any(self._before.rendered(place))}

    def further(self, heard: Heard, found: ChangeSet, provided: Offering, recorded: RecordedFleet | None) -> set[str]:
        """Whom a load concerns that looked for others (see inpart). Raises Everybody."""
        where = {*found.moves, *found.moves.values(), *(heard.providers & {*provided.paths})}
        if heard.objects or heard.placed or found.deleted:
            where |= {path for path in provided.paths if path in provided.touched}
        where |= {*provided.placing}
        types = {*provided.types} if heard.followers else set[str]()
        if heard.held and recorded is not None:
            self._found.update(held_for(self._repo, recorded, provided.allowed, self._before))
        types |= self._search(where, _TAKING)
        while types - self._searched:
            if _SHIPPED & types:
                raise Everybody  # whoever names no type has one of these
            types = self._search(types, (_TYPE,))
        if where - {""}:
            self._find_pinned()
        if len(self._found) > _MOST:
            raise Everybody
        return self._found

    def _search(self, names: Collection[str], kinds: Collection[bytes]) -> set[str]:
        """Notes the workspaces that name some of these in an object of some kinds, or in what they say of themselves;
        the names of the types that do."""
        new = {name for name in names if name} - self._searched
        self._searched |= new
        tree, types = self._before.tree_id, set[str]()
        for file in mentions(self._repo, tree, self._before.root, new):
            owner, entry = self._before.owner(file), self._repo.entry_at(tree, file)
            if entry is None:
                raise Everybody  # a name that is no text: its workspace is held for it, but nobody can say which
            data = self._repo.blob(entry.id)
            itself = file.rpartition("/")[2] in WORKSPACE_FILES
            if owner is not None and (itself or any(kind in data for kind in kinds)):
                types |= _types_in(data, file, new)
                self._found.add(owner.path)
        return types

    def _find_pinned(self) -> None:
        """Notes the workspaces whose own content is in another commit's files than those that are searched."""
        if not self._pinned_found:
            self._pinned_found = True
            for file in mentions(self._repo, self._before.tree_id, self._before.root, _PINNING):
                owner = self._before.owner(file) if file.rpartition("/")[2] in WORKSPACE_FILES else None
                if owner is not None and self._is_pinned(owner):
                    self._found.add(owner.path)

    def _is_pinned(self, place: WorkspaceDir) -> bool:
        data = self._repo.blob(place.manifest.id) if place.manifest is not None else b""
        try:
            return declaration(data, place.manifest_path).pin is not None
        except BadFile:
            return False

    def _root(self, tree: WorkspaceTree) -> str | None:
        return self._repo.tree_at(tree.tree_id, tree.root)


def held_for(repo: Repository, recorded: RecordedFleet, hashes: Collection[str], here: WorkspaceTree) -> Iterator[str]:
    """Workspaces that are held for a deletion with one of these hashes. `here`: where they stand."""
    for file in mentions(repo, recorded.tree, ROOT, hashes):
        owner = here.at(joined(here.folder, directory_in_git(workspace_of(file))))
        if owner is not None:
            yield owner.path


def _types_in(data: bytes, file: str, terms: Collection[str]) -> set[str]:
    """The names of WorkspaceTypes that a file declares which names one of these."""
    if _TYPE not in data:
        return set()
    try:
        said = [each.value for each in parse(data, file) if each.value.get("kind") == _TYPE.decode()]
        by_default = {((each.get("spec") or {}).get("defaultChildWorkspaceType") or {}).get("name") for each in said}
        names = {str(each["metadata"]["name"]) for each in said}
    except (BadFile, AttributeError, KeyError, TypeError):
        raise Everybody from None
    if by_default.intersection(terms):
        raise Everybody  # whoever is in such a workspace and names no type has that one
    return names
