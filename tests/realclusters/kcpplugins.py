"""kcp's own plugins of kubectl: found where they are, built where they are not.

Used by the end-to-end tests (the fixture `kcp_plugins` of tests/e2e/conftest.py). Nothing is downloaded as a binary,
and nothing of kcp is kept here. In this order:

1. ``KCP_PLUGINS``, a folder with kubectl-ws, kubectl-kcp and kubectl-create-workspace;
2. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/kcp-plugins/<commit of kcp>``;
3. built into the cache by Go, as binaries.py finds it, of kcp's sources at that commit, which git brings. Its modules
   stand in the one repository and replace each other by folders, so Go alone does not find them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from realclusters import binaries
from realclusters.binaries import Unavailable

SOURCE = "https://github.com/kcp-dev/kcp"
COMMIT = "dac74f5955f1d4c703e87dd5cfecbc9a0a514643"
PROGRAMS = ("kubectl-ws", "kubectl-kcp", "kubectl-create-workspace")

_MODULES = "staging/src/github.com/kcp-dev"
_REMEDY = "reach github.com and Go's modules, or set KCP_PLUGINS to the folder of the plugins"


def find() -> Path:
    """The folder with the plugins, built first if need be (several processes may ask at once: one builds). Raises
    Unavailable."""
    told = os.environ.get("KCP_PLUGINS", "")
    if told:
        missing = [name for name in PROGRAMS if not (Path(told) / name).exists()]
        if missing:
            raise Unavailable(f"KCP_PLUGINS={told} has no {', no '.join(missing)}")
        return Path(told)
    folder = binaries.cache_home().with_name("kcp-plugins") / COMMIT
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with binaries.locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _build(folder)
    return folder


def _build(folder: Path) -> None:
    """Built beside the final folder and renamed: whoever finds the folder finds it whole."""
    program = binaries.go()
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        source, made = scratch / "kcp", scratch / "made"
        for each in (source, made):
            each.mkdir()
        sys.stderr.write(f"building kcp's plugins into {folder} (once)\n")
        impatient = {"GIT_HTTP_LOW_SPEED_LIMIT": "1000", "GIT_HTTP_LOW_SPEED_TIME": "20"}
        git = {**os.environ, "GIT_TERMINAL_PROMPT": "0", **impatient}
        binaries.run(["git", "init", "--quiet"], git, source, _REMEDY)
        binaries.run(["git", "fetch", "--quiet", "--depth=1", SOURCE, COMMIT], git, source, _REMEDY)
        binaries.run(["git", "checkout", "--quiet", "FETCH_HEAD", "--", _MODULES], git, source, _REMEDY)
        build = [program, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", f"{made}/"]
        environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}
        programs = [f"./cmd/{name}" for name in PROGRAMS]
        binaries.run([*build, *programs], environment, source / _MODULES / "cli", _REMEDY)
        made.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main() -> None:
    """`python -m realclusters.kcpplugins`: build ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"kcp's plugins: {find()}\n")
    except Unavailable as error:
        sys.stdout.write(f"kcp's plugins: none, tests that need them will be skipped: {error}\n")


if __name__ == "__main__":
    main()
