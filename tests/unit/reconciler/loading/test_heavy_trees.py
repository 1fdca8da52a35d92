"""A few small objects of git may stand for ten billion directories: they are weighed, never walked."""

from __future__ import annotations

import pygit2
import pytest
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.loadedfleet import LoadedFleet, configmap

from apiserver.model.commits import own
from reconciler.loading.realtargets import real_targets
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.repositories import Repositories
from reconciler.repository.write import commit_tree

HELD = "holds more than 4,000,000 files and directories"
TREE = pygit2.enums.FileMode.TREE


def bomb(repo: FleetRepo, *, manifests: bool = True) -> pygit2.Oid:
    """Ten levels of ten directories each; in each of the last a workspace, or nothing."""
    git = repo.repo.git
    builder = git.TreeBuilder()
    if manifests:
        builder.insert("workspace.yaml", git.create_blob(b""), pygit2.enums.FileMode.BLOB)
    below = builder.write()
    for _ in range(10):
        builder = git.TreeBuilder()
        for number in range(10):
            builder.insert(f"d{number}", below, TREE)
        below = builder.write()
    return below


def plant(repo: FleetRepo, path: str, subtree: pygit2.Oid, parent: str | None = None) -> str:
    """A commit on top of `parent` (None: the head) with a directory at `path`."""
    parent = parent or repo.head
    current = repo.head

    def put(tree: pygit2.Oid | None, parts: list[str]) -> pygit2.Oid:
        if not parts:
            return subtree
        found = repo.repo.git[tree] if tree is not None else None
        builder = repo.repo.git.TreeBuilder(found) if found is not None else repo.repo.git.TreeBuilder()
        inner = found[parts[0]].id if found is not None and parts[0] in found else None
        builder.insert(parts[0], put(inner, parts[1:]), TREE)
        return builder.write()

    made = put(pygit2.Oid(hex=repo.repo.commit(parent).tree), path.split("/"))
    return commit_tree(repo.repo, str(made), [parent], "Add a few directories", 1_767_300_000, repo.ref, current)


@pytest.mark.parametrize("place", ["workspaces/root/zz", "workspaces/root/a/inner/zz"])
def test_a_commit_that_adds_more_than_anybody_can_walk_is_held(fleet: LoadedFleet, place: str) -> None:
    fleet.commit({"workspaces/root/a/inner/new.yaml": configmap("new")})
    served = fleet.everything()

    plant(fleet.repo, place, bomb(fleet.repo))
    loaded = fleet.load()
    assert [HELD in str(problem) for problem in loaded.problems] == [True]
    assert HELD in fleet.fleet().error
    assert fleet.everything() == served

    # It goes on once the directories are gone.
    fleet.repo.commit({place: None, "workspaces/root/a/more.yaml": configmap("more")})
    fleet.load()
    assert fleet.fleet().error == ""
    assert fleet.get("root:a", "configmaps", "more", "default")


def test_what_a_removed_workspace_leaves_behind_is_weighed_too(fleet: LoadedFleet) -> None:
    fleet.commit({"workspaces/root/a/inner/new.yaml": configmap("new")})
    plant(fleet.repo, "workspaces/root/a/inner/zz", bomb(fleet.repo, manifests=False))
    fleet.commit({"workspaces/root/a/workspace.yaml": None})
    assert HELD in fleet.fleet().error


def test_a_first_load_ends_whatever_the_tree_holds(empty: LoadedFleet) -> None:
    empty.repo.commit({"treeplane.yaml": TREEPLANE_YAML, "workspaces/root/app.yaml": configmap(n="1")})
    plant(empty.repo, "workspaces/root/zz", bomb(empty.repo))
    loaded = empty.load()
    assert "holds more than 10,000,000 files and directories" in str(loaded.problems[0])
    with pytest.raises(RepositoryUnreadable, match="10,000,000"):
        real_targets(Repositories(empty.repo.repo), [own(empty.repo.head)])


def test_a_root_of_empty_directories_holds_no_manifest(fleet: LoadedFleet) -> None:
    plant(fleet.repo, "workspaces/root", bomb(fleet.repo, manifests=False))
    fleet.load()
    assert "holds no manifest" in fleet.fleet().error
