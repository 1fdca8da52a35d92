"""A program that does what renderers must not, built where it is not: `hostile/main.go` says what.

Used by the tests of reconciler/rendering (the fixture `hostile`). It is linked to nothing, as kubectl and helm are, and
kept in ``${XDG_CACHE_HOME:-~/.cache}/treeplane/hostile/<digest of its source>``.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import tempfile
from pathlib import Path

from realclusters import binaries

_SOURCE = Path(__file__).parent / "hostile" / "main.go"


def find() -> Path:
    """The program, built first if need be (several processes may ask at once: one builds). Raises Unavailable."""
    recipe = hashlib.sha256(_SOURCE.read_bytes() + platform.machine().encode()).hexdigest()[:16]
    folder = binaries.cache_home().with_name("hostile") / recipe
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with binaries.locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _build(folder)
    return folder / "hostile"


def _build(folder: Path) -> None:
    """Built beside the final folder and renamed: whoever finds the folder finds it whole."""
    binaries.cache_home().mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        command = [
            binaries.go(),
            "build",
            "-trimpath",
            "-ldflags",
            "-s -w",
            "-o",
            str(scratch / "hostile"),
            str(_SOURCE),
        ]
        binaries.run(command, {**os.environ, "CGO_ENABLED": "0", "GO111MODULE": "off"})
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
