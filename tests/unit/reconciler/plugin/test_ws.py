"""The plugin as a process: where am I, there and back, the tree."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from support.fakeworkspaces import Fake

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def ws(config: Path) -> Run:
    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        found = {**os.environ, "KUBECONFIG": str(config), **environment}
        command = [sys.executable, "-m", "reconciler.plugin.ws", *arguments]
        return subprocess.run(command, env=found, capture_output=True, text=True, timeout=60, check=False)

    return run


def contexts(path: Path) -> tuple[str, dict[str, str]]:
    """The current context, and each context's server."""
    found = yaml.safe_load(path.read_text())
    servers = {c["name"]: c["cluster"]["server"] for c in found["clusters"]}
    return found["current-context"], {c["name"]: servers[c["context"]["cluster"]] for c in found["contexts"]}


def told(path: str) -> str:
    return f"Current workspace is '{path}' (type root:universal).\n"


def test_where_am_i(ws: Run) -> None:
    for arguments in ((), (".",), ("current",)):
        done = ws(*arguments)
        assert (done.stdout, done.stderr, done.returncode) == (told("root"), "", 0)
    assert ws("--short").stdout == "root\n"


def test_there_and_back(ws: Run, config: Path, url: str) -> None:
    assert ws("root:shop:web").stdout == told("root:shop:web")
    current, servers = contexts(config)
    assert current == "workspace.kcp.io/current"
    assert servers[current] == f"{url}/clusters/root:shop:web"
    assert servers["workspace.kcp.io/previous"] == f"{url}/clusters/root"
    assert servers["root"] == f"{url}/clusters/root"
    for arguments, path in (
        (["-"], "root"),
        (["use", "-"], "root:shop:web"),
        ([".."], "root:shop"),
        (["use", "db"], "root:shop:db"),
        (["..:web:deep"], "root:shop:web:deep"),
        ([":root"], "root"),
        (["shop:web"], "root:shop:web"),
    ):
        assert ws(*arguments).stdout == told(path), arguments
    assert contexts(config)[1]["workspace.kcp.io/previous"] == f"{url}/clusters/root"


def test_everything_else_in_the_file_stays(ws: Run, config: Path) -> None:
    before = yaml.safe_load(config.read_text())
    before["contexts"].append({"name": "mine", "context": {"cluster": "c", "user": "u", "namespace": "n"}})
    before["clusters"].append({"name": "c", "cluster": {"server": "https://x", "certificate-authority": "rel/ca"}})
    before["preferences"] = {"colors": True}
    config.write_text(yaml.safe_dump(before))
    config.chmod(0o640)
    ws("root:shop")
    after = yaml.safe_load(config.read_text())
    for section in ("clusters", "contexts", "users"):
        assert after[section][: len(before[section])] == before[section]
    assert after["preferences"] == before["preferences"]
    assert config.stat().st_mode & 0o777 == 0o640


def test_the_first_of_several_files_is_written(ws: Run, config: Path, tmp_path: Path) -> None:
    first = tmp_path / "first"
    before = config.read_bytes()
    assert ws("root:shop", KUBECONFIG=f"{first}:{config}").stdout == told("root:shop")
    assert config.read_bytes() == before
    assert contexts(first)[0] == "workspace.kcp.io/current"
    assert ws(KUBECONFIG=f"{first}:{config}").stdout == told("root:shop")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nope"], 'workspace "root:nope" not found'),
        (["root:shop:db"], 'access to workspace "root:shop:db" denied'),
        (["-"], "no previous workspace"),
        ([".."], "has no parent"),
        (["root::x"], "invalid workspace path"),
        (["create", "x"], "commit workspaces/root/x/workspace.yaml and push"),
        (["a", "b"], "unexpected arguments"),
    ],
)
def test_refusals_change_nothing(ws: Run, fake: type[Fake], config: Path, arguments: list[str], text: str) -> None:
    fake.denied.add("root:shop:db")
    fake.refused = "this fleet is changed in git: commit workspaces/root/x/workspace.yaml and push"
    before = config.read_bytes()
    done = ws(*arguments)
    assert done.returncode == (2 if text in ("invalid workspace path", "unexpected arguments") else 3)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert text in done.stderr
    assert config.read_bytes() == before


def test_access_without_reading_the_logical_cluster(ws: Run) -> None:
    assert ws("root:infra").stdout == "Current workspace is 'root:infra'.\n"


def test_tree(ws: Run, fake: type[Fake]) -> None:
    wanted = """\
.
└── root
    ├── infra
    └── shop
        ├── db
        └── web
            └── deep

"""
    assert ws("tree").stdout == wanted
    assert len([path for path in fake.asked if path.endswith("/workspaces")]) == 3  # pages of one list
    fake.wildcard = False
    assert ws("tree").stdout == wanted


def test_the_tree_marks_what_is_held_and_what_is_not_on_its_target(ws: Run, fake: type[Fake]) -> None:
    message = f"held back at the last good commit: workspaces/root/shop/web/a.yaml:3: unknown field\x1b[31m {'x' * 99}"
    held = {"type": "CommitApplied", "status": "False", "message": message}
    good = {"type": "CommitApplied", "status": "True", "message": "all of it is served"}
    fake.statuses = {
        "root:shop:web": {"conditions": [held], "lag": 3},
        "root:shop:db": {"conditions": [{**held, "message": "never had a good commit: w.yaml: no"}], "lag": 1},
        "root:shop": {"conditions": [good]},
    }
    failed = {"type": "Synced", "status": "False", "message": "Deployment default/web: quota exceeded\u202e"}
    metadata = {"name": "all", "annotations": {"kcp.io/cluster": "c-root-shop-web-deep"}}
    fake.placements = [{"metadata": metadata, "status": {"conditions": [failed]}}]
    wanted = f"""\
.
└── root
    ├── infra
    └── shop
        ├── db [held: 1 commit behind, w.yaml: no]
        └── web [held: 3 commits behind, a.yaml:3: unknown field [31m {"x" * 30}…]
            └── deep [not synced: all: Deployment default/web: quota exceeded]

"""
    assert ws("tree").stdout == wanted
    fake.wildcard = False
    assert ws("tree").stdout == wanted


def test_tree_from_below_with_paths(ws: Run) -> None:
    ws("root:shop")
    wanted = ".\n└── root:shop\n    ├── root:shop:db\n    └── root:shop:web\n        └── root:shop:web:deep\n\n"
    assert ws("tree", "--full").stdout == wanted


def test_a_logical_clusters_name_in_the_url(ws: Run, config: Path, url: str) -> None:
    found = yaml.safe_load(config.read_text())
    found["clusters"][0]["cluster"]["server"] = f"{url}/clusters/c-root-shop"
    config.write_text(yaml.safe_dump(found))
    assert ws("web").stdout == told("root:shop:web")


def test_the_base_context_is_no_workspace(ws: Run, config: Path) -> None:
    found = yaml.safe_load(config.read_text())
    config.write_text(yaml.safe_dump({**found, "current-context": "base"}))
    done = ws()
    assert done.returncode == 3
    assert "does not point to a workspace" in done.stderr
    assert ws("root").stdout == told("root")


@pytest.mark.parametrize(
    ("text", "said"),
    [("- x", "not a kubeconfig"), ("{", "cannot be read"), ("{}", "no current context"), (None, "no such kubeconfig")],
)
def test_a_kubeconfig_that_does_not_serve(ws: Run, tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "broken"
    if text is not None:
        path.write_text(text)
    done = ws("--kubeconfig", str(path))
    assert done.returncode == 3
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_is_away(ws: Run, config: Path) -> None:
    found = yaml.safe_load(config.read_text())
    found["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1/clusters/root"
    config.write_text(yaml.safe_dump(found))
    done = ws()
    assert done.returncode == 3
    assert "https://127.0.0.1:1 does not answer" in done.stderr


def test_it_imports_nothing_heavy() -> None:
    code = (
        "import sys, reconciler.plugin.ws\n"
        "heavy = {'kubernetes', 'orjson', 'cryptography', 'pygit2', 'click', 'rich', 'asyncio', 'apiserver'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("shp", "root:shop"), ("root:shop:wep", "root:shop:web"), ("shopp:web:deep", "root:shop:web:deep")],
)
def test_what_was_mistyped_is_answered_with_what_may_have_been_meant(ws: Run, typed: str, meant: str) -> None:
    done = ws(typed)
    assert done.returncode == 3
    assert f"not found; did you mean {meant}?" in done.stderr
    assert "did you mean" not in ws("quite-different").stderr


def test_where_one_is_and_the_tree_as_data(ws: Run) -> None:
    there = {"path": "root:shop", "cluster": "c-root-shop", "type": "root:universal", "at": ""}
    assert json.loads(ws("root:shop", "-o", "json").stdout) == there
    assert yaml.safe_load(ws("--output=yaml").stdout) == there
    found = json.loads(ws("tree", "-o", "json").stdout)
    assert [each["path"] for each in found] == ["root:shop", "root:shop:db", "root:shop:web", "root:shop:web:deep"]
    assert found == yaml.safe_load(ws("tree", "-o", "yaml").stdout)
    assert ws("tree", "-o", "text").returncode == 2
