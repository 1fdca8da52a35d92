"""What a release consists of, in dist/: sdist, wheel, chart, plain manifests, the list of what an installation has.

    python -m release.build [DIRECTORY]     (make release)

All of it is made of the commit that is checked out, never of files that are not committed, and twice the same: times
are the commit's. The wheel is made of the sdist, so what one has the other has, too. The image is made of the wheel by
deploy/container/Containerfile, where there is something that builds images.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from release import sbom
from release.archives import members, tar_gz, unpack
from release.locks import ROOT

CHART = "deploy/helm/treeplane"
MANIFESTS = "deploy/manifests/treeplane.yaml"
SUMS = "SHA256SUMS"
_BUILD = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"


def commit_time() -> int:
    """Of the commit that is checked out, or what SOURCE_DATE_EPOCH says."""
    told = os.environ.get("SOURCE_DATE_EPOCH", "")
    return int(told or _git("log", "-1", "--format=%ct").decode())


def _git(*words: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=True).stdout


def _built(what: str, source: Path, into: Path, epoch: int) -> Path:
    """By setuptools, in a process of its own that nothing of this environment but the tools reaches."""
    environment = {
        "PATH": os.environ["PATH"],
        "SOURCE_DATE_EPOCH": str(epoch),
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
    }
    command = [sys.executable, "-c", _BUILD, what, str(into)]
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{what} failed:\n{done.stdout}{done.stderr}")
    return into / done.stdout.splitlines()[-1]


def release(into: Path) -> list[Path]:
    """Make all of it. Returns the files."""
    into.mkdir(parents=True, exist_ok=True)
    epoch = commit_time()
    with tempfile.TemporaryDirectory() as scratch:
        exported, source, packed = (Path(scratch) / name for name in ("exported.tar", "source", "sdist"))
        exported.write_bytes(_git("archive", "--format=tar", "HEAD"))
        unpack(members(exported), source)
        packed.mkdir()
        made = _built("build_sdist", source, packed, epoch)
        files = members(made)
        sdist = into / made.name
        tar_gz(sdist, files, epoch)
        unpack(files, packed)
        wheel = _built("build_wheel", packed / made.name.removesuffix(".tar.gz"), into, epoch)
        chart = into / f"treeplane-chart-{made.name.removesuffix('.tar.gz').removeprefix('treeplane-')}.tgz"
        below = sorted(path for path in (source / CHART).rglob("*") if path.is_file())
        tar_gz(chart, ((f"treeplane/{p.relative_to(source / CHART)}", p.read_bytes(), False) for p in below), epoch)
        manifests = into / "treeplane.yaml"
        manifests.write_bytes((source / MANIFESTS).read_bytes())
        listed = into / "treeplane.cdx.json"
        listed.write_text(sbom.text(sbom.locked(source), epoch))
    made_files = [sdist, wheel, chart, manifests, listed]
    sums = [f"{hashlib.sha256(each.read_bytes()).hexdigest()}  {each.name}\n" for each in sorted(made_files)]
    (into / SUMS).write_text("".join(sums))
    return [*made_files, into / SUMS]


def main(arguments: list[str]) -> None:
    for each in release(Path(arguments[0] if arguments else "dist").resolve()):
        sys.stdout.write(f"{each}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
