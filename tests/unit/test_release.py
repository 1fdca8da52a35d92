"""A release is made of what is committed, twice the same, and has all that runs."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from release import archives, build, sbom, slim
from release.locks import ROOT


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folders = tmp_path_factory.mktemp("release") / "one", tmp_path_factory.mktemp("release") / "two"
    for each in folders:
        build.release(each)
    return folders


def test_it_is_made_twice_the_same(made: tuple[Path, Path]) -> None:
    one, two = ({p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in each.iterdir()} for each in made)
    assert one == two
    assert len(one) == 6
    said = dict(line.split()[::-1] for line in (made[0] / build.SUMS).read_text().splitlines())
    assert said == {name: digest for name, digest in one.items() if name != build.SUMS}


def test_the_wheel_has_all_that_is_committed_and_nothing_else(made: tuple[Path, Path]) -> None:
    """But for what facts are made of, which are there as they were made."""
    command = ["git", "-C", str(ROOT), "ls-tree", "-r", "--name-only", "HEAD"]
    command += ["apiserver", "reconciler", "repo-layout/schemas"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    [wheel] = made[0].glob("*.whl")
    there = set(zipfile.ZipFile(wheel).namelist())
    kinds, source = (".py", ".json", ".yaml"), "apiserver/registry/facts/treeplane/"
    wanted = {name for name in listed if name.endswith(kinds) and not name.startswith(source)}
    assert {name.replace("repo-layout", "repo_layout") for name in wanted} <= there
    top = {name.split("/")[0].split("-")[0] for name in there}
    assert top == {"apiserver", "reconciler", "repo_layout", "treeplane"}


def test_the_archives_name_nobody(made: tuple[Path, Path]) -> None:
    for archive in (*made[0].glob("*.tar.gz"), *made[0].glob("*.tgz")):
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
        assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", build.commit_time())}
        assert [m.name for m in members] == sorted(m.name for m in members)


def test_every_version_is_the_same() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((ROOT / build.CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)


def test_the_list_names_what_is_locked_with_its_hashes() -> None:
    said = json.loads(sbom.text(sbom.locked(ROOT), 0))
    named = {component["name"]: component for component in said["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {canonicalize_name(Requirement(each).name) for each in project["dependencies"]} | {
        "treeplane"
    } <= named.keys()
    for name, component in named.items():
        assert component["purl"] == f"pkg:pypi/{name}@{component['version']}"
        assert name == "treeplane" or component["externalReferences"][0]["hashes"][0]["alg"] == "SHA-256"
    assert sbom.text(sbom.locked(ROOT), 0) == sbom.text(reversed(sbom.locked(ROOT)), 0)


def test_an_archive_comes_back_as_it_was(tmp_path: Path) -> None:
    files = [("b/run", b"#!", True), ("a", b"text", False)]
    archives.tar_gz(tmp_path / "made.tgz", files, 1_700_000_000)
    assert archives.members(tmp_path / "made.tgz") == sorted(files)
    archives.unpack(files, tmp_path / "out")
    assert (tmp_path / "out" / "b" / "run").stat().st_mode & 0o777 == 0o755


def test_what_an_image_leaves_out(tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python3" / "site-packages"
    kept = {"lib/mod.py": "x = 1\n", "pipeline/keep.py": "", "lib-1.dist-info/METADATA": "Name: lib\nVersion: 1\n"}
    gone = {
        "pip/main.py": "",
        "pip-1.dist-info/METADATA": "Name: pip\nVersion: 1\n",
        "lib/mod.pyi": "",
        "lib/tests/t.py": "",
    }
    for name, text in {**kept, **gone}.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    slim.slim(tmp_path)
    left = {str(p.relative_to(site)) for p in site.rglob("*") if p.is_file() and p.suffix != ".pyc"}
    assert left == set(kept)
    assert list(site.rglob("mod.*.pyc"))
    listed = json.loads((tmp_path / slim.LIST).read_text())
    assert [component["name"] for component in listed["components"]] == ["lib"]
