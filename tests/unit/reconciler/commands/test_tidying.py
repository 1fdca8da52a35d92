"""When the repositories of our own are packed."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.fleetrepo import FleetRepo

from reconciler.commands.tidying import Tidying, TidySettings
from reconciler.repository.objects import Repository
from reconciler.repository.packing import Load, load

SETTINGS = TidySettings(some=Load(loose=10, packs=3), many=Load(loose=40, packs=3))


@pytest.fixture
def repo(tmp_path: Path) -> FleetRepo:
    made = FleetRepo(tmp_path / "fleet.git")
    for number in range(5):
        made.commit({f"{number}": f"{number}"})
    return made


def test_some_are_packed_when_nothing_happens_and_many_whatever_happens(repo: FleetRepo) -> None:
    happened = [0]
    tidying = Tidying([repo.path], lambda: happened[0], SETTINGS)
    tidying.look()
    assert load(repo.path).loose == 15, "something may have happened"
    happened[0] += 1
    tidying.look()
    assert load(repo.path).loose == 15
    tidying.look()
    assert load(repo.path) == Load(0, 1)
    for number in range(20):
        repo.commit({f"more-{number}": f"{number}"})
    happened[0] += 1
    tidying.look()
    assert load(repo.path).loose == 0


def test_few_are_left_alone_and_what_cannot_be_packed_harms_nobody(
    repo: FleetRepo, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tidying = Tidying([tmp_path / "nowhere", repo.path], lambda: 0, TidySettings(some=Load(16, 3)))
    tidying.look()
    tidying.look()
    assert load(repo.path).loose == 15
    assert "was not packed" in caplog.text


def test_git_leaves_the_packing_to_us(repo: FleetRepo) -> None:
    tidying = Tidying([repo.path], lambda: 0, TidySettings(every=0.01))
    tidying.start()
    tidying.stop()
    assert repo.repo.git.config["receive.autogc"] == "false"


def test_packs_that_were_rolled_up_are_let_go_of(repo: FleetRepo) -> None:
    """Whoever has the repository open reads on, and keeps no file open that is gone."""
    readers = [Repository(repo.path), repo.repo]
    tidying = Tidying(
        [repo.path], lambda: 0, TidySettings(some=Load(1, 2)), lambda: [reader.let_go() for reader in readers]
    )
    for number in range(5):
        commit = repo.commit({f"{number}": f"again {number}"})
        tidying.look()
        tidying.look()
        assert [reader.commit(commit).id for reader in readers] == [commit, commit]
    assert load(repo.path).loose == 0
    mapped = Path("/proc/self/maps").read_text().splitlines()
    assert not [line for line in mapped if str(repo.path) in line and line.endswith("(deleted)")]
