"""What a cluster mounts for a group, and secrets that can be guessed; test_key_files of the forges has the rest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apiserver.secretfile import NoSecret, SecretFile


@pytest.mark.parametrize(("mode", "hint"), [(0o600, ""), (0o440, ""), (0o444, "chmod o="), (0o604, "chmod o=")])
def test_what_a_group_was_given_it_may_read_and_nobody_beyond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, hint: str
) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret-token")
    file.chmod(mode)
    monkeypatch.setattr(os, "geteuid", lambda: file.stat().st_uid + 1)
    if not hint:
        assert SecretFile(file, "a token").read() == "s3cret-token"
        return
    with pytest.raises(NoSecret) as refused:
        SecretFile(file, "a token").read()
    assert refused.value.hint == f"{hint} {file}"


def test_one_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2")
    file.chmod(0o600)
    with pytest.raises(NoSecret, match="less than 16 characters: openssl rand"):
        SecretFile(file, "a secret", 16).read()
