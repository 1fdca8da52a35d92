"""The program promtool, which checks and tries alerts: found where it is, built where it is not.

Used by the tests of examples/monitoring (the fixture `promtool` of tests/conftest.py). Nothing is downloaded as a
binary. In this order:

1. ``PROMTOOL_BINARY``, the program;
2. the one on ``PATH``;
3. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/promtool/<digest of go.mod, go.sum and the recipe>``;
4. built into the cache by Go, as binaries.py finds it, of the module that promtool/go.mod pins. It is not optimized:
   that takes a third off what compiling costs, and the tests ask for little.
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

_HERE = Path(__file__).resolve().parent / "promtool"
_BUILD = ("build", "-trimpath", "-gcflags=all=-N -l", "-ldflags", "-s -w")
_PACKAGE = "github.com/prometheus/prometheus/cmd/promtool"
_REMEDY = "have Go on PATH, or set PROMTOOL_BINARY"


def find() -> Path:
    """The program, built first if need be (several processes may ask at once: one builds). Raises Unavailable."""
    told = os.environ.get("PROMTOOL_BINARY") or shutil.which("promtool")
    if told:
        if not Path(told).is_file():
            raise Unavailable(f"PROMTOOL_BINARY={told} is no file")
        return Path(told)
    folder = binaries.cache_home().with_name("promtool") / _digest()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with binaries.locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _build(folder)
    return folder / "promtool"


def _digest() -> str:
    parts = [(_HERE / "go.mod").read_bytes(), (_HERE / "go.sum").read_bytes()]
    return hashlib.sha256(b"\0".join([*parts, repr((_BUILD, platform.machine())).encode()])).hexdigest()[:16]


def _build(folder: Path) -> None:
    """Built beside the final folder and renamed: whoever finds the folder finds it whole."""
    binaries.cache_home().mkdir(parents=True, exist_ok=True)
    program = binaries.go()
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        sys.stderr.write(f"building promtool for the tests into {folder} (once)\n")
        out = ("-o", str(scratch / "promtool"), _PACKAGE)
        binaries.run([program, *_BUILD, *out], {**os.environ, "CGO_ENABLED": "0"}, _HERE, _REMEDY)
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def main() -> int:
    """`python -m realclusters.promtoolbinary`: build ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"promtool: {find()}\n")
    except Unavailable as error:
        sys.stdout.write(f"promtool: none, tests that need it will be skipped: {error}\n")
        return 1 if os.environ.get("CI") == "true" else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
