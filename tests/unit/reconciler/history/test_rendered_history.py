"""What `treeplane log` and `blame` tell of objects that are rendered: by their directory, without a line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fakerenders import FakeRenders
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.histories import blamed, logged, set_by, words
from support.loadedfleet import A, configmap

from reconciler.commands import history
from reconciler.layout.tree import ROOT

K = f"{A}/k"
MARKER = f"{K}/kustomization.yaml"


@pytest.fixture(autouse=True)
def renders(monkeypatch: pytest.MonkeyPatch) -> FakeRenders:
    made = FakeRenders()
    monkeypatch.setattr(history, "renderer_of_user", lambda: made)
    return made


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "fleet.git")
    files = {MARKER: "namePrefix: k-\nresources: [x.yaml]\n", f"{K}/x.yaml": configmap("x", v="1", w="1")}
    made.commit({"treeplane.yaml": TREEPLANE_YAML, f"{A}/workspace.yaml": "", **files}, "Begin")
    return made


def test_a_commit_below_the_directory_changed_what_comes_of_it(repo: FleetRepo) -> None:
    repo.commit({f"{K}/x.yaml": configmap("x", v="2", w="1"), f"{K}/notes.txt": ""})
    [step] = logged(repo, "root:a").entries[0].workspaces
    assert words(step) == {"configured ConfigMap default/k-x"}
    [told] = step.objects
    assert (told.file, told.line) == (MARKER, 0)


def test_a_commit_that_comes_to_the_same_is_none(repo: FleetRepo) -> None:
    repo.commit({f"{K}/notes.txt": "more"})
    assert [entry.commit.id for entry in logged(repo, "root:a").entries] == repo.commits[:1]


def test_a_field_is_set_by_the_commit_that_had_it_come_out_so(repo: FleetRepo) -> None:
    later = repo.commit({f"{K}/x.yaml": configmap("x", v="2", w="1")})
    repo.commit({f"{K}/notes.txt": "more"})
    found = set_by(blamed(repo, "cm/k-x", workspace="root:a"))
    assert (found["data.v"], found["data.w"]) == (later, repo.commits[0])


def test_a_shared_base_is_part_of_it(repo: FleetRepo) -> None:
    sharing = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases]}}}}\n"
    base = {"bases/kustomization.yaml": "resources: [s.yaml]\n", "bases/s.yaml": configmap("s", v="1")}
    named = {MARKER: "resources: [../../../../bases]\n", "treeplane.yaml": sharing}
    begun = repo.commit({**base, **named})
    later = repo.commit({"bases/s.yaml": configmap("s", v="2", w="1")})
    repo.commit({"bases/notes.txt": ""})
    entries = logged(repo, "root:a").entries
    assert [entry.commit.id for entry in entries[:2]] == [later, begun]
    [step] = entries[0].workspaces
    assert words(step) == {"configured ConfigMap default/s"}
    every = logged(repo).entries
    assert [(entry.commit.id, [each.path for each in entry.workspaces]) for entry in every[:1]] == [(later, ["root:a"])]
    assert every[0].workspaces == entries[0].workspaces
    found = set_by(blamed(repo, "cm/s", workspace="root:a"))
    assert (found["data.v"], found["metadata.labels.stamp"]) == (later, begun)


def test_who_only_names_what_is_called_alike_is_told_of_nothing(repo: FleetRepo) -> None:
    sharing = f"{TREEPLANE_YAML}spec: {{rendering: {{shared: [bases, more/bases]}}}}\n"
    bases = {f"{top}/{name}": text for top in ("bases", "more/bases") for name, text in _base("s").items()}
    other = f"{ROOT}/b"
    named = {MARKER: "resources: [../../../../bases]\n", f"{other}/workspace.yaml": ""}
    repo.commit(
        {**bases, **named, f"{other}/kustomization.yaml": "resources: [../../../more/bases]\n"}
        | {"treeplane.yaml": sharing}
    )
    later = repo.commit({"more/bases/s.yaml": configmap("s", v="2")})
    [entry, *_] = logged(repo).entries
    assert (entry.commit.id, [each.path for each in entry.workspaces]) == (later, ["root:b"])


def _base(name: str) -> dict[str, str]:
    return {"kustomization.yaml": f"resources: [{name}.yaml]\n", f"{name}.yaml": configmap(name, v="1")}


def test_what_could_not_be_rendered_says_nothing(repo: FleetRepo) -> None:
    broken = repo.commit({MARKER: "resources: ["})
    repo.commit({MARKER: "namePrefix: k-\nresources: [x.yaml]\n", f"{K}/x.yaml": configmap("x", v="3", w="1")})
    found = logged(repo, "root:a")
    [step] = found.entries[0].workspaces
    assert words(step) == {"configured ConfigMap default/k-x"}
    assert f"{MARKER} of {broken:.10} cannot be read, and is passed over" in found.entries[1].notes
