"""A bare repository, some people with keys, and an isolated git."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.signing import Gpg, SshPerson, gpg_home

from reconciler.repository.objects import Repository


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests keeps their own configuration and agent out of them."""
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\n\tname = T\n\temail = t@example.com\n[init]\n\tdefaultBranch = main\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "bare.git")], check=True)
    return Repository(tmp_path / "bare.git")


@pytest.fixture(scope="session")
def alice(tmp_path_factory: pytest.TempPathFactory) -> SshPerson:
    return SshPerson(tmp_path_factory.mktemp("alice"), "key")


@pytest.fixture(scope="session")
def bob(tmp_path_factory: pytest.TempPathFactory) -> SshPerson:
    return SshPerson(tmp_path_factory.mktemp("bob"), "key")


@pytest.fixture(scope="module")
def gpg() -> Iterator[Gpg]:
    with gpg_home() as home:
        yield home
