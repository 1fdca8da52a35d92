"""A directory that is no fleet: what is missing, what is there, and where the nearest fleet is."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fleetrepo import plain_fleet

from reconciler.commands import nofleet
from reconciler.commands.failure import Failure
from reconciler.commands.nofleet import require_fleet, require_whole


def told(directory: Path) -> tuple[str, int]:
    with pytest.raises(Failure) as refused:
        require_whole(directory, "treeplane validate")
    return refused.value.message, refused.value.exit_code


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_fleet_is_one(here: Path) -> None:
    require_whole(plain_fleet(here / "fleet"), "treeplane validate")


def test_one_with_faults_is_one_and_they_are_the_loaders_to_tell(here: Path) -> None:
    (here / "treeplane.yaml").write_text("a: [")
    require_fleet(here, "treeplane validate")


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ("Chart.yaml", "and holds a Helm chart"),
        ("kustomization.yaml", "and holds a directory for kustomize"),
        ("compose.yml", "and holds a compose file"),
        ("app.yaml", "and holds files of manifests"),
        ("workspace.yaml", "and holds a workspace"),
        ("", "and holds no files"),
        ("README.md", "no treeplane.yaml\n"),
    ],
)
def test_what_is_there_instead_is_named(here: Path, file: str, what: str) -> None:
    directory = here / "it"
    directory.mkdir()
    if file:
        (directory / file).touch()
    text, code = told(directory)
    assert what in text
    assert text.endswith("begin with:\n  treeplane init it")
    assert code == 2


def test_the_nearest_fleet_is_named_as_one_would_type_it(here: Path) -> None:
    fleet = plain_fleet(here / "mono" / "deploy" / "fleet")
    for within in (fleet / "workspaces", fleet / "workspaces" / "root", here / "mono", here):
        assert "the nearest fleet:\n  treeplane validate mono/deploy/fleet" in told(within)[0]


def test_fleets_far_away_and_behind_links_are_not_looked_for(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain_fleet(here / "a" / "b" / "c" / "d" / "deep")
    (here / "looked" / "at").mkdir(parents=True)
    (here / "looked" / "link").symlink_to(here / "a" / "b" / "c" / "d" / "deep")
    assert "the nearest fleet" not in told(here)[0]
    assert "the nearest fleet" not in told(here / "looked")[0]
    monkeypatch.setattr(nofleet, "_MOST", 3)
    for number in range(9):
        (here / "many" / str(number)).mkdir(parents=True)
    plain_fleet(here / "many" / "9")
    assert "the nearest fleet" not in told(here / "many")[0]


def test_where_one_may_not_look_nothing_is_found(here: Path) -> None:
    closed = here / "closed"
    closed.mkdir()
    closed.chmod(0)
    assert "the nearest fleet" not in told(here)[0]
    closed.chmod(0o700)


def test_a_treeplane_yaml_that_does_not_read_is_told_with_its_line(here: Path) -> None:
    fleet = plain_fleet(here / "fleet")
    (fleet / "treeplane.yaml").write_text("kind: Flete\n")
    text, code = told(fleet)
    assert f"{fleet}/treeplane.yaml:1: apiVersion is missing" in text
    assert code == 1


def test_without_a_root_it_is_none(here: Path) -> None:
    fleet = plain_fleet(here / "fleet")
    (fleet / "workspaces" / "root").rmdir()
    assert told(fleet)[0].startswith(f"{fleet}/workspaces/root is missing")
