"""Gitea's server: found where it is, built where it is not.

Used by the end-to-end tests (the fixture `gitea` of tests/e2e/conftest.py). Nothing is downloaded as a binary. In this
order:

1. ``GITEA_BINARY``, the program, beside which stand the folders `templates` and `options` of its sources;
2. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/gitea/<digest of go.mod, go.sum and the recipe>``;
3. built into the cache by Go, as binaries.py finds it, of the module that gitea/go.mod pins. It needs a C compiler, for
   SQLite. The module has no JavaScript, so its pages look like nothing; its API is whole.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from realclusters.binaries import Unavailable
from realclusters.pinned import PinnedProgram, copy

MODULE = "code.gitea.io/gitea"
VERSION = "v1.26.0"

_BUILD = ("build", "-trimpath", "-tags", "sqlite,sqlite_unlock_notify", "-gcflags=all=-N -l")
_FLAGS = ("-ldflags", f"-s -w -X main.Version={VERSION.removeprefix('v')}")
_C = {"CGO_ENABLED": "1", "CGO_CFLAGS": "-O0"}
_FOLDERS = ("templates", "options", "public")
_REMEDY = "have Go and a C compiler on PATH, or set GITEA_BINARY"
_PROGRAM = PinnedProgram("gitea", MODULE, (*_BUILD, *_FLAGS), _REMEDY, (_BUILD, _FLAGS, _C, _FOLDERS), environment=_C)


def find() -> Path:
    """Raises Unavailable."""
    return _PROGRAM.find(_with_folders)


def _with_folders(folder: Path) -> None:
    told = json.loads(_PROGRAM.go("mod", "download", "-json", f"{MODULE}@{VERSION}"))
    for name in _FOLDERS:
        copy(Path(told["Dir"]) / name, folder / name)


def main() -> None:
    """`python -m realclusters.giteabinary`: build ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"gitea: {find()}\n")
    except Unavailable as error:
        sys.stdout.write(f"gitea: none, tests that need it will be skipped: {error}\n")


if __name__ == "__main__":
    main()
