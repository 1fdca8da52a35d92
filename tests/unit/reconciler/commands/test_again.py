"""Commands that messages print, to be typed as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from reconciler.commands.again import again, typed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["treeplane", "up", "my fleet"], "treeplane up 'my fleet' --branch main"),
        (["treeplane", "up", "--branch", "trunk", "fleet"], "treeplane up fleet --branch main"),
        (["treeplane", "up", "--branch=trunk", "--branches=x"], "treeplane up --branches=x --branch main"),
    ],
)
def test_an_option_is_set_once(words: list[str], expected: str) -> None:
    assert again(words, "--branch", "main") == expected


def test_nothing_secret_is_shown() -> None:
    shown = typed(["treeplane", "up", "https://user:hunter2@example.com/fleet.git", "--poll", "5"])
    assert shown == ("treeplane", "up", "--poll", "5"), "the repository of the last time is remembered"


def test_an_option_whose_value_is_secret_is_shown_without_it() -> None:
    proxy = "http://user:hunter2@proxy.example.com:3128"
    for given in (["--git-proxy", proxy], [f"--git-proxy={proxy}"]):
        shown = typed(["treeplane", "up", *given, "--poll", "5", "https://user:hunter2@example.com/fleet.git"])
        assert " ".join(shown).replace("=", " ") == "treeplane up --git-proxy ... --poll 5"


def test_the_program_can_be_called_as_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "treeplane"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.chdir(tmp_path)
    assert typed([str(program)]) == ("./bin/treeplane",)
    assert typed(["bin/treeplane"]) == ("bin/treeplane",)
    monkeypatch.chdir("/")
    assert typed([str(program)])[0] in (str(program), f".{program}")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    assert typed([str(program)]) == ("treeplane",)
