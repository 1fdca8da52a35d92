"""Files that commands write: where they come to, what is refused, and what is told."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from support.annsclone import begin, commit, git
from support.sealing import AgeKey, secret

from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import FilingAsked
from reconciler.commands.filing.desk import Desk, desk_for
from reconciler.commands.filing.safety import require_inside
from reconciler.commands.line.filingoptions import FilingTyped, filing_options

FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\n",
    "workspaces/root/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "workspaces/root/shop/workspace.yaml": "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n",
}
FILE = "workspaces/root/shop/new.yaml"
CONTENT = b"kind: ConfigMap\n"


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone, with the working directory in it."""
    found = begin(tmp_path / "clone", FLEET)
    monkeypatch.chdir(found)
    return found


@click.command()
@click.argument("path")
@click.option("--secret", "kept", default="")
@click.option("--drop", default="")
@filing_options
def write(path: str, kept: str, drop: str, filing: FilingTyped) -> None:
    def do(desk: Desk) -> list[str]:
        if path != "-":
            desk.write(path, CONTENT)
        if kept:
            desk.keep_secret(desk.workspace("root:shop"), secret("app", password=kept))
        if drop:
            desk.drop_secret(desk.workspace("root:shop"), drop)
        return ["Write it", "Why: because"]

    filing.run(do)


def run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(write, list(words))
    assert done.exit_code == code, done.output
    return done


def test_in_a_clone_it_is_a_commit_by_the_users_git(top: Path) -> None:
    done = run(FILE)
    head = git(top, "rev-parse", "HEAD")
    assert done.output == f"{FILE} created\nthey are in commit {head[:10]}: git push\n"
    assert (top / FILE).read_bytes() == CONTENT
    assert git(top, "log", "-1", "--format=%an|%s|%(trailers:only)").startswith("ann|Write it|Why: because")
    assert git(top, "status", "--porcelain") == ""
    assert run(FILE).output == f"{FILE} unchanged\n"
    assert git(top, "rev-parse", "HEAD") == head


def test_a_clone_can_be_named(top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(FILE, "--clone", str(top))
    assert (top / FILE).read_bytes() == CONTENT


def test_a_dry_run_writes_nothing_and_shows_the_file(top: Path) -> None:
    before = git(top, "rev-parse", "HEAD"), git(top, "count-objects")
    assert run(FILE, "--dry-run").output == f"{FILE} created (dry run)\n"
    assert run(FILE, "--dry-run", "-o", "yaml").output == f"# {FILE}\n{CONTENT.decode()}"
    shown = json.loads(run(FILE, "--dry-run", "-o", "json").output)
    assert shown["files"] == [{"where": FILE, "change": "created", "content": CONTENT.decode()}]
    assert (git(top, "rev-parse", "HEAD"), git(top, "count-objects")) == before
    assert not (top / FILE).exists()


def test_what_was_done_as_data(top: Path) -> None:
    for output, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        told: dict[str, Any] = read(run(f"workspaces/root/{output}.yaml", "-o", output).output)
        assert told["files"] == [{"where": f"workspaces/root/{output}.yaml", "change": "created"}]
        assert told["commit"] == git(top, "rev-parse", "HEAD")


def test_a_file_with_changes_that_are_in_no_commit_is_refused(top: Path) -> None:
    (top / FILE).write_text("mine\n")
    assert "changes that are in no commit" in run(FILE, code=2).output
    assert (top / FILE).read_text() == "mine\n"


def test_other_changes_of_the_work_tree_and_the_index_stay(top: Path) -> None:
    (top / "workspaces/root/a.yaml").write_text("mine\n")
    git(top, "add", "--all")
    run(FILE)
    assert git(top, "status", "--porcelain") == "M  workspaces/root/a.yaml"


def test_where_git_refuses_the_commit_nothing_stays(top: Path) -> None:
    hook = top / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho no >&2; exit 1\n")
    hook.chmod(0o755)
    assert "no" in run(FILE, code=2).output
    assert not (top / FILE).exists()
    assert git(top, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    "path",
    ["../x.yaml", "/etc/x", "workspaces/../../x", "a//b", ".git/config", "a/.GIT/hooks/x", "a/GIT~1/x", "a/.git . /x",
     "a\\..\\b", "a/\x00", "a/\n", "", ".", "a/" + "x" * 256],
)  # fmt: skip
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    with pytest.raises(Failure):
        require_inside(path)


@given(st.text(st.characters(codec="utf-8"), max_size=40) | st.from_regex(r"[./\\git~1 ]{0,20}", fullmatch=True))
def test_any_path_stays_inside_or_is_refused(path: str) -> None:
    try:
        require_inside(path)
    except Failure:
        return
    top = Path("/nowhere/top")
    found = Path(os.path.normpath(top / path))
    assert found.is_relative_to(top)
    assert found != top
    assert ".git" not in {part.lower() for part in found.parts}


def test_a_symbolic_link_leads_nowhere(top: Path, tmp_path: Path) -> None:
    """Be it in the commit or in the work tree alone."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (top / "workspaces/root/away").symlink_to(outside)
    assert "symbolic link" in run("workspaces/root/away/x.yaml", code=2).output
    git(top, "add", "--all")
    git(top, "commit", "--quiet", "-mx")
    assert "is no directory" in run("workspaces/root/away/x.yaml", code=2).output
    assert list(outside.iterdir()) == []


def test_elsewhere_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "neither a clone of the fleet's repository nor the server's machine" in run(FILE, code=2).output
    assert "no directory" in run(FILE, "--data-dir", "nowhere", code=2).output
    git(tmp_path, "init", "--quiet")
    (tmp_path / "x").touch()
    git(tmp_path, "add", "x")
    git(tmp_path, "commit", "--quiet", "-mx")
    assert "is no fleet" in run(FILE, "--clone", ".", code=2).output


def test_where_the_server_does_not_run_a_sentence_says_so(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    (data / "keys").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert "nothing is served from" in run(FILE, "--data-dir", "data", code=2).output
    (data / "source").write_text("https://user:hidden@forge/fleet\n")
    said = run(FILE, "--data-dir", "data", code=2).output
    assert "it serves https://forge/fleet" in said.replace("user:***@", "").replace("***@", "")
    assert "hidden" not in said
    git(tmp_path, "clone", "--quiet", "--bare", str(top), str(data / "repo/fleet.git"))
    assert "does not run" in run(FILE, "--data-dir", "data", code=3).output
    assert run(FILE, "--data-dir", "data", "--dry-run").output == f"{FILE} created (dry run)\n"


# -- Secrets


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The server's, which is here."""
    (tmp_path / "data/keys").mkdir(parents=True)
    return tmp_path / "data"


def test_a_secret_comes_to_keys_and_to_nobody_elses_eyes(top: Path, data: Path) -> None:
    file = data / "keys/secrets/root:shop/app.yaml"
    done = run("-", "--secret", "hunter2", "--data-dir", str(data))
    assert done.output == f"{file} created\n"
    assert yaml.safe_load(file.read_text())["stringData"] == {"password": "hunter2"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert run("-", "--secret", "hunter2", "--data-dir", str(data)).output == f"{file} unchanged\n"
    assert run("-", "--secret", "hunter3", "--data-dir", str(data)).output == f"{file} configured\n"
    assert run("-", "--drop", "app", "--data-dir", str(data)).output == f"{file} deleted\n"
    assert not file.exists()
    assert git(top, "status", "--porcelain") == ""


def test_one_that_stands_in_another_file_is_changed_there(top: Path, data: Path) -> None:
    file = data / "keys/secrets/root:shop/all.yaml"
    file.parent.mkdir(parents=True)
    other = "# by hand\n" + yaml.safe_dump(secret("other", a="b"))
    file.write_text(f"{other}---\n{yaml.safe_dump(secret('app', password='old'))}")
    run("-", "--secret", "hunter2", "--data-dir", str(data))
    assert file.read_text().startswith(f"{other}---\n")
    assert [*yaml.safe_load_all(file.read_text())][1]["stringData"] == {"password": "hunter2"}
    run("-", "--drop", "app", "--data-dir", str(data))
    assert file.read_text() == other


def test_a_dry_run_masks_values_unless_they_are_asked_for(top: Path, data: Path) -> None:
    words = ("-", "--secret", "hunter2", "--data-dir", str(data), "--dry-run")
    shown = run(*words, "-o", "yaml").output
    assert shown.startswith("# keys/secrets/root:shop/app.yaml\n")
    assert yaml.safe_load(shown)["stringData"] == {"password": "*****"}
    for output in ("table", "json"):
        assert "hunter2" not in run(*words, "-o", output).output
    assert yaml.safe_load(run(*words, "-o", "yaml", "--show-secrets").output)["stringData"]["password"] == "hunter2"
    assert "goes with --dry-run" in run("-", "--secret", "hunter2", "--show-secrets", code=2).output
    assert not (data / "keys/secrets").exists()


def test_where_the_keys_are_not_here_the_file_is_to_be_brought(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = run("-", "--secret", "hunter2", code=2).output
    assert "would be in a work tree" in said
    assert git(top, "status", "--porcelain") == ""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    said = run("-", "--secret", "hunter2", "--clone", str(top)).output
    [file] = elsewhere.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert said.splitlines()[0] == f"{file} created"
    assert "ssh SERVER" in said
    assert "hunter2" not in said
    assert "is there already" in run("-", "--secret", "another", "--clone", str(top), code=2).output


def test_in_a_work_tree_it_stands_where_git_ignores_it(top: Path) -> None:
    commit(top, {".gitignore": "secrets_*\n"})
    run("-", "--secret", "hunter2")
    assert git(top, "status", "--porcelain") == ""


def test_a_secret_that_sops_covers_is_committed_encrypted(top: Path, data: Path) -> None:
    rules = {"creation_rules": [{"age": AgeKey().recipient, "encrypted_regex": "^(data|stringData)$"}]}
    commit(top, {".sops.yaml": yaml.safe_dump(rules)})
    done = run("-", "--secret", "hunter2", "--data-dir", str(data))
    file = "workspaces/root/shop/_objects/default/secrets/app.yaml"
    assert done.output.startswith(f"{file} created\n")
    assert "hunter2" not in git(top, "show", f"HEAD:{file}")
    assert yaml.safe_load(git(top, "show", f"HEAD:{file}"))["stringData"]["password"].startswith("ENC[")
    assert not (data / "keys/secrets").exists()
    run("-", "--drop", "app", "--data-dir", str(data))
    assert git(top, "ls-files", file) == ""


def test_a_link_in_keys_leads_nowhere(top: Path, data: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (data / "keys/secrets").symlink_to(outside)
    assert "symbolic link" in run("-", "--secret", "hunter2", "--data-dir", str(data), code=2).output
    assert list(outside.iterdir()) == []


def test_a_workspace_that_is_not_there_is_refused_with_what_may_be_meant(top: Path) -> None:
    with desk_for(FilingAsked()) as desk, pytest.raises(Failure, match="did you mean root:shop"):
        desk.workspace("root:shpo")
