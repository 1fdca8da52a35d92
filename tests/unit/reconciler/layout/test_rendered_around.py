"""Which directory around a file is rendered: found on the way to it, each directory looked at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from reconciler.layout.renderedaround import RenderedAround
from reconciler.layout.tree import WorkspaceTree

R = "workspaces/root"


@pytest.fixture
def tree(planted: Callable[[Mapping[str, bytes]], WorkspaceTree]) -> WorkspaceTree:
    files = {
        f"{R}/a.yaml": b"",
        f"{R}/plain/deep/a.yaml": b"",
        f"{R}/app/kustomization.yaml": b"",
        f"{R}/app/base/kustomization.yaml": b"",
        f"{R}/hidden/.treeplaneignore": b"kustomization.yaml\n",
        f"{R}/hidden/kustomization.yaml": b"",
    }
    return planted(files)


def around(tree: WorkspaceTree) -> RenderedAround:
    return RenderedAround(tree, next(iter(tree.workspaces())))


@pytest.mark.parametrize(
    ("file", "marker"),
    [
        ("a.yaml", ""),
        ("new/deep/a.yaml", ""),
        ("plain/deep/b.yaml", ""),
        ("app/b.yaml", f"{R}/app/kustomization.yaml"),
        ("app/kustomization.yaml", f"{R}/app/kustomization.yaml"),
        ("app/base/b.yaml", f"{R}/app/kustomization.yaml"),
        ("app/new/b.yaml", f"{R}/app/kustomization.yaml"),
        ("hidden/b.yaml", ""),
    ],
)
def test_the_outermost_directory_counts(tree: WorkspaceTree, file: str, marker: str) -> None:
    assert around(tree).marker(f"{R}/{file}") == marker


def test_each_directory_is_looked_at_once(tree: WorkspaceTree, monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked, pick = around(tree), list[str](), tree.repo.pick
    monkeypatch.setattr(tree.repo, "pick", lambda tree_id, names: asked.append(tree_id) or pick(tree_id, names))
    for name in ("a", "b", "c"):
        assert found.marker(f"{R}/plain/deep/{name}.yaml") == ""
    assert len(asked) == 4  # of each directory on the way whether it is there, and whether it is rendered
