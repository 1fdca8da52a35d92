"""What may follow `kubectl ws`, as kubectl asks and as our own command line does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.fakeworkspaces import Fake

from reconciler.plugin import completing

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(config: Path, monkeypatch: pytest.MonkeyPatch) -> Complete:
    monkeypatch.setenv("KUBECONFIG", str(config))
    monkeypatch.setattr(completing, "_SECONDS", 60.0)
    return lambda *words: completing.candidates([*words[:-1]], words[-1])


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([""], ["current", "use", "tree", "create", "create-context", "..", "root", "infra", "shop"]),
        (["s"], ["shop"]),
        (["cr"], ["create", "create-context"]),
        (["root:"], ["root:infra", "root:shop"]),
        (["root:shop:w"], ["root:shop:web"]),
        (["shop:"], ["shop:db", "shop:web"]),
        (["shop:web:"], ["shop:web:deep"]),
        (["use", "sh"], ["shop"]),
        (["tree", ""], []),
        (["root", ""], []),
        (["create", ""], []),
        (["create", "--e"], ["--enter"]),
        (["--i"], ["--interactive"]),
        (["-o", ""], ["json", "table", "yaml"]),
        (["--at", ""], []),
        (["--at", "main", "sh"], ["shop"]),
        (["nowhere:"], []),
    ],
)
def test_what_may_follow(complete: Complete, words: list[str], found: list[str]) -> None:
    assert complete(*words) == found


def test_another_kubeconfig(complete: Complete, config: Path, tmp_path: Path) -> None:
    below = yaml.safe_load(config.read_text())
    for each in below["clusters"]:
        each["cluster"]["server"] = each["cluster"]["server"].replace("/clusters/root", "/clusters/root:shop")
    (tmp_path / "other").write_text(yaml.safe_dump(below))
    assert complete(f"--kubeconfig={tmp_path / 'other'}", "w") == ["web"]
    assert complete("--kubeconfig", str(tmp_path / "other"), "w") == ["web"]
    assert complete("--kubeconfig", str(tmp_path / "none"), "w") == []


def test_where_nobody_answers_there_is_nothing(
    complete: Complete, config: Path, tmp_path: Path, fake: type[Fake]
) -> None:
    fake.denied.add("root:shop")
    assert complete("root:shop:") == []
    config.write_text("not: [")
    assert complete("root:") == []


def test_names_that_a_shell_would_run_are_not_offered(complete: Complete, fake: type[Fake]) -> None:
    fake.tree["root"] += ["$(reboot)", "a b", "\x1b[2J", "x;y", "good-1"]
    assert complete("root:") == ["root:good-1", "root:infra", "root:shop"]


def test_as_kubectl_asks_for_it(config: Path) -> None:
    def ask(*words: str) -> str:
        code = "from reconciler.plugin import completing; completing._SECONDS = 60.0; completing.main()"
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(
            command, env={**os.environ, "KUBECONFIG": str(config)}, capture_output=True, text=True, check=True
        ).stdout

    assert ask("root:s") == "root:shop\n:4\n"
    assert ask("tree", "") == ":4\n"
    assert ask("").startswith("current\n")
