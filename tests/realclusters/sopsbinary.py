"""The program sops, which users encrypt with: found where it is, built where it is not.

Used by the tests of reconciler/encryption and end to end (the fixture `sops` of tests/conftest.py). Nothing is
downloaded as a binary. In this order:

1. ``SOPS_BINARY``, the program;
2. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/sops/<digest of the recipe>``;
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

VERSION = "v3.11.0"
_BUILD = ("install", "-trimpath", "-ldflags", "-s -w", f"github.com/getsops/sops/v3/cmd/sops@{VERSION}")
_REMEDY = "have Go on PATH, or set SOPS_BINARY"


def find() -> Path:
    """The program, built first if need be (several processes may ask at once: one builds). Raises Unavailable."""
    told = os.environ.get("SOPS_BINARY", "")
    if told:
        if not Path(told).is_file():
            raise Unavailable(f"SOPS_BINARY={told} is no file")
        return Path(told)
    recipe = hashlib.sha256(repr((_BUILD, platform.machine())).encode()).hexdigest()[:16]
    folder = binaries.cache_home().with_name("sops") / recipe
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with binaries.locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _build(folder)
    return folder / "sops"


def _build(folder: Path) -> None:
    """Built beside the final folder and renamed: whoever finds the folder finds it whole."""
    binaries.cache_home().mkdir(parents=True, exist_ok=True)
    program = binaries.go()
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        sys.stderr.write(f"building sops {VERSION} for the tests into {folder} (once)\n")
        binaries.run([program, *_BUILD], {**os.environ, "GOBIN": str(scratch), "CGO_ENABLED": "0"}, remedy=_REMEDY)
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def main() -> None:
    """`python -m realclusters.sopsbinary`: build ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"sops: {find()}\n")
    except Unavailable as error:
        sys.stdout.write(f"sops: none, tests that need it will be skipped: {error}\n")


if __name__ == "__main__":
    main()
