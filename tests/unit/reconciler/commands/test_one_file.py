"""The plugin as one file: run by a Python that has nothing else, with a real kubectl, against a server."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from support.fakeworkspaces import Fake, fresh, serving

from apiserver.auth.kubeconfig import write_admin_kubeconfig
from apiserver.auth.pki import ensure_keys
from reconciler.__main__ import main
from reconciler.commands import onefile

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def fake() -> type[Fake]:
    return fresh()


@pytest.fixture
def config(tmp_path: Path, fake: type[Fake]) -> Iterator[Path]:
    keys = ensure_keys(tmp_path / "keys")
    with serving(keys, fake) as url:
        write_admin_kubeconfig(tmp_path / "kubeconfig", url, keys)
        yield tmp_path / "kubeconfig"


@pytest.fixture
def run(tmp_path: Path, config: Path) -> Run:
    """Programs of an environment with kubectl, the plugin's file, and a Python that finds no packages."""
    folder = tmp_path / "bin"
    assert CliRunner().invoke(main, ["plugin", str(folder)]).exit_code == 0
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    python.chmod(0o755)
    kubectl = shutil.which("kubectl")
    assert kubectl is not None
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(config), "PATH": f"{folder}:{Path(kubectl).parent}:/bin"}

    def start(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)

    return start


def test_it_runs_without_anything_of_ours(run: Run, config: Path) -> None:
    assert "No module named 'yaml'" in run("python3", "-c", "import yaml").stderr
    done = run("kubectl", "ws", "root:shop:web")
    assert (done.stdout, done.stderr) == ("Current workspace is 'root:shop:web' (type root:universal).\n", "")
    assert yaml.safe_load(config.read_text())["current-context"] == "workspace.kcp.io/current"
    assert run("kubectl", "ws", "-").stdout == "Current workspace is 'root' (type root:universal).\n"
    assert "        └── web\n" in run("kubectl", "ws", "tree").stdout
    assert run("kubectl", "config", "current-context").returncode == 0
    assert run("kubectl", "ws", "nope").returncode == 3


def test_it_is_called_by_all_its_names(run: Run, fake: type[Fake]) -> None:
    done = run("kubectl", "create", "workspace", "x")
    assert (done.returncode, "is ready to use." in done.stdout) == (0, True), done.stderr
    assert "x" in fake.made
    completed = run("kubectl", "__complete", "ws", "root:sh")
    assert completed.stdout == "root:shop\n:4\n", completed.stderr
    assert run("kubectl", "__complete", "ws", "tr").stdout == "tree\n:4\n"


def test_why_a_kubeconfig_cannot_be_read(run: Run, config: Path) -> None:
    config.write_text("clusters: [")
    done = run("kubectl", "ws")
    assert done.returncode == 3
    assert f"{config}: cannot be read" in done.stderr


def test_it_is_the_same_each_time_and_changes_nothing_that_is_so(tmp_path: Path) -> None:
    assert onefile.built() == onefile.built()
    names = (onefile.PLUGIN, *onefile.NAMES)
    for word in ("created", "unchanged"):
        assert onefile.write(tmp_path) == [(tmp_path / name, word) for name in names]
    (tmp_path / "kubectl-ws").write_text("another")
    (tmp_path / "kubectl_complete-ws").unlink()
    (tmp_path / "kubectl_complete-ws").write_text("another")
    assert [word for _, word in onefile.write(tmp_path)] == ["configured", "unchanged", "configured"]
    assert (tmp_path / "kubectl-ws").read_bytes() == onefile.built()
    assert os.access(tmp_path / "kubectl-ws", os.X_OK)


def test_it_is_printed_too(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reconciler", "plugin", "-"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == onefile.built()
    (tmp_path / "file").touch()
    done = CliRunner().invoke(main, ["plugin", str(tmp_path / "file")])
    assert (done.exit_code, "name a directory" in done.output) == (3, True)
