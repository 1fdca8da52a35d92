"""The image of deploy/container/Containerfile: built, looked at, and served from as a cluster would have it run: any
user, a root that is read-only, no capabilities."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import canonicalize_name
from realclusters import imagebuilder
from realclusters.binaries import Unavailable
from realclusters.imagebuilder import Image
from support.locked import pinned
from support.plane import Clone, Plane
from support.realsshd import RealSshd

from release import build

ROOT = Path(__file__).parents[2]
ENTER = ROOT / "tests" / "support" / "insideimage.sh"
USER = 12345
"""Nobody that the image knows: some clusters choose the number themselves."""
MOST = 130_000_000
"""Bytes that are pulled, Debian's with them."""
IMPORTS = """
import importlib, pkgutil
for name in ("apiserver", "reconciler", "repo_layout"):
    package = importlib.import_module(name)
    for found in pkgutil.walk_packages(package.__path__, name + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
print("all of it")
"""


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    """Of the commit that is checked out, as a release is. Without a builder its tests are skipped by name."""
    try:
        builder = imagebuilder.find()
    except Unavailable as error:
        pytest.skip(f"no builder of images: {error}")
    [wheel] = (path for path in build.release(tmp_path_factory.mktemp("dist")) if path.suffix == ".whl")
    return builder.build(ROOT, wheel)


@pytest.fixture(scope="module")
def root(image: Image) -> Iterator[Path]:
    with image.mounted() as folder:
        yield folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A volume, owned by the user."""
    made = Path(tempfile.mkdtemp(prefix="treeplane-image-", dir="/tmp"))
    os.chown(made, USER, 0)
    yield made
    shutil.rmtree(made)


def within(root: Path, folder: Path, *command: str) -> list[str]:
    """The command line that runs `command` in the image."""
    enter = ["/bin/sh", str(ENTER), str(root), str(folder), str(USER)]
    return ["unshare", "--mount", "--propagation", "private", *enter, *command]


def run(root: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(within(root, folder, *command), capture_output=True, text=True, check=False, timeout=120)


def test_it_says_how_to_be_run_and_is_small(image: Image) -> None:
    told = image.settings()
    assert told["User"] == "65532:65532"
    assert told["Entrypoint"] == ["treeplane"]
    assert list(told["ExposedPorts"]) == ["6443/tcp"]
    assert image.compressed() < MOST


def test_it_has_what_the_lock_file_names_and_no_tools(root: Path) -> None:
    listed = json.loads((root / "opt/treeplane/share/treeplane.cdx.json").read_text())["components"]
    there = {canonicalize_name(each["name"]): f"=={each['version']}" for each in listed}
    assert there.pop(canonicalize_name("treeplane"))
    assert there == {name: str(told.specifier) for name, told in pinned("run.txt").items()}
    assert not [each.name for each in (root / "opt/treeplane/bin").glob("pip*")]


def test_nothing_that_is_imported_was_left_out(root: Path, folder: Path) -> None:
    done = run(root, folder, "/opt/treeplane/bin/python", "-c", IMPORTS)
    assert (done.returncode, done.stdout) == (0, "all of it\n"), done.stderr


def test_its_root_is_read_only_here(root: Path, folder: Path) -> None:
    """Else the next test shows nothing."""
    done = run(root, folder, "sh", "-c", "id -u; touch /opt/treeplane/x || touch /x || touch /root/x")
    assert (done.returncode, done.stdout) == (1, f"{USER}\n")
    assert done.stderr.count("Read-only file system") == 2


def served(root: Path, folder: Path, repository: Path | str, *arguments: str) -> Plane:
    """`treeplane up` in the image; the folder belongs to the user."""
    (folder / "server" / "data").mkdir(parents=True)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, USER, 0)
    command = folder / "treeplane"
    command.write_text(f'#!/bin/sh\nexec {shlex.join(within(root, folder, "treeplane"))} "$@"\n')
    command.chmod(0o755)
    server = Plane(repository, folder / "server" / "data", *arguments)
    server.command = command
    return server


def test_any_user_serves_from_it(root: Path, folder: Path) -> None:
    fleet = shutil.copytree(ROOT / "examples" / "fleet-repo", folder / "fleet")
    server = served(root, folder, fleet)
    server.start()
    try:
        assert server.request("GET", "/readyz").body == "ok"
        assert "workspace.tenancy.kcp.io/shop" in server.kubectl("get", "workspaces", "-o", "name").splitlines()
        clone = server.clone(folder / "clone")
        clone.write("workspaces/root/new/workspace.yaml", "")
        clone.commit("a workspace")
        assert "workspace root:new created" in clone.push()
        assert "Traceback" not in server.output()
    finally:
        ended = server.stop()
    assert ended == 0
    assert {path.stat().st_uid for path in (folder / "server" / "data").rglob("*") if path.exists()} == {USER}


def test_any_user_fetches_over_ssh(root: Path, folder: Path, tmp_path: Path, eventually: Any) -> None:
    """ssh runs for nobody whose number has no name."""
    sshd = RealSshd(folder / "sshkeys")
    work = Clone(tmp_path / "work")
    work.write("treeplane.yaml", "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: ssh}\n")
    work.write("workspaces/root/workspace.yaml", "")
    work.git("init", "--quiet", "--initial-branch=main")
    work.commit("begin")
    work.git("clone", "--quiet", "--bare", ".", str(tmp_path / "fleet.git"))
    (folder / "known_hosts").write_text(f"{sshd.line()}\n")
    files = ("--git-ssh-key-file", str(sshd.key), "--git-known-hosts-file", str(folder / "known_hosts"))
    server = served(root, folder, sshd.url(tmp_path / "fleet.git"), *files)
    with sshd.serving(), server:
        pushed = Clone(tmp_path / "fleet.git")
        eventually(lambda: "treeplane/status" in pushed.git("branch", "--list"), 60, "the status branch is pushed")
    assert "Accepted publickey" in sshd.log.read_text()
