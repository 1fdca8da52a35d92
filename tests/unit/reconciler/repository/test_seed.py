from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.repository.difference import walk
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.seed import moved_on, seed
from reconciler.repository.source import kind_of_source
from reconciler.signatures.own import CommitKey
from reconciler.signatures.signers import Signers
from reconciler.signatures.verifier import Verifier

Git = Callable[..., str]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    files = {"treeplane.yaml": "x", "workspaces/root/a.yaml": "a: 1", ".gitignore": "a.yaml", "sub/.git/config": "no"}
    for name, text in files.items():
        path = tmp_path / "fleet" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "fleet"


def test_a_directory_becomes_one_commit(directory: Path, tmp_path: Path, git: Git) -> None:
    (directory / "run.sh").write_text("x")
    (directory / "run.sh").chmod(0o755)
    (directory / "link").symlink_to("nowhere")
    git_dir = tmp_path / "data" / "repo" / "fleet.git"
    commit = seed(directory, git_dir, "trunk")
    repo = Repository(git_dir)
    assert repo.resolve("trunk") == repo.resolve("HEAD") == commit
    found = {p: (e.kind, e.executable) for p, e in walk(repo, repo.commit(commit).tree)}
    assert found == {
        ".gitignore": ("blob", False),
        "link": ("link", False),
        "run.sh": ("blob", True),
        "treeplane.yaml": ("blob", False),
        "workspaces/root/a.yaml": ("blob", False),
    }
    assert repo.commit(commit).author == "Treeplane <treeplane@localhost>"
    assert git(git_dir, "fsck", "--strict") == ""


def test_a_directory_that_moved_on_is_noticed(directory: Path, tmp_path: Path, git: Git) -> None:
    git_dir = tmp_path / "data" / "repo" / "fleet.git"
    seed(directory, git_dir, "main")
    assert not moved_on(directory, git_dir, "main")
    git(tmp_path, "clone", "-q", str(git_dir), "work")
    (tmp_path / "work" / "new.yaml").write_text("new")
    git(tmp_path / "work", "add", ".")
    git(tmp_path / "work", "commit", "-qm", "pushed")
    git(tmp_path / "work", "push", "-q", "origin", "main")
    assert not moved_on(directory, git_dir, "main"), "only the repository moved"
    (directory / "new.yaml").write_text("new")
    assert not moved_on(directory, git_dir, "main"), "the directory followed it"
    (directory / "new.yaml").write_text("other")
    assert moved_on(directory, git_dir, "main")


def test_the_data_directory_is_never_taken(directory: Path) -> None:
    data = directory / ".treeplane"
    (data / "keys").mkdir(parents=True)
    (data / "keys" / "ca.key").write_text("secret")
    (directory / "elsewhere").mkdir()
    (directory / "elsewhere" / "token").write_text("secret")
    git_dir = data / "repo" / "fleet.git"
    commit = seed(directory, git_dir, "main", [directory / "elsewhere"])
    repo = Repository(git_dir)
    assert {p.split("/")[0] for p, _ in walk(repo, repo.commit(commit).tree)} == {
        ".gitignore",
        "treeplane.yaml",
        "workspaces",
    }
    assert not moved_on(directory, git_dir, "main", [directory / "elsewhere"])
    with pytest.raises(RepositoryUnreadable, match="--data-dir"):
        seed(directory, directory / "repo" / "fleet.git", "main")


def test_an_empty_directory_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(RepositoryUnreadable, match="holds no files"):
        seed(tmp_path / "empty", tmp_path / "data" / "repo" / "fleet.git", "main")
    assert not (tmp_path / "data").exists()


def test_an_interrupted_seed_is_done_again(directory: Path, tmp_path: Path) -> None:
    git_dir = tmp_path / "data" / "repo" / "fleet.git"
    left = git_dir.with_name("fleet.git.new")
    left.mkdir(parents=True)
    (left / "half").write_text("x")
    seed(directory, git_dir, "main")
    assert not left.exists()
    assert not (git_dir / "half").exists()


def test_kinds_of_sources(clone: Path, directory: Path, tmp_path: Path, git: Git, bare: Repository) -> None:
    for url in ("https://h/x.git", "file:///x", "ssh://git@h/x", "git@host:org/x.git", "host:x.git"):
        assert kind_of_source(url) == "url"
    git(clone, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    for path in (clone, bare.path, tmp_path / "linked"):
        assert kind_of_source(str(path)) == "repository"
    (clone / "inside").mkdir()
    for path in (directory, clone / "inside"):
        assert kind_of_source(str(path)) == "directory"
    for nothing in (str(tmp_path / "absent"), str(directory / "treeplane.yaml"), "./x:y"):
        with pytest.raises(RepositoryUnreadable, match="name a git repository"):
            kind_of_source(nothing)


def test_the_commit_is_signed_where_somebody_signs(directory: Path, tmp_path: Path) -> None:
    key, git_dir = CommitKey.open(tmp_path / "keys"), tmp_path / "data" / "repo" / "fleet.git"
    commit = seed(directory, git_dir, "main", sign=key.sign)
    assert Verifier(key).signer(Repository(git_dir), commit, Signers()).ours
