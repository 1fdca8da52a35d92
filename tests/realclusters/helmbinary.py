"""The program helm, which users bring themselves: found where it is, built where it is not.

Used by the tests of reconciler/rendering and end to end (the fixture `helm` of tests/conftest.py). Nothing is
downloaded as a binary. In this order:

1. ``HELM_BINARY``, the program;
2. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/helm/<digest of the recipe>``;
3. built into the cache by Go, as binaries.py finds it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from realclusters import binaries
from realclusters.binaries import Unavailable

VERSION = "v3.19.0"
_STAMP = f"-s -w -X helm.sh/helm/v3/internal/version.version={VERSION}"
_BUILD = ("install", "-trimpath", "-ldflags", _STAMP, f"helm.sh/helm/v3/cmd/helm@{VERSION}")
_REMEDY = "have Go on PATH, or set HELM_BINARY"


def find() -> Path:
    """The program, built first if need be (several processes may ask at once: one builds). Raises Unavailable."""
    told = os.environ.get("HELM_BINARY", "")
    if told:
        if not Path(told).is_file():
            raise Unavailable(f"HELM_BINARY={told} is no file")
        return Path(told)
    recipe = hashlib.sha256(repr((_BUILD, platform.machine())).encode()).hexdigest()[:16]
    folder = binaries.cache_home().with_name("helm") / recipe
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with binaries.locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _build(folder)
    return folder / "helm"


def _build(folder: Path) -> None:
    """Built beside the final folder and renamed: whoever finds the folder finds it whole."""
    binaries.cache_home().mkdir(parents=True, exist_ok=True)
    program = binaries.go()
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        sys.stderr.write(f"building helm {VERSION} for the tests into {folder} (once)\n")
        binaries.run([program, *_BUILD], {**os.environ, "GOBIN": str(scratch), "CGO_ENABLED": "0"}, remedy=_REMEDY)
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def main() -> None:
    """`python -m realclusters.helmbinary`: build ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"helm: {find()}\n")
    except Unavailable as error:
        sys.stdout.write(f"helm: none, tests that need it will be skipped: {error}\n")


if __name__ == "__main__":
    main()
