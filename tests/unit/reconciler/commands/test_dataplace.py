"""What commands say of a place that they cannot use, and of a git that is too old."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from reconciler.__main__ import main
from reconciler.commands import dataplace
from reconciler.commands.dataplace import of_disk, require_place
from reconciler.commands.failure import Failure, of_files
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.gitversion import require_git

EXAMPLE = Path(__file__).parents[4] / "examples" / "fleet-repo"


def test_it_is_made_for_this_user_alone(tmp_path: Path) -> None:
    place = tmp_path / "a" / "b"
    require_place(place)
    require_place(place)
    assert place.stat().st_mode & 0o777 == 0o700
    assert [*place.iterdir()] == []


def test_a_file_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Failure, match="file is a file, and no directory") as caught:
        require_place(tmp_path / "file")
    assert caught.value.exit_code == 3
    with pytest.raises(Failure, match="a part of its path is a file"):
        require_place(tmp_path / "file" / "below")


def test_another_users_is_refused_to_everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    me = os.geteuid()
    monkeypatch.setattr(dataplace.os, "geteuid", lambda: me + 4711)
    with pytest.raises(Failure, match=rf"{tmp_path} is .*'s, and this is user {me + 4711}\nrun it as"):
        require_place(tmp_path)


@pytest.mark.parametrize(
    ("number", "what"),
    [(errno.ENOSPC, "no room left on its disk"), (errno.EROFS, "read-only"), (errno.EACCES, "may not use it")],
)
def test_one_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, what: str) -> None:
    def refuse(**_: Any) -> Any:
        raise OSError(number, "refused", "/some/where")

    monkeypatch.setattr(dataplace.tempfile, "TemporaryFile", refuse)
    with pytest.raises(Failure, match=what) as caught:
        require_place(tmp_path)
    assert f"the data directory {tmp_path} cannot be used" in str(caught.value)


def test_whichever_command_meets_such_a_thing_ends_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise OSError(errno.EROFS, "Read-only file system", str(tmp_path / "lock"))

    monkeypatch.setattr("reconciler.commands.line.watching._on_disk", refuse)
    done = CliRunner().invoke(main, ["status", "--data-dir", str(tmp_path)])
    assert done.exit_code == 3
    assert f"Error: {tmp_path / 'lock'}: its file system is read-only\nmount it" in done.output


def test_a_full_disk_is_told_whatever_a_library_calls_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error = ValueError("could not be written")
    assert of_disk(error, tmp_path) is None
    usage = dataplace.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(dataplace.shutil, "disk_usage", lambda _: usage._replace(free=4096))
    found = of_disk(error, tmp_path)
    assert found is not None
    assert f"{tmp_path}: there is no room left" in found.message


def test_what_nobody_can_mend_stays_what_it_is() -> None:
    assert of_files(OSError(errno.EBADF, "bad")) is None
    assert of_files(OSError("of no number")) is None


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ("git version 2.30.9", r"is version 2\.30, which is too old"),
        ("git version 1.99", "too old"),
        ("what?", "does not say"),
    ],
)
def test_a_git_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, what: str) -> None:
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(RepositoryUnreadable, match=what) as caught:
        require_git()
    assert caught.value.hint == "install git 2.31 or later"
    data = str(tmp_path / "data")
    for words in (
        ["up", str(EXAMPLE), "--data-dir", data],
        ["drill", "https://localhost:1/fleet.git"],
        ["recover", "--from", "https://localhost:1/fleet.git", "--data-dir", data],
    ):
        done = CliRunner().invoke(main, words)
        assert done.exit_code in (3, 4)
        assert f"{caught.value.what}: install git 2.31 or later" in done.output
    assert not (tmp_path / "data").exists()


def test_no_git_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RepositoryUnreadable, match="not installed"):
        require_git()


@pytest.mark.parametrize("said", ["git version 2.31.0", "git version 3.0", "git version 2.100.windows"])
def test_one_that_is_new_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    program = tmp_path / "git"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    require_git()
