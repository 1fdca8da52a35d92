"""Files as manifests: the same content is read once, wherever it stands."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from support.fleetrepo import FleetRepo
from support.loadedfleet import configmap

from apiserver.model import marks
from apiserver.model.remembered import footprint
from reconciler.layout import edit
from reconciler.layout.manifest import SEALED, read
from reconciler.loading.files import Files
from reconciler.repository.objects import Repository

WORKSPACE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: universal, path: root}}\n"


class Counting(Repository):
    """Notes which blobs were asked for."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked: list[str] = []

    def blob(self, blob_id: str) -> bytes:
        self.asked.append(blob_id)
        return super().blob(blob_id)


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    return FleetRepo(tmp_path / "fleet.git")


def blob_of(repo: FleetRepo, text: str) -> str:
    commit = repo.commit({"one": text})
    found = repo.repo.entry_at(repo.repo.commit(commit).tree, "one")
    assert found is not None
    return found.id


def test_files_of_one_content_are_read_once(repo: FleetRepo) -> None:
    blob, counting = blob_of(repo, configmap()), Counting(repo.path)
    files = Files(counting)
    [one], [two] = files.read("a/x.yaml", blob).manifests, files.read("b/y.yaml", blob).manifests
    assert counting.asked == [blob]
    assert (one.path, two.path) == ("a/x.yaml", "b/y.yaml")
    assert one.value is two.value


def test_yaml_and_json_of_one_content_are_read_each_in_its_way(repo: FleetRepo) -> None:
    blob = blob_of(repo, configmap())
    files = Files(repo.repo)
    assert not files.read("a/x.yaml", blob).problems
    assert files.read("a/x.json", blob).problems


@pytest.mark.parametrize("path", ["a/x.yaml", "a/x.json"])
@pytest.mark.parametrize(
    "value",
    [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "1"}},
        {"apiVersion": "apis.kcp.dev/v1alpha1", "kind": "APIBinding", "metadata": {"name": "a", "uid": "u"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "annotations": {marks.ORIGIN: "b"}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}},
        {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}]},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": f"{SEALED.decode()}x]"}},
    ],
)  # fmt: skip
def test_a_new_file_is_known_as_it_would_be_read(repo: FleetRepo, path: str, value: dict[str, Any]) -> None:
    data, document = edit.new(path, value)
    files, noted, counting = Files(repo.repo), Files(repo.repo), Counting(repo.path)
    blob = blob_of(repo, data.decode())
    noted.note("elsewhere/y" + path[-5:], data, document)
    found = files.read(path, blob)
    assert noted.read(path, blob) == found
    again = Files(counting)
    again.note(path, *edit.new(path, value))
    again.read(path, blob)
    plain = not found.problems and value["kind"] not in ("List", "Secret")
    assert counting.asked == ([] if plain else [blob])


def test_a_fault_names_the_file_that_is_asked_for(repo: FleetRepo) -> None:
    blob = blob_of(repo, "kind: ConfigMap\n")
    files = Files(repo.repo)
    for path in ("a/x.yaml", "b/y.yaml"):
        assert {problem.path for problem in files.read(path, blob).problems} == {path}


def test_workspace_files_of_one_content_are_read_once(repo: FleetRepo) -> None:
    blob, counting = blob_of(repo, WORKSPACE), Counting(repo.path)
    files = Files(counting)
    for name in ("a", "b"):
        [found] = files.read_workspace(f"{name}/workspace.yaml", blob, name).manifests
        assert (found.path, found.name) == (f"{name}/workspace.yaml", name)
        assert found.value["metadata"] == {"name": name}
        assert found.value["spec"] == {"type": {"name": "universal", "path": "root"}}
    assert counting.asked == [blob]


def test_a_workspace_file_that_is_wrong_or_of_another_directory_says_so_with_its_path(repo: FleetRepo) -> None:
    wrong, others = blob_of(repo, "nothing: 1\n"), blob_of(repo, WORKSPACE + "metadata: {name: a}\n")
    files = Files(repo.repo)
    for path in ("a/workspace.yaml", "b/workspace.yaml"):
        assert {p.path for p in files.read_workspace(path, wrong, path[0]).problems} == {path}
    assert not files.read_workspace("a/workspace.yaml", others, "a").problems
    [said] = files.read_workspace("b/workspace.yaml", others, "b").problems
    assert (said.path, "metadata.name is 'a'" in said.message) == ("b/workspace.yaml", True)


def test_a_manifest_s_footprint_is_what_it_takes() -> None:
    text = b"apiVersion: v1\nkind: Foo\nmetadata: {name: x}\nspec: [" + b"{}," * 3000 + b"]\n"
    read(text, "x.yaml")
    tracemalloc.start()
    try:
        found = read(text, "x.yaml")
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.8 * taken < footprint(found.objects[0].value) < 1.2 * taken


def test_files_that_take_much_memory_are_not_all_kept(tmp_path: Path) -> None:
    """Few bytes of braces, in more files than there is room for when they are read."""
    fleet = FleetRepo(tmp_path / "fleet.git")
    each = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\nlist: [" + "{}," * 500 + "]\n"
    commit = fleet.commit({f"{number}.yaml": f"# {number}\n{each}" for number in range(40)})
    repo, most = Repository(fleet.path), 512 * 1024
    reading = Files(repo, most)
    tracemalloc.start()
    try:
        for entry in repo.entries(repo.commit(commit).tree):
            assert reading.read(entry.name, entry.id).manifests
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most / 2 < taken < 1.5 * most
