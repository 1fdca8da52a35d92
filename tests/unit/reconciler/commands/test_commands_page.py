"""The reference of commands is what they are; and each ends with the exit codes that it says, whatever it is given."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from reconciler.__main__ import main
from reconciler.commands.commandspage import page, walk

TOP = Path(__file__).parents[4]
DOCUMENT = TOP / "docs" / "commands.md"
COMMANDS = dict(walk(main, "treeplane"))


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with nothing in it, in which nobody is known."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


def test_the_document_is_made_of_the_commands() -> None:
    assert page(DOCUMENT.read_text(), walk(main, "treeplane")) == DOCUMENT.read_text(), "make settings"
    assert set(COMMANDS) <= set(re.findall("^## (treeplane .*)$", DOCUMENT.read_text(), re.MULTILINE))


@pytest.mark.parametrize("typed", COMMANDS)
def test_what_cannot_be_asked_so_is_2(typed: str) -> None:
    words = typed.split()[1:]
    assert run(*words, "--help").exit_code == 0
    if typed != "treeplane kcp start":  # which takes whatever kcp may have
        refused = run(*words, "--no-such-option")
        assert (refused.exit_code, "Traceback" in refused.output) == (2, False), refused.output
    if isinstance(COMMANDS[typed], click.Group):
        assert run(*words, "no-such-command").exit_code == 2


@pytest.mark.parametrize("typed", COMMANDS)
def test_whoever_tells_data_tells_it_in_the_same_forms(typed: str) -> None:
    for option in COMMANDS[typed].params:
        if "--output" in option.opts and typed != "treeplane crd snapshot":  # which writes manifests
            assert [*option.type.choices][:3] == ["table", "json", "yaml"]  # type: ignore[attr-defined]
            assert option.default == "table"
            assert "-o" in option.opts
            assert run(*typed.split()[1:], "-o", "xml").exit_code == 2


@pytest.mark.parametrize(
    "words",
    [
        "bind root:a:b", "blame configmap/a", "claims accept a", "claims get", "claims reject a",
        "crd snapshot -f none.yaml --prefix v1", "diff", "drill", "log", "kubeconfig", "mv here there", "pin root HEAD",
        "restore root --at HEAD", "resume root", "suspend root", "trace configmap/a --target a", "ws", "ws tree",
        "ws create a", "comment", "plugin /dev/null/x", "init /dev/null/x", "validate --rev HEAD",
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_more_than_1(nowhere: Path, words: str) -> None:
    """Where there is no clone, no server and no kubeconfig: a sentence, and no traceback."""
    (nowhere / "here").mkdir()
    done = run(*words.split())
    assert done.exit_code >= 2, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    assert "Error: " in done.output


def test_what_differs_is_1(nowhere: Path) -> None:
    fleet = nowhere / "fleet"
    assert run("init", "fleet").exit_code == 0
    assert run("validate", "fleet").exit_code == 0
    (fleet / "workspaces" / "root" / "bad.yaml").write_text("apiVersion: v1\nkind: ConfigMap\n")
    done = run("validate", "fleet", "-o", "json")
    assert done.exit_code == 1
    assert yaml.safe_load(run("validate", "fleet", "-o", "yaml").output) == json.loads(done.output)
    assert run("validate", "fleet", "-o", "text").output == run("validate", "fleet", "-o", "table").output


def test_every_command_of_the_page_can_be_typed(nowhere: Path) -> None:
    """What stands above the reference, as it is printed."""
    head = DOCUMENT.read_text().partition("<!-- made of")[0]
    lines = re.findall(r"^```\n(.*?)\n```", head, re.MULTILINE | re.DOTALL)
    fetched = "kubectl get --raw /plugins/kubectl-ws > kubectl-ws\nchmod +x kubectl-ws"  # e2e/test_kubectl_ws.py has it
    assert lines == ["source <(treeplane completion bash)", "treeplane plugin ~/bin", fetched]
    assert run(*lines[1].replace("~", str(nowhere)).split()[1:]).exit_code == 0
    for program in re.findall(r"`(unzip [^`]*)`", head):
        python = f"python3 -m zipfile -l {program.split()[-1].replace('~', str(nowhere))}"
        listed = subprocess.run(python.split(), capture_output=True, text=True, check=True).stdout
        assert "reconciler/plugin/ws.py" in listed
