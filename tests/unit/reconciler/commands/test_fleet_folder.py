"""Which of a repository's fleets is meant, by where somebody is; and what is told where that says nothing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.fleetrepo import TREEPLANE_YAML, FleetRepo, plain_fleet

from reconciler.__main__ import main
from reconciler.commands import fleetfolder, nofleet
from reconciler.commands.failure import Failure
from reconciler.commands.validate import validate_path

EXAMPLE = Path(__file__).parents[4] / "examples" / "fleet-repo"


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "mono.git")
    made.commit({"fleets/prod/treeplane.yaml": TREEPLANE_YAML, "services/main.go": "package main\n"})
    return made


def settled(repo: FleetRepo, top: Path | None = None, here: Path = Path(), folder: str = "") -> str:
    fleetfolder.settle(repo.repo, top, here, folder)
    return repo.repo.folders[0]


def test_the_only_one_is_meant(repo: FleetRepo) -> None:
    assert settled(repo) == "fleets/prod"


def test_of_several_one_has_to_be_named(repo: FleetRepo) -> None:
    repo.commit({"fleets/dev/treeplane.yaml": TREEPLANE_YAML})
    with pytest.raises(Failure, match=r"several fleets in .*: fleets/dev, fleets/prod\n.*--path") as refused:
        settled(repo)
    assert refused.value.exit_code == 2
    assert settled(repo, folder="fleets/dev") == "fleets/dev"


def test_one_at_the_top_goes_before_those_below(repo: FleetRepo) -> None:
    repo.commit({"treeplane.yaml": TREEPLANE_YAML})
    assert settled(repo) == ""


def test_a_file_among_a_tenants_makes_no_fleet_of_his_workspace(repo: FleetRepo, tmp_path: Path) -> None:
    top, inside = tmp_path / "work", "fleets/prod/workspaces/root/shop"
    plain_fleet(top / "fleets" / "prod")
    (top / inside).mkdir(parents=True)
    (top / inside / "treeplane.yaml").write_text(TREEPLANE_YAML)
    repo.commit({f"{inside}/treeplane.yaml": TREEPLANE_YAML})
    assert settled(repo, top, top / inside) == "fleets/prod"
    assert settled(repo) == "fleets/prod"


def test_a_folder_that_never_had_one_is_told_with_those_that_have(repo: FleetRepo) -> None:
    repo.commit({"link": repo.link("fleets/prod")})
    for folder, why in (("fleets/dev", "is missing"), ("link", "is a symbolic link"), ("services", "has no treeplane")):
        with pytest.raises(Failure, match=f"^{folder} of .* {why}") as refused:
            fleetfolder.require(repo.repo, "main", folder)
        assert "--path fleets/prod" in refused.value.message
        assert refused.value.exit_code == 2
    fleetfolder.require(repo.repo, "main", "fleets/prod")
    repo.commit({"fleets/prod/treeplane.yaml": None})
    fleetfolder.require(repo.repo, "main", "fleets/prod")  # it had one: that is held, and nothing is deleted


def test_validate_tells_paths_as_the_repository_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    top = tmp_path / "work"
    root = plain_fleet(top / "fleets" / "prod") / "workspaces" / "root"
    (root / "bad.yaml").write_text("kind: ConfigMap\n")
    (top / ".git").mkdir()
    (top / "services").mkdir()
    for found in (validate_path(top / "fleets" / "prod"), validate_path(top, folder="fleets/prod")):
        assert {each.path for each in found.problems} == {"fleets/prod/workspaces/root/bad.yaml"}
    monkeypatch.chdir(top / "services")
    with pytest.raises(Failure) as refused:
        nofleet.require_fleet(Path(), "treeplane validate")
    assert "treeplane validate ../fleets/prod" in refused.value.message


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The top of a work tree with two fleets, where somebody is."""
    top = tmp_path / "work"
    for name in ("dev", "prod"):
        shutil.copytree(EXAMPLE, top / "fleets" / name)
    for words in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "fleets"]):
        subprocess.run(["git", "-C", str(top), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)
    monkeypatch.chdir(top)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    return top


@pytest.mark.parametrize(
    "words",
    [
        ["grant", "ann", "view", "root:shop", "--dry-run"],
        ["ws", "create", "new", "--parent", "root:shop", "--dry-run"],
        ["pin", "root:shop", "HEAD", "--dry-run"],
        ["suspend", "root:shop", "--dry-run"],
        ["resume", "root:shop", "--dry-run", "-o", "yaml"],
        ["restore", "root:shop", "--at", "HEAD"],
        ["log", "root:shop"],
        ["blame", "root:shop", "ConfigMap/x"],
        ["trace", "ConfigMap/x", "--target", "eu"],
    ],
)
def test_the_verbs_take_the_folder_where_there_are_several(two: Path, words: list[str]) -> None:
    ran = CliRunner().invoke(main, words)
    assert ran.exit_code == 2, ran.output
    assert "there are several fleets" in ran.output
    assert "--path FOLDER" in ran.output
    ran = CliRunner().invoke(main, [*words, "--path", "fleets/prod"])
    assert "there are several fleets" not in ran.output
    if "--dry-run" in words:
        assert ran.exit_code == 0, ran.output
    if words[0] in ("grant", "ws"):
        assert "fleets/prod/workspaces/root/shop/" in ran.output
        ran = CliRunner().invoke(main, [*words, "--path", "fleets/none"])
        assert (ran.exit_code, "has no fleets/none/treeplane.yaml" in ran.output) == (2, True)
    assert CliRunner().invoke(main, [*words, "--path", "../prod"]).exit_code == 2
    assert (two / "fleets" / "dev").is_dir()
