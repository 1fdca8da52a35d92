"""The repository that a server hosts itself: in a backup, and back out of it into an empty place."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyrage
import pytest
from click.testing import CliRunner, Result
from support.backups import IDENTITY, SECRET, backed_up, runtime, taken
from support.fleetrepo import FleetRepo
from support.loadedfleet import A, LoadedFleet, configmap

from apiserver.model.hostedrepository import PLACE
from reconciler.__main__ import main
from reconciler.commands.source import resolve
from reconciler.repository import library
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.mirror import HISTORY, Mirror
from reconciler.repository.objects import Repository
from reconciler.repository.pushrecords import PushRecords
from reconciler.saving import hosted as saving
from reconciler.saving.archive import write
from reconciler.saving.contents import Saved, entries
from reconciler.saving.hosted import brought_back, hosted, saved

MAIN, RECORD = "refs/heads/main", "refs/heads/treeplane/status"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    """In its data directory stands the only repository."""
    made = LoadedFleet(tmp_path / "fleet", FleetRepo(tmp_path / "fleet" / PLACE))
    made.begin()
    runtime(made, "root:a", "made")
    made.publish()
    (tmp_path / "key").write_text(f"{SECRET}\n")
    yield made
    made.close()


def refs(git_dir: Path) -> dict[str, str]:
    repo = Repository(git_dir)
    return {name: repo.ref(name) or "" for name in repo.references}


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


def given(tmp_path: Path) -> list[str]:
    return ["--backup", str(tmp_path / "backup.age"), "--identity", str(tmp_path / "key")]


def test_a_lost_machine_comes_back_of_the_backup_alone(fleet: LoadedFleet, tmp_path: Path) -> None:
    git = ["git", "-C", str(fleet.repo.path), "-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run([*git, "tag", "-a", "-m", "one", "v1", "main"], check=True)
    subprocess.run([*git, "branch", "proposal", "main"], check=True)
    subprocess.run([*git, "update-ref", f"{HISTORY}2026-01-01", "treeplane/status"], check=True)
    subprocess.run([*git, "update-ref", "refs/other/x", "main"], check=True)
    found = backed_up(fleet, tmp_path / "backup.age")
    assert found.hosts
    assert found.repository > 0
    had = refs(fleet.repo.path)
    fleet.directory.rename(tmp_path / "lost")

    done = run("recover", "--data-dir", str(tmp_path / "new"), *given(tmp_path))
    assert done.exit_code == 0, done.output
    new = tmp_path / "new"
    assert "and the repository that the server hosted" in done.output
    assert f"what {tmp_path / 'backup.age'} brings back is looked at:" in done.output
    assert "recovery gives what is recorded, byte for byte" in done.output
    assert ".recovering" not in done.output
    assert f"{new / PLACE}: from the backup; it is what is served" in done.output
    assert {each.name for each in new.iterdir()} - {"unpushed.bundle"} == {"keys", "unrecorded", "repo", "lock"}
    assert refs(new / PLACE) == {name: commit for name, commit in had.items() if not name.startswith("refs/other/")}
    subprocess.run(["git", "-C", str(new / PLACE), "fsck", "--strict", "--no-dangling"], check=True)
    record = PushRecords(new / PLACE).of(had[MAIN])
    assert record is not None
    assert record.operator
    # Served and hosted, as before, by its own path.
    source = resolve(str(new / PLACE), new, "main")
    assert source.hosted == new / PLACE
    assert (new / PLACE / "hooks" / "update").exists()
    fleet.directory = tmp_path / "lost"


def test_a_drill_takes_the_repository_of_the_backup(fleet: LoadedFleet, tmp_path: Path) -> None:
    backed_up(fleet, tmp_path / "backup.age")
    done = run("drill", *given(tmp_path))
    assert done.exit_code == 0, done.output
    assert "recovery gives what is recorded, byte for byte" in done.output
    assert run("drill", *given(tmp_path), "--branch", "other").exit_code == 3
    done = run("recover", "--data-dir", str(tmp_path / "new"), "--branch", "other", *given(tmp_path))
    assert done.exit_code == 3
    assert "its repository has no branch other" in done.output
    assert "there are: main, treeplane/status" in done.output
    assert not (tmp_path / "new").exists()


def test_a_source_that_is_named_counts_and_it_says_so(fleet: LoadedFleet, tmp_path: Path) -> None:
    backed_up(fleet, tmp_path / "backup.age")
    subprocess.run(["git", "clone", "--quiet", str(fleet.repo.path), str(tmp_path / "clone")], check=True)
    done = run("recover", "--from", str(tmp_path / "clone"), "--data-dir", str(tmp_path / "new"), *given(tmp_path))
    assert done.exit_code == 0, done.output
    assert f"its repository is left out: --from names {tmp_path / 'clone'}" in done.output
    assert (tmp_path / "new" / "source").read_text() == f"{tmp_path / 'clone'}\n"


def test_without_it_the_backup_says_so_and_a_recovery_asks_for_one(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.keys.mkdir(exist_ok=True)
    (fleet.keys / "ca.key").write_text("key")
    fleet.store.close()
    public = str(pyrage.x25519.Identity.from_str(SECRET).to_public())
    words = ["backup", "--data-dir", str(fleet.directory), "--recipient", public, "-o"]
    done = run(*words, str(tmp_path / "whole.age"))
    assert done.exit_code == 0, done.output
    assert "  the repository that the server hosts, all branches and tags: " in done.output
    assert "not in it: what clusters have" in done.output
    assert "treeplane drill --backup whole.age" in done.output
    done = run(*words, str(tmp_path / "backup.age"), "--without-repository")
    assert done.exit_code == 0, done.output
    assert "not in it: the repository, of which a clone that fetches all branches, and nothing else," in done.output
    assert "treeplane drill --from CLONE --backup backup.age" in done.output
    done = run("recover", "--data-dir", str(tmp_path / "new"), *given(tmp_path))
    assert done.exit_code == 2
    assert "has no repository: the server did not host it, or it was left out" in done.output
    assert not (tmp_path / "new").exists()
    done = run("recover", "--data-dir", str(tmp_path / "new"))
    assert done.exit_code == 2
    assert "give --from" in done.output


def test_of_what_is_not_hosted_there_is_none(fleet: LoadedFleet, tmp_path: Path) -> None:
    """A data directory that hosted one once, and serves something else by now."""
    assert hosted(fleet.directory) == fleet.repo.path
    other = tmp_path / "other.git"
    subprocess.run(["git", "clone", "--quiet", "--mirror", str(fleet.repo.path), str(other)], check=True)
    Mirror(fleet.directory, str(other), "main", "treeplane/status")
    assert hosted(fleet.directory) is None
    assert not backed_up(fleet, tmp_path / "backup.age").hosts
    assert taken(tmp_path / "backup.age", tmp_path / "taken").repository is None
    Mirror(fleet.directory, f"file://{other}", "main", "treeplane/status")
    assert hosted(fleet.directory) is None
    assert hosted(tmp_path) is None


def test_one_in_a_directory_that_was_moved_is_the_same(fleet: LoadedFleet, tmp_path: Path) -> None:
    fleet.directory.rename(tmp_path / "moved")
    assert hosted(tmp_path / "moved") == tmp_path / "moved" / PLACE
    (tmp_path / "moved").rename(fleet.directory)


def test_what_is_served_from_elsewhere_and_is_away_is_named(fleet: LoadedFleet, tmp_path: Path) -> None:
    """Nothing is saved of a mirror that lacks what it goes on from, and the one that was hosted once is not taken."""
    other = tmp_path / "other.git"
    subprocess.run(["git", "clone", "--quiet", "--mirror", str(fleet.repo.path), str(other)], check=True)
    Mirror(fleet.directory, str(other), "main", "treeplane/status")
    other.rename(tmp_path / "away.git")
    assert hosted(fleet.directory) is None
    with pytest.raises(RepositoryUnreadable, match=r"other.git is away, whose commits .*mirror goes on from: put it"):
        backed_up(fleet, tmp_path / "backup.age")


@pytest.mark.parametrize("pushed", [True, False])
def test_a_backup_of_a_directory_that_was_moved_has_all_of_it(
    fleet: LoadedFleet, tmp_path: Path, *, pushed: bool
) -> None:
    """The mirror goes on naming where the repository stood, until its server starts in the new place."""
    fleet.commit({f"{A}/app.yaml": configmap(a="2")})
    fleet.writer().flush()
    if pushed:
        fleet.publish()
    before = backed_up(fleet, tmp_path / "before.age")
    had = {name: commit for name, commit in refs(fleet.repo.path).items() if name in (MAIN, RECORD)}
    fleet.store.close()
    fleet.directory.rename(tmp_path / "moved")
    with (tmp_path / "backup.age").open("wb") as file:
        after = Saved()
        write(entries(tmp_path / "moved", tmp_path / "moved" / "keys", time.time(), after), IDENTITY.recipient, file)
    assert (after.hosts, after.unpushed, after.keys) == (True, before.unpushed, before.keys)
    assert after.unpushed > 0
    (tmp_path / "moved").rename(tmp_path / "lost")
    done = run("recover", "--data-dir", str(tmp_path / "new"), *given(tmp_path))
    assert done.exit_code == 0, done.output
    assert "recovery gives what is recorded, byte for byte" in done.output
    assert refs(tmp_path / "new" / PLACE) == had


def test_all_refs_are_of_one_moment(fleet: LoadedFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pushed to while it is looked at: what is saved stood there together."""
    looked, looks = 0, saving._refs

    def pushed(repo: Repository) -> dict[str, str]:
        nonlocal looked
        found, looked = looks(repo), looked + 1
        if looked < 3:
            fleet.commit({f"{A}/app.yaml": configmap(a=f"of push {looked}")})
        return found

    monkeypatch.setattr(saving, "_refs", pushed)
    assert saved(fleet.repo.path, tmp_path / "bundle")
    assert looked == 4
    brought_back(tmp_path / "bundle", tmp_path / "back.git", "main")
    assert refs(tmp_path / "back.git")[MAIN] == fleet.repo.repo.ref(MAIN)
    assert refs(tmp_path / "back.git")[RECORD] == fleet.repo.repo.ref(RECORD)


def test_one_that_never_rests_is_told_as_that(
    fleet: LoadedFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = iter(range(1000))
    monkeypatch.setattr(saving, "_refs", lambda _: {MAIN: str(next(states))})
    with pytest.raises(RepositoryUnreadable, match="pushed to without a pause"):
        saved(fleet.repo.path, tmp_path / "bundle")


def test_what_is_no_such_file_gives_nothing(fleet: LoadedFleet, tmp_path: Path) -> None:
    """Whoever has the public key of a backup may write one."""
    file = tmp_path / "bundle"
    file.write_bytes(b"# v2 git bundle\nnonsense\n\n")
    with pytest.raises(RepositoryUnreadable):
        brought_back(file, tmp_path / "1.git", "main")
    saved(fleet.repo.path, file)
    file.write_bytes(file.read_bytes()[:-30])
    with pytest.raises(RepositoryUnreadable, match="cannot be taken"):
        brought_back(file, tmp_path / "2.git", "main")
    (tmp_path / "empty.git").mkdir()
    library.create(tmp_path / "empty.git", "main")
    assert not saved(tmp_path / "empty.git", tmp_path / "none")
