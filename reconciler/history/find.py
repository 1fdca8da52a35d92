"""The workspace and the object that somebody names, in one commit; or the nearest names to it.

Called by the commands and by trace. Costs a look at one workspace's files, or at the names beside it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from itertools import islice

from apiserver.model import paths
from reconciler.history.blame import DeclaredAt
from reconciler.history.fleet import FleetHistory
from reconciler.history.kinds import AskedObjects, DeclaredId, is_called
from reconciler.history.result import NotFound
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.objects import CommitInfo
from reconciler.review.revisions import BadRange

_MOST = 100_000
"""Names among which the nearest are looked for."""
_SHOWN = 3
_WORKSPACE = ("tenancy.kcp.io", "Workspace")


def place_of(tree: WorkspaceTree, asked: str) -> WorkspaceDir:
    """Of a workspace's path (`root:shop`) or directory (`workspaces/root/shop`). Raises NotFound."""
    found = tree.find(asked, usual(tree, asked)) if paths.is_path(asked) else tree.owner(f"{asked.rstrip('/')}/x")
    if found is None:
        raise NotFound(f"there is no workspace {asked}", _nearest(asked, _beside(tree, asked)))
    return found


def directory_of(tree: WorkspaceTree, asked: str) -> str:
    """The same, also of one that is gone: where it would be."""
    try:
        return place_of(tree, asked).directory
    except NotFound:
        return usual(tree, asked) if paths.is_path(asked) else asked.rstrip("/")


def nothing_there(tree: WorkspaceTree, asked: str) -> NotFound:
    return NotFound(f"no commit has a workspace {asked}", _nearest(asked, _beside(tree, asked)))


def object_in(history: FleetHistory, commit: CommitInfo, place: WorkspaceDir, asked: AskedObjects) -> DeclaredAt:
    """The one object that is asked about. Raises NotFound, and BadRange where it may be several."""
    tree = history.tree(commit.tree)
    if is_called(asked.kind, *_WORKSPACE):
        return _workspace(history, commit, place, asked)
    named = history.sources.of(tree, place).mentioning(asked.name.encode())
    found = {DeclaredId.of(each): each for each in named if asked.takes(DeclaredId.of(each))}
    if len(found) > 1:
        several = ", ".join(f"{key.told(place.path)} ({each.place})" for key, each in islice(found.items(), 5))
        raise BadRange(f"{asked} is several objects of {place.path}: {several}", "give -n, or the kind with its group")
    if not found:
        text = f"no file of {place.path} declares {asked}"
        raise NotFound(text, _nearest(asked.name, _names(history, tree, place, asked)))
    return DeclaredAt(commit, place, next(iter(found.values())))


def declared(history: FleetHistory, tree: WorkspaceTree, place: WorkspaceDir, key: DeclaredId) -> Manifest | None:
    found = history.sources.of(tree, place).mentioning(key.name.encode())
    return next((each for each in found if DeclaredId.of(each) == key), None)


def _workspace(history: FleetHistory, commit: CommitInfo, place: WorkspaceDir, asked: AskedObjects) -> DeclaredAt:
    """A Workspace is its parent's object, in a file of its own directory."""
    tree = history.tree(commit.tree)
    child = place_of(tree, paths.join(place.path, asked.name))
    piece = history.sources.workspace(tree, child)
    if piece is None or not piece.manifests:
        raise NotFound(f"{child.manifest_path} cannot be read, or is not there")
    return DeclaredAt(commit, child, piece.manifests[0])


def _names(history: FleetHistory, tree: WorkspaceTree, place: WorkspaceDir, asked: AskedObjects) -> Iterable[str]:
    anything = asked._replace(name="")
    for piece in history.sources.of(tree, place).pieces():
        for each in piece.manifests:
            if anything.takes(DeclaredId.of(each)):
                yield each.name


def _beside(tree: WorkspaceTree, asked: str) -> Iterable[str]:
    """Workspaces that stand where it would."""
    directory = usual(tree, asked) if paths.is_path(asked) else asked.rstrip("/")
    above = directory.rpartition("/")[0]
    while above and tree.repo.tree_at(tree.tree_id, above) is None:
        above = above.rpartition("/")[0]
    top = tree.repo.tree_at(tree.tree_id, above) if above.startswith(tree.root) else None
    for entry in islice(tree.repo.entries(top), _MOST) if top is not None else ():
        if entry.kind == "tree":
            beside = f"{above}/{entry.name}"
            yield beside.removeprefix(f"{tree.top}/").replace("/", ":") if paths.is_path(asked) else beside


def _nearest(asked: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(asked, dict.fromkeys(islice(names, _MOST)), _SHOWN)
    return f"near it: {', '.join(near)}" if near else ""


def usual(tree: WorkspaceTree, path: str) -> str:
    """Where a workspace stands whose directories only are workspaces."""
    return f"{tree.top}/{path.replace(':', '/')}"
