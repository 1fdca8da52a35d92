"""Flux' kustomize-controller, which applies what a repository has and prunes what it has no more: found where it is,
built where it is not.

Used by tests/support/realflux. Nothing is downloaded as a binary. In this order:

1. ``FLUX_BINARY``, the program, beside which the folder `crds` of its sources stands;
2. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/flux/<digest of go.mod, go.sum and the recipe>``;
3. built into the cache by Go, as binaries.py finds it, of the module that flux/go.mod pins (some minutes, once).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from realclusters.binaries import Unavailable
from realclusters.pinned import PinnedProgram, copy

MODULE = "github.com/fluxcd/kustomize-controller"
_BUILD = ("build", "-trimpath", "-gcflags=all=-N -l", "-ldflags", "-s -w")
_PROGRAM = PinnedProgram("flux", MODULE, _BUILD, "have Go on PATH, or set FLUX_BINARY", (_BUILD, "crds"))


def find() -> Path:
    """Raises Unavailable."""
    return _PROGRAM.find(_with_definitions)


def _with_definitions(folder: Path) -> None:
    told = json.loads(_PROGRAM.go("list", "-m", "-json", MODULE))
    copy(Path(told["Dir"]) / "config" / "crd" / "bases", folder / "crds")


def main() -> None:
    """`python -m realclusters.fluxbinary`: build ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"flux: {find()}\n")
    except Unavailable as error:
        sys.stdout.write(f"flux: none, tests that need it will be skipped: {error}\n")


if __name__ == "__main__":
    main()
