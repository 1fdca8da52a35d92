"""What the words of `treeplane log` and `blame` name, from wherever they are typed, and clones that are not whole."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.loadedfleet import A, B, LoadedFleet, configmap

from reconciler.__main__ import main

SUB = f"{A}/configmaps"


@pytest.fixture
def served(tmp_path: Path) -> LoadedFleet:
    fleet = LoadedFleet(tmp_path / "fleet")
    fleet.begin({f"{SUB}/workspace.yaml": "", f"{SUB}/app.yaml": configmap("inner")})
    fleet.commit({f"{A}/app.yaml": configmap(a="c")})
    fleet.publish()
    fleet.close()
    return fleet


@pytest.fixture
def clone(served: LoadedFleet, tmp_path: Path) -> Path:
    return cloned(served, tmp_path / "clone")


def cloned(served: LoadedFleet, folder: Path, *options: str) -> Path:
    subprocess.run(["git", "clone", "-q", *options, served.repo.path.as_uri(), folder], check=True)
    return folder


def run(where: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [words[0], "-C", str(where), *words[1:]])


def told(where: Path, *words: str) -> list[str]:
    """The lines of workspaces, by the words of `log`."""
    done = run(where, "log", *words)
    assert done.exit_code == 0, done.output
    return [line.strip() for line in done.output.splitlines() if line.startswith("  workspace ")]


def test_where_one_is_tells_which_workspace(clone: Path) -> None:
    assert len(told(clone)) == 5
    changed, created = "workspace root:a configured", "workspace root:a created"
    assert told(clone / A) == [changed, created]
    assert told(clone / SUB) == ["workspace root:a:configmaps created"]
    for words in (["root:a"], [A], [f"./{A}"], ["-w", "root:a"], ["-w", A], ["root:a", "main"], ["main", "root:a"]):
        assert told(clone, *words) == [changed, created]
    assert told(clone, "root:a", "HEAD^..main") == [changed]
    assert told(clone / B, "..") == ["workspace root created"]


def test_a_kind_comes_before_a_directory_of_its_name(clone: Path) -> None:
    for kind in ("configmaps", "cm", "ConfigMap", "cm/app", "configmap/app"):
        assert told(clone / A, kind) == ["workspace root:a configured", "workspace root:a created"]
    assert told(clone / A, "./configmaps") == ["workspace root:a:configmaps created"]
    assert told(clone / A, "deploy") == []
    assert told(clone / A, "cm", "-n", "other") == []


def test_what_is_asked_is_what_is_served(clone: Path) -> None:
    (clone / A / "app.yaml").write_text(configmap(a="mine"))
    git = ("git", "-C", str(clone), "-c", "user.name=T", "-c", "user.email=t@example.com")
    subprocess.run([*git, "commit", "-qam", "Mine"], check=True)
    assert len(told(clone, "root:a")) == 2
    assert len(told(clone, "root:a", "main")) == 3
    assert "data.a: c" in run(clone / A, "blame", "cm/app").output
    assert "data.a: mine" in run(clone / A, "blame", "cm/app", "HEAD").output


def test_nothing_that_is_not_there_is_taken_for_something(clone: Path, tmp_path: Path) -> None:
    for words, code, text in (
        (["log", "nothing"], 2, "nothing names no commit here"),
        (["log", "root:c"], 1, "no commit has a workspace root:c"),
        (["log", "root:a", "cm/ap"], 1, "near it: app"),
        (["log", "root:a", "root:b"], 2, "root:a and root:b are both given"),
        (["log", "main...HEAD"], 2, "is what a merge brings"),
        (["log", "--max", "-1"], 2, "--max"),
        (["log", "thing/x"], 1, "declares thing/x"),
        (["blame", "cm/app", "-w", "root:c"], 1, "there is no workspace root:c"),
    ):
        done = run(clone, *words)
        assert (done.exit_code, text in done.output) == (code, True), done.output
    assert run(tmp_path, "log").exit_code == 2


def test_a_clone_that_is_not_whole_is_told_how_to_complete_it(served: LoadedFleet, tmp_path: Path) -> None:
    for name, option, remedy in (
        ("shallow", "--depth=1", "fetch --unshallow"),
        ("narrow", "--single-branch", "remote set-branches origin '*'"),
    ):
        folder = cloned(served, tmp_path / name, option)
        for words in (["log"], ["blame", "cm/app"], ["trace", "cm/app", "--target", "west"]):
            done = run(folder, *words)
            assert done.exit_code == 2
            assert remedy in done.output
