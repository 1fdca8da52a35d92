"""`treeplane recover` and `treeplane backup`: what they refuse, and that nothing is left of what failed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pyrage
import pytest
from click.testing import CliRunner, Result
from support.backups import SECRET, backed_up, runtime
from support.fleetrepo import FleetRepo
from support.loadedfleet import LoadedFleet

from reconciler.__main__ import main
from reconciler.commands import recover as recovering
from reconciler.commands.dataplace import only_one, require_recovered
from reconciler.commands.failure import Failure


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LoadedFleet]:
    made = LoadedFleet(tmp_path / "fleet")
    made.begin()
    runtime(made, "root:a", "made")
    made.publish()
    backed_up(made, tmp_path / "backup.age")
    (tmp_path / "key").write_text(f"{SECRET}\n")
    yield made
    made.close()


def recover(fleet: LoadedFleet, *words: str, key: str = "key") -> Result:
    folder = fleet.directory.parent
    given = ["--backup", str(folder / "backup.age"), "--identity", str(folder / key)] if key else []
    line = ["recover", "--from", str(fleet.repo.path), "--data-dir", str(folder / "new"), *given, *words]
    return CliRunner().invoke(main, line)


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def test_step_by_step_into_a_new_directory(fleet: LoadedFleet, tmp_path: Path) -> None:
    done = recover(fleet)
    assert done.exit_code == 0, done.output
    new = tmp_path / "new"
    assert names(new) == {"keys", "unrecorded", "source", "lock"}
    assert (new / "source").read_text() == f"{fleet.repo.path}\n"
    assert (new / "keys" / "ca.key").read_text() == "the key of the CA"
    steps = ("backup.age: made at", "brings back is looked at", "recovery gives what is recorded", "keys: from the")
    at = [done.output.index(step) for step in steps]
    assert at == sorted(at)
    assert f"treeplane up --data-dir {new}\n" in done.output
    assert recover(fleet).exit_code == 2
    assert "is not empty: it has keys, lock, source, …" in recover(fleet).output


@pytest.mark.parametrize("named", [(), ("--path", "fleets/prod")], ids=["found", "named"])
def test_a_fleet_in_a_folder(tmp_path: Path, named: tuple[str, ...]) -> None:
    """The line that serves it has the folder, which may be the only one with a fleet."""
    made = LoadedFleet(tmp_path / "fleet", FleetRepo(tmp_path / "fleet.git", folder="fleets/prod"))
    made.begin()
    made.publish()
    made.close()
    done = recover(made, *named, key="")
    assert done.exit_code == 0, done.output
    assert f"treeplane up --data-dir {tmp_path / 'new'} --path fleets/prod\n" in done.output


def test_without_a_backup_it_says_before_it_starts_what_is_lost(fleet: LoadedFleet, tmp_path: Path) -> None:
    done = recover(fleet, key="")
    assert done.exit_code == 0, done.output
    lost, placed = done.output.index("keys/ca.key: the certificates that clients have"), done.output.index("is what is")
    assert done.output.index("no backup (--backup)") < lost < placed
    assert "keys/ca.key: the certificates that clients have, and the one that they trust\n" in done.output
    assert names(tmp_path / "new") == {"source", "lock"}


def test_another_key_and_a_broken_file_leave_nothing(fleet: LoadedFleet, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(f"{pyrage.x25519.Identity.generate()}\n")
    (tmp_path / "none").write_text("AGE-SECRET-KEY-1WRONG\n")
    done = recover(fleet, key="other")
    assert done.exit_code == 3
    assert "cannot be used: it is not encrypted for age1" in done.output
    done = recover(fleet, key="none")
    assert done.exit_code == 2
    assert "WRONG" not in done.output
    assert not (tmp_path / "new").exists()
    whole = (tmp_path / "backup.age").read_bytes()
    (tmp_path / "backup.age").write_bytes(whole[:-1])
    (tmp_path / "new").mkdir()
    assert recover(fleet).exit_code == 3
    assert names(tmp_path / "new") == set()


def test_a_source_that_gives_nothing_leaves_nothing(fleet: LoadedFleet, tmp_path: Path) -> None:
    assert recover(fleet, "--branch", "other").exit_code == 3
    assert recover(fleet, "--from", str(tmp_path)).exit_code == 2
    assert not (tmp_path / "new").exists()


def test_one_that_is_cut_off_anywhere_begins_anew(
    fleet: LoadedFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed: nothing is cleaned up, as when its process ends."""

    class Killed(BaseException):
        pass

    new, empty = tmp_path / "new", recovering._empty
    for name in ("take", "drill", "resolve", "write_private"):
        with monkeypatch.context() as patched:

            def die(*_: object, **__: object) -> None:
                patched.setattr(recovering, "_empty", lambda _: None)
                raise Killed

            patched.setattr(recovering, name, die)
            patched.setattr(recovering, "_empty", empty)
            with pytest.raises(Killed):
                recover(fleet)
        assert (new / ".recovering").is_dir()
        with pytest.raises(Failure, match="was cut off"):
            require_recovered(new)
        (new / "keys").mkdir(exist_ok=True)
        done = recover(fleet)
        assert done.exit_code == 0, done.output
        assert "was cut off: what it left is removed" in done.output
        assert names(new) == {"keys", "unrecorded", "source", "lock"}
        require_recovered(new)
        shutil.rmtree(new)


def test_one_at_a_time(fleet: LoadedFleet, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    with only_one(tmp_path / "new"):
        done = recover(fleet)
    assert done.exit_code == 4
    assert "is in use" in done.output


@pytest.mark.parametrize("words", [["--backup", "FILE"], ["--identity", "FILE"]])
def test_a_backup_and_its_key_go_together(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "file").touch()
    given = [str(tmp_path / "file") if word == "FILE" else word for word in words]
    for command in (["recover", "--from", ".", "--data-dir", str(tmp_path / "new")], ["drill", "."]):
        done = CliRunner().invoke(main, [*command, *given])
        assert done.exit_code == 2
        assert "go together" in done.output


def test_a_backup_overwrites_nothing_and_quotes_no_key(fleet: LoadedFleet, tmp_path: Path) -> None:
    line = ["backup", "--data-dir", str(fleet.directory), "-o", str(tmp_path / "backup.age"), "--recipient"]
    before = (tmp_path / "backup.age").read_bytes()
    public = str(pyrage.x25519.Identity.from_str(SECRET).to_public())
    done = CliRunner().invoke(main, [*line, public])
    assert (done.exit_code, "is not overwritten" in done.output) == (2, True)
    assert (tmp_path / "backup.age").read_bytes() == before
    done = CliRunner().invoke(main, [*line, SECRET])
    assert done.exit_code == 2
    assert SECRET not in done.output
    assert names(tmp_path) == {"fleet", "backup.age", "key"} | {each for each in names(tmp_path) if "git" in each}


def test_a_drill_does_with_a_backup_what_a_recovery_does(fleet: LoadedFleet, tmp_path: Path) -> None:
    line = ["drill", "--from", str(fleet.repo.path)]
    given = ["--backup", str(tmp_path / "backup.age"), "--identity", str(tmp_path / "key")]
    done = CliRunner().invoke(main, [*line, *given])
    assert done.exit_code == 0, done.output
    assert "keys/ca.key: the certificates that clients have, and the one that they trust; there" in done.output
    assert "of the backup 1 object came back that was made through the API" in done.output
    assert "recovery gives what is recorded, byte for byte" in done.output
    assert CliRunner().invoke(main, [*line, str(fleet.repo.path)]).exit_code == 2
    assert CliRunner().invoke(main, [*line, *given, "--keys", str(fleet.keys)]).exit_code == 2
