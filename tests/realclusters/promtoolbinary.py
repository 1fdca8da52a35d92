"""The program promtool, which checks and tries alerts: found where it is, built where it is not.

Used by the tests of examples/monitoring (the fixture `promtool` of tests/conftest.py). Nothing is downloaded as a
binary. In this order:

1. ``PROMTOOL_BINARY``, the program;
2. the one on ``PATH``;
3. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/promtool/<digest of go.mod, go.sum and the recipe>``;
4. built into the cache by Go, as binaries.py finds it, of the module that promtool/go.mod pins.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from realclusters.binaries import Unavailable
from realclusters.pinned import PinnedProgram

_BUILD = ("build", "-trimpath", "-gcflags=all=-N -l", "-ldflags", "-s -w")
_PROGRAM = PinnedProgram(
    "promtool",
    "github.com/prometheus/prometheus/cmd/promtool",
    _BUILD,
    "have Go on PATH, or set PROMTOOL_BINARY",
    (_BUILD,),
)


def find() -> Path:
    """Raises Unavailable."""
    installed = None if os.environ.get("PROMTOOL_BINARY") else shutil.which("promtool")
    return Path(installed) if installed else _PROGRAM.find()


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
