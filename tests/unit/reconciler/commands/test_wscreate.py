"""`treeplane ws create` where a workspace is a directory: which file it writes, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.__main__ import main
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import FilingAsked
from reconciler.commands.filing.desk import desk_for
from reconciler.commands.wscreate import put_workspace
from reconciler.plugin.creating import WantedWorkspace
from reconciler.repository import library
from reconciler.repository.objects import Repository
from reconciler.repository.write import commit_tree, edit_tree

FLEET = {
    "treeplane.yaml": b"apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: f}\n",
    "workspaces/root/a.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
    "workspaces/root/group/b.yaml": b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
    "workspaces/root/shop/workspace.yaml": b"apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\n",
}


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory that hosts a fleet; nobody knows of a kubeconfig."""
    git_dir = tmp_path / "data/repo/fleet.git"
    git_dir.mkdir(parents=True)
    library.create(git_dir, "main")
    repo = Repository(git_dir)
    commit_tree(repo, edit_tree(repo, None, FLEET), [], "x\n", 1, "refs/heads/main", None)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "data"


def run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, ["ws", "create", *words, "--data-dir", "data", "--dry-run"])
    assert done.exit_code == code, done.output
    return done


def test_it_is_a_directory_with_a_workspace_yaml(data: Path) -> None:
    shown = run(
        "web", "--parent", "root:shop", "--type", "root:team", "--location-selector", "a=b", "-o", "yaml"
    ).output
    assert shown.startswith("# workspaces/root/shop/web/workspace.yaml\n")
    assert yaml.safe_load(shown) == {
        "apiVersion": "tenancy.kcp.io/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": "web"},
        "spec": {"type": {"name": "team", "path": "root"}, "location": {"selector": {"matchLabels": {"a": "b"}}}},
    }
    assert run("web").output == "workspaces/root/web/workspace.yaml created (dry run)\n"


@pytest.mark.parametrize("option", [["--enter"], ["--create-context", "mine"], ["--timeout", "5"]])
def test_what_needs_a_workspace_at_once_is_refused_for_files(data: Path, option: list[str]) -> None:
    said = run("web", *option, code=2).output
    assert f"{option[0]} is for a workspace that is made at once, and this one is written as files" in said
    assert "kubectl ws web" in said


def test_the_current_workspace_is_the_parent(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = {
        "clusters": [{"name": "x", "cluster": {"server": "https://a:1/clusters/root:shop"}}],
        "contexts": [{"name": "x", "context": {"cluster": "x"}}],
        "current-context": "x",
    }
    Path("kubeconfig").write_text(yaml.safe_dump(config))
    monkeypatch.setenv("KUBECONFIG", "kubeconfig")
    assert run("web").output == "workspaces/root/shop/web/workspace.yaml created (dry run)\n"


def test_what_is_refused(data: Path) -> None:
    assert "is there already, in workspaces/root/shop" in run("shop", code=2).output
    assert run("shop", "--ignore-existing").output == "workspaces/root/shop/workspace.yaml unchanged (dry run)\n"
    assert "only groups" in run("group", code=2).output
    assert "did you mean root:shop" in run("web", "--parent", "root:shpo", code=2).output
    assert "cannot be the name" in run("Web", code=2).output


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.text(max_size=70) | st.from_regex(r"[./a~-]{1,8}", fullmatch=True))
def test_any_name_is_a_directory_below_its_parent_or_refused(data: Path, name: str) -> None:
    with desk_for(FilingAsked(data_dir=data, dry=True)) as desk:
        try:
            put_workspace(desk, "root:shop", WantedWorkspace(name))
        except Failure:
            return
        [file] = desk.planned().files
    assert file.where == f"workspaces/root/shop/{name}/workspace.yaml"
    assert "/" not in name
    assert yaml.safe_load(file.data or b"")["metadata"]["name"] == name
