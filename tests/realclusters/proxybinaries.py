"""HAProxy and nginx, which users bring themselves: found where they are, unpacked where they are not.

Used by the tests of docs/behind-a-proxy.md (tests/support/proxies). In this order:

1. ``HAPROXY_BINARY`` and ``NGINX_BINARY``, the programs; nginx' stream module stands in ``NGINX_MODULES``, or where
   Debian has it;
2. those on ``PATH``;
3. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/proxies/<digest of the recipe>``;
4. Debian's packages, which apt fetches and checks, unpacked into the cache: nothing is installed, and root is not
   needed but where apt has no list of packages yet.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from realclusters import binaries
from realclusters.binaries import Unavailable

PACKAGES = (
    "haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1",
    "nginx", "nginx-common", "libnginx-mod-stream",
)  # fmt: skip
_DEBIANS_MODULES = Path("/usr/lib/nginx/modules")
_SECONDS = 240


class ProxyProgram(NamedTuple):
    """`libraries`: a folder with those that it needs besides the machine's; `modules`: where nginx' are."""

    path: Path
    modules: Path = _DEBIANS_MODULES
    libraries: Path | None = None

    def environment(self) -> dict[str, str]:
        """What it is to be started with."""
        return {**os.environ, **({"LD_LIBRARY_PATH": str(self.libraries)} if self.libraries else {})}


def find(name: str) -> ProxyProgram:
    """`haproxy` or `nginx` (several processes may ask at once: one unpacks). Raises Unavailable."""
    told = os.environ.get(f"{name.upper()}_BINARY") or shutil.which(name)
    if told:
        return ProxyProgram(Path(told), Path(os.environ.get("NGINX_MODULES", _DEBIANS_MODULES)))
    recipe = hashlib.sha256(repr((PACKAGES, platform.machine())).encode()).hexdigest()[:16]
    folder = binaries.cache_home().with_name("proxies") / recipe
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with binaries.locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _unpack(folder)
    [libraries] = folder.glob("usr/lib/*-linux-gnu")
    return ProxyProgram(folder / "usr/sbin" / name, folder / "usr/lib/nginx/modules", libraries)


def _unpack(folder: Path) -> None:
    """Beside the final folder, and renamed: whoever finds the folder finds it whole."""
    apt, dpkg = shutil.which("apt-get"), shutil.which("dpkg")
    if apt is None or dpkg is None:
        raise Unavailable("have haproxy and nginx on PATH, or set HAPROXY_BINARY and NGINX_BINARY")
    scratch = Path(tempfile.mkdtemp(prefix="unpacking-", dir=folder.parent))
    try:
        sys.stderr.write(f"unpacking haproxy and nginx for the tests into {folder} (once)\n")
        fetched = scratch / "packages"
        fetched.mkdir()
        if not _runs([apt, "--quiet", "download", *PACKAGES], fetched):
            _runs([apt, "--quiet", "update"], fetched)
            if not _runs([apt, "--quiet", "download", *PACKAGES], fetched):
                raise Unavailable(f"apt-get does not download {' '.join(PACKAGES)}")
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


def main() -> None:
    """`python -m realclusters.proxybinaries`: unpack ahead of the tests, where one can see it."""
    for name in ("haproxy", "nginx"):
        try:
            sys.stdout.write(f"{name}: {find(name).path}\n")
        except Unavailable as error:
            sys.stdout.write(f"{name}: none, tests that need it will be skipped: {error}\n")


if __name__ == "__main__":
    main()
