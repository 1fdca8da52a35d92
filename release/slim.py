"""Makes of a virtual environment what an image has of it: nothing that is never imported, the rest compiled, and a
list of what it is.

    python3 -m release.slim /opt/treeplane      (deploy/container/Containerfile)
"""

from __future__ import annotations

import compileall
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from py_compile import PycInvalidationMode

from release import sbom

LIST = "share/treeplane.cdx.json"
_PACKAGES = ("pip", "setuptools", "pkg_resources", "_distutils_hack", "wheel")
"""Tools that install, which nothing that runs imports."""
_FOLDERS = frozenset({"tests", "__pycache__", "include"})
_FILES = frozenset({".pyi", ".pxd", ".pyx", ".c", ".h", ".a"})
"""What is for compilers and checkers of types."""


def useless(site: Path) -> Iterator[Path]:
    """What can go without anybody missing it."""
    for name in _PACKAGES:
        yield from (path for pattern in (name, f"{name}-*.dist-info") for path in site.glob(pattern))
    yield from site.glob("distutils-precedence.pth")
    yield from (path for path in site.rglob("*") if path.is_dir() and path.name in _FOLDERS)
    yield from (path for path in site.rglob("*") if path.is_file() and path.suffix in _FILES)


def slim(home: Path) -> None:
    [site] = home.glob("lib/python*/site-packages")
    for path in [*useless(site), *home.glob("bin/pip*"), *home.glob("bin/[Aa]ctivate*"), home / "include"]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    (home / LIST).parent.mkdir(parents=True, exist_ok=True)
    (home / LIST).write_text(sbom.text(sbom.installed(site), 0))
    # By content, so that the time of a file that an image's layer has does not make it stale.
    compileall.compile_dir(site, quiet=1, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)


if __name__ == "__main__":
    slim(Path(sys.argv[1]))
