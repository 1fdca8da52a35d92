"""HAProxy and nginx, which users bring themselves: found where they are, unpacked where they are not.

Used by the tests of docs/behind-a-proxy.md (tests/support/proxies). In this order:

1. ``HAPROXY_BINARY`` and ``NGINX_BINARY``, the programs; nginx' stream module stands in ``NGINX_MODULES``, or where
   Debian has it;
2. those on ``PATH``;
3. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/proxies/<digest of the recipe>``;
4. Debian's packages (debianpackages).
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

from realclusters.binaries import Unavailable
from realclusters.debianpackages import unpacked

PACKAGES = (
    "haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1",
    "nginx", "nginx-common", "libnginx-mod-stream",
)  # fmt: skip
_DEBIANS_MODULES = Path("/usr/lib/nginx/modules")


class ProxyProgram(NamedTuple):
    """`libraries`: a folder with those that it needs besides the machine's; `modules`: where nginx' are."""

    path: Path
    modules: Path = _DEBIANS_MODULES
    libraries: Path | None = None

    def environment(self) -> dict[str, str]:
        """What it is to be started with."""
        return {**os.environ, **({"LD_LIBRARY_PATH": str(self.libraries)} if self.libraries else {})}


def find(name: str) -> ProxyProgram:
    """`haproxy` or `nginx`. Raises Unavailable."""
    told = os.environ.get(f"{name.upper()}_BINARY") or shutil.which(name)
    if told:
        return ProxyProgram(Path(told), Path(os.environ.get("NGINX_MODULES", _DEBIANS_MODULES)))
    folder = unpacked("proxies", PACKAGES, "have haproxy and nginx on PATH, or set HAPROXY_BINARY and NGINX_BINARY")
    [libraries] = folder.glob("usr/lib/*-linux-gnu")
    return ProxyProgram(folder / "usr/sbin" / name, folder / "usr/lib/nginx/modules", libraries)


def main() -> None:
    """`python -m realclusters.proxybinaries`: unpack ahead of the tests, where one can see it."""
    for name in ("haproxy", "nginx"):
        try:
            sys.stdout.write(f"{name}: {find(name).path}\n")
        except Unavailable as error:
            sys.stdout.write(f"{name}: none, tests that need it will be skipped: {error}\n")


if __name__ == "__main__":
    main()
