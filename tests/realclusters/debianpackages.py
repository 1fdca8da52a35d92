"""Programs that Debian has, unpacked into the cache: apt fetches and checks the packages, nothing is installed.

Used by proxybinaries and sshdbinary. Root is not needed but where apt has no list of packages yet.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from realclusters import binaries
from realclusters.binaries import Unavailable

_SECONDS = 240


def unpacked(name: str, packages: tuple[str, ...], otherwise: str) -> Path:
    """The folder `${XDG_CACHE_HOME:-~/.cache}/treeplane/<name>/<digest of the recipe>` with them (several processes may
    ask at once: one unpacks). `otherwise`: what to do where apt is not there. Raises Unavailable."""
    recipe = hashlib.sha256(repr((packages, platform.machine())).encode()).hexdigest()[:16]
    folder = binaries.cache_home().with_name(name) / recipe
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with binaries.locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _unpack(folder, packages, otherwise)
    return folder


def _unpack(folder: Path, packages: tuple[str, ...], otherwise: str) -> None:
    """Beside the final folder, and renamed: whoever finds the folder finds it whole."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg")
    if apt is None or dpkg is None:
        raise Unavailable(otherwise)
    scratch = Path(tempfile.mkdtemp(prefix="unpacking-", dir=folder.parent))
    try:
        sys.stderr.write(f"unpacking {' '.join(packages)} for the tests into {folder} (once)\n")
        fetched = scratch / "packages"
        fetched.mkdir()
        if not _runs([apt, "--quiet", "download", *packages], fetched):
            _runs([apt, "--quiet", "update"], fetched)
            if not _runs([apt, "--quiet", "download", *packages], fetched):
                raise Unavailable(f"apt-get does not download {' '.join(packages)}")
        for package in sorted(fetched.glob("*.deb")):
            if not _runs([dpkg, "--extract", str(package), str(scratch)], fetched):
                raise Unavailable(f"dpkg does not unpack {package.name}")
        shutil.rmtree(fetched)
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _runs(words: list[str], folder: Path) -> bool:
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, check=False, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0
