"""What ships with Treeplane for a workspace, as manifests: in root also what treeplane.yaml has everybody granted.

Called by gather for the commit that is judged and for the one that is served, and by steps to find out whether the two
differ. What treeplane.yaml says counts here with its own commit, as all content does.
"""

from __future__ import annotations

from apiserver.model.origins import SHIPPED
from apiserver.model.paths import ROOT
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import AUTHENTICATED, read_fleet
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.sources import generated
from reconciler.plan import system


def shipped(tree: WorkspaceTree, path: str) -> list[Manifest]:
    """Of the workspace at `path`, in a commit with this tree."""
    return generated(system.manifests(path, root_open=path == ROOT and is_root_open(tree)), SHIPPED)


def is_root_open(tree: WorkspaceTree) -> bool:
    """Whether everybody who is authenticated is granted in root what kcp grants them. One file, read once."""
    try:
        return read_fleet(tree.repo, tree.tree_id).root_access == AUTHENTICATED
    except BadFile:
        return False  # a commit with such a file is held as a whole
