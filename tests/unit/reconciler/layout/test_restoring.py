"""A workspace's own files are what they were in another tree, and nothing else differs: over generated trees."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.fleetrepo import TREEPLANE_YAML, FleetRepo

from reconciler.layout.restoring import CannotRestore, StandingPlace, own_files, restored
from reconciler.layout.tree import WorkspaceTree

TOP = "workspaces/root/a"
NAMES = ["app.yaml", "more.json", "sub/app.yaml", "sub/deep/x.yml", "kid/k.yaml", "README.md", "sub/notes.txt"]
NAMES += ["sub/kustomization.yaml", "deep/kustomization.yaml"]
MARKS = ["workspace.yaml", "kid/workspace.yaml", "sub/workspace.yaml", "sub/deep/workspace.yml"]
RULES = ["app.yaml\n", "sub/\n", "*.json\n!more.json\n", "deep/x.yml\n"]

TREES = st.fixed_dictionaries(
    {
        "files": st.dictionaries(st.sampled_from(NAMES), st.integers(0, 3).map(lambda n: f"n: {n}\n")),
        "marks": st.sets(st.sampled_from(MARKS[1:])),
        "rules": st.sampled_from([None, None, *RULES]),
        "there": st.sampled_from([True, True, True, False]),
    }
)


def files_of(said: dict) -> dict[str, str]:  # type: ignore[type-arg]
    found = {f"{TOP}/{name}": text for name, text in said["files"].items()} if said["there"] else {}
    if said["there"]:
        found |= {f"{TOP}/{name}": "" for name in (MARKS[0], *said["marks"])}
        found |= {f"{TOP}/.treeplaneignore": said["rules"]} if said["rules"] else {}
    return {"treeplane.yaml": TREEPLANE_YAML, "workspaces/root/r.yaml": "r: 1\n", **found}


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> FleetRepo:
    return FleetRepo(tmp_path_factory.mktemp("restoring") / "fleet.git")


def tree_of(repo: FleetRepo, said: dict) -> WorkspaceTree:  # type: ignore[type-arg]
    old = repo.files(repo.head) if repo.commits else {}
    files = files_of(said)
    commit = repo.commit({**dict.fromkeys(old.keys() - files.keys()), **files})
    return WorkspaceTree(repo.repo, repo.repo.commit(commit).tree)


def own(tree: WorkspaceTree) -> dict[str, str]:
    place = tree.at(TOP)
    assert place is not None
    return {path: entry.id for path, entry in own_files(tree, place)}


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(then=TREES, now=TREES)
def test_own_files_are_as_they_were_and_all_else_as_it_is(repo: FleetRepo, then: dict, now: dict) -> None:  # type: ignore[type-arg]
    before, here = tree_of(repo, {**then, "there": True}), tree_of(repo, now)
    was, place = before.at(TOP), here.at(TOP)
    assert was is not None
    try:
        found = restored(here, StandingPlace("root:a", TOP, place), before, was)
    except CannotRestore:
        return
    after = WorkspaceTree(repo.repo, found.tree)
    assert own(after) == {path: blob for path, blob in own(before).items() if path not in found.left}
    mine = {*own(before), *(own(here) if place is not None else ()), f"{TOP}/.treeplaneignore"}
    assert {change.path for change in found.files} <= mine
    assert not found.left.keys() & {change.path for change in found.files}
    if place is not None:
        assert f"{TOP}/.treeplaneignore" not in {change.path for change in found.files}
        assert place.manifest is not None
    assert restored(after, StandingPlace("root:a", TOP, after.at(TOP)), before, was).files == ()


def test_what_a_directory_is_rendered_of_comes_back_with_it(tmp_path: Path) -> None:
    """A base that is ignored, and files that are no manifests; what is shared stays as it is."""
    repo = FleetRepo(tmp_path / "fleet.git")
    made_of = {
        f"{TOP}/prod/kustomization.yaml": "resources: [../base, ../../../../bases]\n",
        f"{TOP}/prod/values.txt": "1",
        f"{TOP}/base/kustomization.yaml": "resources: [a.yaml]\n",
        f"{TOP}/base/a.yaml": "a: b\n",
    }
    shared = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases]}}}}\n"
    rules = {f"{TOP}/.treeplaneignore": "base\n", f"{TOP}/workspace.yaml": ""}
    then = repo.commit({"treeplane.yaml": shared, **rules, **made_of, "bases/kustomization.yaml": "1"})
    now = repo.commit({**dict.fromkeys(made_of), f"{TOP}/prod/other.yaml": "a: c\n", "bases/kustomization.yaml": "2"})
    before, here = (WorkspaceTree(repo.repo, repo.repo.commit(each).tree) for each in (then, now))
    was, place = before.at(TOP), here.at(TOP)
    assert was is not None
    assert place is not None
    found = restored(here, StandingPlace("root:a", TOP, place), before, was)
    assert {change.path for change in found.files} == {*made_of, f"{TOP}/prod/other.yaml"}


def test_where_nothing_else_counts_it_cannot_be_put_back(tmp_path: Path) -> None:
    """What stands in the directory by now is its parent's."""
    repo = FleetRepo(tmp_path / "fleet.git")
    then = repo.commit({"treeplane.yaml": TREEPLANE_YAML, f"{TOP}/workspace.yaml": "", f"{TOP}/app.yaml": "a: b\n"})
    now = repo.commit({f"{TOP}/workspace.yaml": None, f"{TOP}/app.yaml": None, f"{TOP}/other.yaml": "a: b\n"})
    before, here = (WorkspaceTree(repo.repo, repo.repo.commit(each).tree) for each in (then, now))
    was = before.at(TOP)
    assert was is not None
    with pytest.raises(CannotRestore, match=r"other\.yaml stands there by now"):
        restored(here, StandingPlace("root:a", TOP, None), before, was)
