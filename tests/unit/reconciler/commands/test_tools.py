"""`treeplane version`, `treeplane completion`, and what is said to who mistyped a command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler.__main__ import main
from reconciler.commands import versions


def run(*words: str, **environment: str) -> Result:
    return CliRunner(env=environment).invoke(main, list(words))


def test_versions_of_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "_SECONDS", 60.0)  # a program may take its time here
    found = json.loads(run("version", "-o", "json", KUBECONFIG=str(tmp_path / "none")).output)
    assert set(found) == {"client", "git", "kubectl", "server"}
    assert found["git"]["version"][0].isdigit()
    assert found["kubectl"]["version"].startswith("v1.")
    assert "no such kubeconfig" in found["server"]["missing"]
    assert yaml.safe_load(run("version", "-o", "yaml", KUBECONFIG=str(tmp_path / "none")).output) == found
    lines = run("version", KUBECONFIG=str(tmp_path / "none")).output.splitlines()
    assert [line.split()[0] for line in lines] == ["client", "git", "kubectl", "server"]


def test_what_is_missing_or_broken_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\necho nothing\n")
    (tmp_path / "git").chmod(0o755)
    done = run("version", PATH=str(tmp_path), KUBECONFIG=str(tmp_path / "none"))
    assert done.exit_code == 0
    assert f"git      none: {tmp_path / 'git'} does not tell its version" in done.output
    assert "kubectl  none: kubectl is not on PATH" in done.output


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["validat"], "there is no command validat; did you mean validate?"),
        (["blaim"], "did you mean blame"),
        (["zzzzzz"], "there is no command zzzzzz\n"),
        (["up", "--dta-dir", "x"], "--data-dir"),
        (["claims", "gett"], "No such command 'gett'"),
    ],
)
def test_what_was_mistyped(typed: list[str], said: str) -> None:
    done = run(*typed)
    assert (done.exit_code, said in done.output) == (2, True), done.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str, tmp_path: Path) -> None:
    done = run("completion", shell)
    assert done.exit_code == 0
    assert "_TREEPLANE_COMPLETE" in done.output
    (tmp_path / "script").write_text(done.output)
    if shutil.which(shell) is not None:
        subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
    assert run("completion", "csh").exit_code == 2


@pytest.fixture
def typing(tmp_path: Path) -> dict[str, str]:
    """The environment of a shell whose PATH has a treeplane."""
    program = tmp_path / "treeplane"
    program.write_text(f"#!{sys.executable}\nfrom reconciler.__main__ import main\nmain(prog_name='treeplane')\n")
    program.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(__file__).parents[4]),
        "KUBECONFIG": str(tmp_path / "none"),
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path),
    }


ASKED = [("treeplane va", ["validate"]), ("treeplane up --data", ["--data-dir"]), ("treeplane ws tr", ["tree"])]


@pytest.mark.parametrize(("line", "found"), ASKED)
def test_bash_gets_what_may_follow(typing: dict[str, str], line: str, found: list[str]) -> None:
    """By the very script, in a bash."""
    words = line.split()
    script = (
        "source <(treeplane completion bash); "
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; "
        '_treeplane_completion treeplane; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], env=typing, capture_output=True, text=True, check=True)
    assert done.stdout.split() == found, done.stderr


@pytest.mark.parametrize(("line", "found"), ASKED)
def test_fish_gets_what_may_follow(typing: dict[str, str], line: str, found: list[str]) -> None:
    """As fish itself asks the script."""
    if shutil.which("fish") is None:
        pytest.skip("fish is not on PATH")
    script = f"treeplane completion fish | source; complete -C '{line}'"
    done = subprocess.run(["fish", "-c", script], env=typing, capture_output=True, text=True, check=True)
    assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == found, done.stderr


@pytest.mark.parametrize(("line", "found"), ASKED)
def test_zsh_gets_what_may_follow(typing: dict[str, str], line: str, found: list[str]) -> None:
    """By the very script, in a zsh, with what its completion system would show in place of that."""
    if shutil.which("zsh") is None:
        pytest.skip("zsh is not on PATH")
    words = line.split()
    script = (
        "compdef() { : }; source <(treeplane completion zsh); "
        "compadd() { local all=${@[-1]}; print -rl -- ${(P)all} }; _describe() { print -rl -- ${${(P)3}%%:*} }; "
        f"words=({' '.join(words)}); CURRENT={len(words)}; _treeplane_completion"
    )
    done = subprocess.run(["zsh", "-f", "-c", script], env=typing, capture_output=True, text=True, check=True)
    assert done.stdout.split() == found, done.stderr
