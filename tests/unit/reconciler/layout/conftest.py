from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pygit2
import pytest

from reconciler.layout.tree import WorkspaceTree
from reconciler.repository.objects import Repository
from reconciler.repository.write import Blob, edit_tree

Changes = Mapping[str, bytes | Blob | None]


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    pygit2.init_repository(str(tmp_path / "fleet.git"), bare=True)
    return Repository(tmp_path / "fleet.git")


@pytest.fixture
def planted(repo: Repository) -> Callable[..., WorkspaceTree]:
    """A tree of files: `planted({"workspaces/root/a.yaml": b""})`, or changes to another: `planted(changes, base)`.

    With a base the claims go over, as the loader hands them on.
    """

    def plant(changes: Changes, base: WorkspaceTree | None = None) -> WorkspaceTree:
        tree = edit_tree(repo, base.tree_id if base else None, changes)
        return WorkspaceTree(repo, tree, base.claims if base else None)

    return plant
