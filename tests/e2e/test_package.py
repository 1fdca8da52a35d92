"""`pip install .` into an empty environment carries everything that runs: facts, schemas, templates, the plugin."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from support.locked import pinned
from support.plane import Plane, environment

ROOT = Path(__file__).parents[2]
NAMES = {"apiserver", "reconciler", "repo_layout"}
"""What of it can be imported."""
MOST = 280 << 20
"""Bytes of an installation, with all that it needs."""
_NOT_SOURCE = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "bench")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The `bin` of an environment with the package; its dependencies are those of the environment that tests."""
    folder = tmp_path_factory.mktemp("package")
    source = shutil.copytree(ROOT, folder / "source", ignore=_NOT_SOURCE)
    home = folder / "venv"
    venv.create(home, with_pip=False)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # What `pip install .` does in one: build a wheel, install it.
    run(*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    [wheel] = folder.glob("treeplane-*.whl")
    shutil.rmtree(source)
    run(*pip, "--python", str(home / "bin" / "python"), "install", "--no-deps", "--no-index", str(wheel))
    # A .pth in another's directory is not followed, so an editable installation there does not show here.
    (packages(home / "bin") / "dependencies.pth").write_text(
        "\n".join(path for path in sys.path if path.endswith("-packages")) + "\n"
    )
    yield home / "bin"


def packages(installed: Path) -> Path:
    return next(installed.parent.glob("lib/python*/site-packages"))


def run(*command: str, cwd: Path | None = None) -> str:
    done = subprocess.run(command, env=environment(), cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_the_installed_one(installed: Path, tmp_path: Path) -> None:
    script = "import apiserver, reconciler, repo_layout; print(apiserver.__file__, reconciler.__file__)"
    for file in run(str(installed / "python"), "-c", script, cwd=tmp_path).split():
        assert file.startswith(str(installed.parent))
    assert "version" in run(str(installed / "treeplane"), "--version", cwd=tmp_path)


def test_its_names_and_no_others(installed: Path) -> None:
    """The first two are common words: whoever else brings them would take them from it."""
    brought = {each.name for each in packages(installed).iterdir()}
    assert brought == {*NAMES, "dependencies.pth", *(n for n in brought if n.startswith("treeplane-"))}
    owners = packages_distributions()
    for name in NAMES:
        assert set(owners.get(name, [])) <= {"treeplane"}, f"{name} is brought by {owners[name]}"


def test_an_installation_is_small(installed: Path) -> None:
    size = sum(each.stat().st_size for each in packages(installed).rglob("*") if each.is_file())
    for name in pinned("run.txt"):
        files = map(Path, (str(each.locate()) for each in distribution(name).files or ()))
        size += sum(each.stat().st_size for each in files if each.is_file())
    assert size < MOST, f"{size >> 20} MB"


def test_from_init_to_serving(installed: Path, tmp_path: Path) -> None:
    said = run(str(installed / "treeplane"), "init", "fleet", cwd=tmp_path)
    assert "fleet/treeplane.yaml created" in said
    said = run(str(installed / "treeplane"), "init", "fleet", cwd=tmp_path)
    assert "fleet/treeplane.yaml unchanged" in said
    said = run(str(installed / "treeplane"), "validate", "fleet", cwd=tmp_path)
    assert said.startswith("no errors in ")

    server = Plane(tmp_path / "fleet", tmp_path / "server" / "data")
    server.command = installed / "treeplane"
    with server:
        assert server.request("GET", "/readyz").body == "ok"
        assert server.kubectl("get", "workspaces")
        assert "└── root" in server.kubectl("ws", "tree")
        clone = server.clone(tmp_path / "clone")
        assert (clone.folder / "treeplane.yaml").exists()
        # Who may touch what is asked from the beginning, and whoever begins may touch all.
        clone.edit("treeplane.yaml", "writes: ReadOnly", "writes: Store")
        clone.edit("workspaces/root/team/web.yaml", "hello", "hi")
        clone.write("workspaces/root/new/workspace.yaml", "")
        clone.commit("everything")
        assert "workspace root:new created" in clone.push()


def test_the_example_validates(installed: Path, tmp_path: Path) -> None:
    said = run(str(installed / "treeplane"), "validate", str(ROOT / "examples" / "fleet-repo"), cwd=tmp_path)
    assert said.startswith("no errors in ")
