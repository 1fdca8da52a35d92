"""Gitea's server: found where it is, built where it is not.

Used by the end-to-end tests (the fixture `gitea` of tests/e2e/conftest.py). Nothing is downloaded as a binary. In this
order:

1. ``GITEA_BINARY``, the program, beside which stand the folders `templates` and `options` of its sources;
2. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/gitea/<digest of go.mod, go.sum and the recipe>``;
3. built into the cache by Go, as binaries.py finds it, of the module that gitea/go.mod pins. It needs a C compiler, for
   SQLite. The module has no JavaScript, so its pages look like nothing; its API is whole.

It is not optimized: that takes a third off what compiling costs, and the tests ask for little.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

from realclusters import binaries
from realclusters.binaries import Unavailable

MODULE = "code.gitea.io/gitea"
VERSION = "v1.26.0"

_HERE = Path(__file__).resolve().parent / "gitea"
_BUILD = ("build", "-trimpath", "-tags", "sqlite,sqlite_unlock_notify", "-gcflags=all=-N -l")
_FLAGS = ("-ldflags", f"-s -w -X main.Version={VERSION.removeprefix('v')}")
_C = {"CGO_ENABLED": "1", "CGO_CFLAGS": "-O0"}
_FOLDERS = ("templates", "options", "public")
_REMEDY = "have Go and a C compiler on PATH, or set GITEA_BINARY"


def find() -> Path:
    """The program, built first if need be (several processes may ask at once: one builds). Raises Unavailable."""
    told = os.environ.get("GITEA_BINARY", "")
    if told:
        if not Path(told).is_file():
            raise Unavailable(f"GITEA_BINARY={told} is no file")
        return Path(told)
    folder = binaries.cache_home().with_name("gitea") / _digest()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with binaries.locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _build(folder)
    return folder / "gitea"


def _digest() -> str:
    parts = [(_HERE / "go.mod").read_bytes(), (_HERE / "go.sum").read_bytes()]
    parts.append(repr((_BUILD, _FLAGS, _C, _FOLDERS, platform.machine())).encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(folder: Path) -> None:
    """Built beside the final folder and renamed: whoever finds the folder finds it whole."""
    if shutil.which(os.environ.get("CC", "cc")) is None:
        raise Unavailable(f"there is no C compiler; {_REMEDY}")
    binaries.cache_home().mkdir(parents=True, exist_ok=True)
    program = binaries.go()
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        sys.stderr.write(f"building Gitea {VERSION} for the tests into {folder} (once)\n")
        environment = {**os.environ, **_C}
        binaries.run([program, *_BUILD, *_FLAGS, "-o", str(scratch / "gitea"), MODULE], environment, _HERE, _REMEDY)
        told = binaries.run([program, "mod", "download", "-json", f"{MODULE}@{VERSION}"], environment, _HERE, _REMEDY)
        for name in _FOLDERS:
            _copy(Path(json.loads(told)["Dir"]) / name, scratch / name)
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _copy(source: Path, target: Path) -> None:
    """Without modes: Go's modules are nobody's to write to, and so nobody's to delete."""
    for file in source.rglob("*"):
        if file.is_file():
            (target / file.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / file.relative_to(source))


def main() -> None:
    """`python -m realclusters.giteabinary`: build ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"gitea: {find()}\n")
    except Unavailable as error:
        sys.stdout.write(f"gitea: none, tests that need it will be skipped: {error}\n")


if __name__ == "__main__":
    main()
