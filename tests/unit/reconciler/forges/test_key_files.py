"""Secrets in files of keys/: whose they are, and when they are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.forges.errors import NotSaid
from reconciler.forges.keyfile import KeyFile

SECRET = "s3cret-token"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "token"
    made.write_text(f"{SECRET}\n")
    made.chmod(0o600)
    return made


def test_it_is_read_anew_when_it_changes(file: Path) -> None:
    key = KeyFile(file, "keys/forges/token")
    assert key.read() == SECRET
    assert key.read() == SECRET
    new = file.with_suffix(".new")
    new.write_text("another")
    new.chmod(0o600)
    new.rename(file)
    assert key.read() == "another"
    assert "another" not in repr(key)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_who_else_may_read_it(file: Path, mode: int) -> None:
    key = KeyFile(file, "keys/forges/token")
    key.read()
    file.chmod(mode)
    with pytest.raises(NotSaid, match="read by others") as error:
        key.read()
    assert error.value.hint == f"chmod 600 {file}"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"two\nlines", b"\xff\xfe", b"x" * 70_000, b"a\x00b"])
def test_what_is_no_secret_is_not_shown(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(NotSaid, match="characters that no secret has") as error:
        KeyFile(file, "keys/forges/token").read()
    assert "two" not in error.value.text + error.value.hint


def test_what_is_no_file(tmp_path: Path) -> None:
    for name in ("none", "folder", "pipe"):
        if name == "folder":
            (tmp_path / name).mkdir()
        if name == "pipe":
            os.mkfifo(tmp_path / name, 0o600)
        with pytest.raises(NotSaid, match=r"is no file|cannot be read"):
            KeyFile(tmp_path / name, f"keys/forges/{name}").read()
