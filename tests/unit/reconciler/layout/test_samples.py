"""repo-layout/valid, /invalid and /templates: what the specification promises of them.

After a change of wording, write the expected texts anew with:
    TREEPLANE_GOLDEN=write pytest tests/unit/reconciler/layout/test_samples.py
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pygit2
import pytest

from reconciler.layout import manifest
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.fleet import FleetConfig, parse_fleet, read_fleet
from reconciler.layout.level import problem
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspace import declaration, named, read_workspace
from reconciler.repository.objects import Repository
from reconciler.repository.seed import seed

HERE = Path(__file__).parents[4] / "repo-layout"
INVALID = sorted(p for p in (HERE / "invalid").glob("*/*") if p.suffix != ".errors")


def errors_of(file: Path) -> list[LayoutError]:
    data, path = file.read_bytes(), f"{file.parent.name}/{file.name}"
    try:
        if file.parent.name == "fleet":
            parse_fleet(data, path)
        elif file.parent.name == "workspace":
            named(declaration(data, path), path, "sample")
        else:
            return manifest.read(data, path).errors
    except BadFile as bad:
        return bad.errors
    return []


@pytest.mark.parametrize("file", INVALID, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_invalid_samples_give_their_errors(file: Path) -> None:
    found = "".join(f"{e}\n" for e in errors_of(file))
    golden = file.with_name(file.name + ".errors")
    if os.environ.get("TREEPLANE_GOLDEN") == "write":
        golden.write_text(found)
    assert found
    assert found == golden.read_text()


@pytest.mark.parametrize("directory", [HERE / "valid" / "minimal", HERE / "valid" / "grouped", HERE / "templates"])
def test_whole_samples_are_good(directory: Path, tmp_path: Path) -> None:
    repo = Repository(seeded(directory, tmp_path))
    tree_id = repo.commit(repo.resolve("main") or "").tree
    assert read_fleet(repo, tree_id).layout_version == 1
    tree = WorkspaceTree(repo, tree_id)
    assert tree.fault() is None
    assert tree.notices() == []
    count = 0
    for workspace in tree.workspaces():
        assert tree.problems(workspace) == []
        assert read_workspace(repo, workspace).gvk.kind == "Workspace"
        for path, entry in tree.files(workspace):
            assert problem(path, entry) is None
            found = manifest.read(repo.blob(entry.id), path)
            assert found.errors == found.notices == []
            count += len(found.objects)
    assert count


def test_what_the_grouped_sample_holds(tmp_path: Path) -> None:
    repo = Repository(seeded(HERE / "valid" / "grouped", tmp_path))
    tree_id = repo.commit(repo.resolve("main") or "").tree
    assert read_fleet(repo, tree_id) == FleetConfig(
        "grouped",
        "2f1e9d54-6c3b-4a53-9b51-1d4b8c8d6a10",
        status_branch="observed",
        rewrites="Hold",
        max_deleted_workspaces=10,
        max_deleted_objects=50,
        max_deleted_share=20,
        status_repository="git@git.example.org:shop/status.git",
        retention=timedelta(days=30),
    )
    tree = WorkspaceTree(repo, tree_id)
    assert [w.path for w in tree.workspaces()] == ["root", "root:shop", "root:shop:web"]
    shop, web, root = (tree.find(p) for p in ("root:shop", "root:shop:web", "root"))
    assert shop is not None
    assert web is not None
    assert root is not None
    declared = read_workspace(repo, shop)
    assert declared.value == {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "shop", "labels": {"cost-center": "17"}},
        "spec": {
            "type": {"name": "organization", "path": "root"},
            "serve": {
                "commit": "5f0c3d5b7047e5e3938be09588d65b5aa2a2e900",
                "until": "2026-01-31T18:00:00+01:00",
                "reason": "the new prices were wrong",
            },
        },
    }
    assert read_workspace(repo, web).value["metadata"] == {"name": "web"}
    objects = [m for path, e in tree.files(root) for m in manifest.read(repo.blob(e.id), path).objects]
    assert [(str(m.gvk), m.namespace, m.name, m.index, m.line) for m in objects] == [
        ("v1 Namespace", "", "web", 0, 5),
        ("v1 ConfigMap", "web", "one", 1, 8),
        ("apis.kcp.io/v1alpha1 APIBinding", "", "scheduling.kcp.io", 2, 12),
        ("scheduling.kcp.io/v1alpha1 Placement", "", "aws", 3, 20),
        ("v1 ConfigMap", "", "two", 0, 1),
        ("v1 ConfigMap", "", "three", 1, 2),
    ]
    assert objects[3].value["metadata"]["annotations"] == {"app": "web"}


def seeded(directory: Path, tmp_path: Path) -> Path:
    git_dir = tmp_path / "data" / "repo" / "fleet.git"
    seed(directory, git_dir, "main")
    assert pygit2.Repository(str(git_dir)).is_bare
    return git_dir
