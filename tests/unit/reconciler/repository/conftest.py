from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.repository.objects import Repository

Git = Callable[..., str]


@pytest.fixture(autouse=True)
def own_git_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests keeps their own git configuration out of them."""
    settings = tmp_path / "gitconfig"
    settings.write_text("[user]\n\tname = T\n\temail = t@example.com\n[init]\n\tdefaultBranch = main\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in [n for n in os.environ if n in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")]:
        monkeypatch.delenv(name)


@pytest.fixture
def git() -> Git:
    """Runs git in a directory and returns what it printed."""

    def run(directory: Path, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run


@pytest.fixture
def bare(tmp_path: Path, git: Git) -> Repository:
    """An empty bare repository."""
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    return Repository(tmp_path / "bare.git")


@pytest.fixture
def clone(tmp_path: Path, git: Git) -> Path:
    """A repository with a work tree and one commit on main."""
    git(tmp_path, "init", "-q", "work")
    work = tmp_path / "work"
    (work / "a.yaml").write_text("a: 1\n")
    git(work, "add", ".")
    git(work, "commit", "-qm", "first")
    return work
