"""A status branch may say anything: what names no commit is refused with the file that says it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo

from apiserver.model.commits import CommitRef
from apiserver.model.keys import Key
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.repositories import Repositories
from reconciler.statusbranch.recorded import RecordedFleet

ROOT = "workspaces/root"
APP = Key("configmaps", "root", "default", "app")
BAD = ["main", "0" * 40, "../../etc.1f0c", f"charts\\n.{'a' * 40}", f"a/b.{'a' * 40}", "A" * 40]


def recorded(tmp_path: Path, files: dict[str, str]) -> RecordedFleet:
    repo = FleetRepo(tmp_path / "status.git")
    repo.commit({"x": "y"})
    return RecordedFleet(repo.repo, repo.commit(files))


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("said", ['origin: "{}"', 'origin: {}\nserved: "{}"', 'origin: {}\nbefore: "{}"'])
def test_a_summary(tmp_path: Path, said: str, bad: str) -> None:
    text = said.replace("origin: {}", f"origin: {'a' * 40}").replace("{}", bad)
    found = recorded(tmp_path, {f"{ROOT}/_summary.yaml": text})
    with pytest.raises(RepositoryUnreadable, match=r"workspaces/root/_summary.yaml of the status commit .* names no"):
        found.summary(ROOT)
    if "served" in said:
        with pytest.raises(RepositoryUnreadable, match=r"_summary.yaml of the status commit .* names no commit"):
            found.served()


@pytest.mark.parametrize("bad", BAD)
def test_the_fleets_own_file(tmp_path: Path, bad: str) -> None:
    found = recorded(tmp_path, {"fleet.yaml": f'id: x\nrevision: 1\nkept: {{"root:a": "{bad}"}}\n'})
    with pytest.raises(RepositoryUnreadable, match=r"fleet.yaml of the status commit .* names no commit"):
        found.facts()


@pytest.mark.parametrize("bad", BAD)
def test_a_residue(tmp_path: Path, bad: str) -> None:
    annotation = f'metadata: {{annotations: {{treeplane.dev/source-commit: "{bad}"}}}}\n'
    found = recorded(tmp_path, {f"{ROOT}/_status/default/configmaps/app.yaml": annotation})
    with pytest.raises(RepositoryUnreadable, match=r"configmaps/app.yaml of the status commit .* names no commit"):
        found.residue_reader(ROOT)(APP)


def test_a_commit_of_a_repository_that_the_fleet_does_not_have(tmp_path: Path) -> None:
    found = recorded(tmp_path, {f"{ROOT}/_summary.yaml": f"origin: {'a' * 40}\nserved: charts.{'b' * 40}\n"})
    summary = found.summary(ROOT)
    assert summary is not None
    assert summary.served == CommitRef("charts", "b" * 40)
    repositories = Repositories(FleetRepo(tmp_path / "own.git").repo)
    with pytest.raises(RepositoryUnreadable, match="of the repository charts, which this fleet does not have"):
        repositories.of(summary.served)
