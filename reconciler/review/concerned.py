"""Which workspaces a change concerns: those whose files differ, and whoever takes something of them.

Called by foresight, which judges these and nobody else. Who takes something is found by searching all files for what he
has to name it by, a workspace's path or the name of a type: a text that is found stands for its workspace, which is
judged then. Where that does not tell (types name others by default), everybody is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from reconciler.layout.compare import touched
from reconciler.layout.errors import BadFile
from reconciler.layout.tree import ROOT, WorkspaceTree
from reconciler.layout.yamldoc import parse
from reconciler.loading.changeset import ChangeSet
from reconciler.loading.inpart import Everybody, Heard
from reconciler.repository.difference import difference
from reconciler.repository.mentions import mentions
from reconciler.repository.objects import Repository
from reconciler.statusbranch.format import directory_in_git, workspace_of
from reconciler.statusbranch.recorded import RecordedFleet

_MOST = 20_000
"""Workspaces that name something, from which on it costs no more to judge all."""
_TYPE = b"WorkspaceType"
_SHIPPED = frozenset({"root", "universal", "organization", "team", "home", "kube-compat"})
"""Types that nobody has to name."""


class Offering(NamedTuple):
    """What a load found workspaces to offer. `types`: names of WorkspaceTypes that change; `paths`: workspaces that
    the change touches and that have exports, targets or Locations; `allowed`: hashes of deletions that a commit
    allows."""

    types: Collection[str] = ()
    paths: Collection[str] = ()
    allowed: Collection[str] = ()


class WhomItConcerns:
    """Of the step from one tree to another. `recorded`: what the status branch says of the first, if anything."""

    def __init__(self, repo: Repository, before: WorkspaceTree, after: WorkspaceTree) -> None:
        self._repo, self._before, self._after = repo, before, after
        self._searched: set[str] = set()
        self._found: set[str] = set()

    def touched(self) -> frozenset[str]:
        """The paths of workspaces whose files differ. Raises BadFile where the second tree has no root."""
        stood: dict[str, set[str]] = {}
        for change in difference(self._repo, self._root(self._before), self._root(self._after), ROOT):
            owner = self._before.owner(change.path)
            if owner is not None:
                stood.setdefault(owner.path, set()).add(owner.directory)
        # Of one that stands twice the part finds out, once it is judged.
        found = touched(self._after, self._before, lambda path: sorted(stood.get(path, ())))
        return frozenset(found.changed | found.appeared | found.removed)

    def further(self, heard: Heard, found: ChangeSet, provided: Offering, recorded: RecordedFleet | None) -> set[str]:
        """Whom a load concerns that looked for others (see inpart). Raises Everybody."""
        terms = {*heard.providers, *found.moves, *found.moves.values()}
        if heard.objects or heard.placed or found.deleted:
            terms |= {*provided.paths}
        if heard.followers:
            terms |= {*provided.types}
        if heard.held and recorded is not None:
            self._found.update(self._held(recorded, provided.allowed))
        while terms := {term for term in terms if term} - self._searched:
            terms = self._search(terms)
        if len(self._found) > _MOST:
            raise Everybody
        return self._found

    def _search(self, terms: Collection[str]) -> set[str]:
        """Notes the workspaces that name some of them; what there is to search for then: types that do."""
        if _SHIPPED.intersection(terms):
            raise Everybody  # whoever names no type has one of these
        self._searched |= {*terms}
        tree, types = self._before.tree_id, set[str]()
        for file in mentions(self._repo, tree, ROOT, terms):
            owner, entry = self._before.owner(file), self._repo.entry_at(tree, file)
            if owner is not None and entry is not None:
                types |= _types_in(self._repo.blob(entry.id), file, terms)
                self._found.add(owner.path)
        return types

    def _held(self, recorded: RecordedFleet, hashes: Collection[str]) -> Iterator[str]:
        """Workspaces that are held for a deletion with one of these hashes."""
        for file in mentions(self._repo, recorded.tree, ROOT, hashes):
            owner = self._before.at(directory_in_git(workspace_of(file)))
            if owner is not None:
                yield owner.path

    def _root(self, tree: WorkspaceTree) -> str | None:
        return self._repo.tree_at(tree.tree_id, ROOT)


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
