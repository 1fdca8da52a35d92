"""The program of Kubernetes' end-to-end suite: found in the cache, else built by Go from the module that go.mod pins.

Nothing is downloaded as a binary. Running it is suite.py's.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from pathlib import Path

from realclusters import binaries

HERE = Path(__file__).resolve().parent
PACKAGE = "k8s.io/kubernetes/test/e2e"
FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-ldflags", binaries.LDFLAGS)


def find() -> Path:
    """The program, built first if need be (several processes may ask at once: one builds). Raises Unavailable."""
    folder = binaries.cache_home().with_name("conformance")
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"e2e-{_digest()}.test"
    with binaries.locked(program.with_suffix(".lock")):
        if not program.exists():
            _build(program)
    return program


def _digest() -> str:
    parts = [(HERE / "go.mod").read_bytes(), (HERE / "go.sum").read_bytes(), repr((FLAGS, platform.machine())).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def _build(program: Path) -> None:
    """Under another name first: whoever finds the program finds it whole."""
    sys.stderr.write(f"building Kubernetes' end-to-end suite {binaries.KUBERNETES} into {program} (once)\n")
    unfinished = program.with_suffix(".unfinished")
    command = [binaries.go(), "test", "-c", *FLAGS, "-o", str(unfinished), PACKAGE]
    binaries.run(command, {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""}, HERE)
    unfinished.rename(program)


def module() -> Path:
    """Where the module's files are: the suite reads a few of them."""
    command = [binaries.go(), "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes"]
    return Path(binaries.run(command, {**os.environ, "GOFLAGS": ""}, HERE).strip())
