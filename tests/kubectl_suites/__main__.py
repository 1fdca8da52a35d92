"""Run kubectl's own shell suite (test/cmd of Kubernetes) against Treeplane.

    cd tests && python -m kubectl_suites                     what passing.txt lists; it fails if one of them does
    python -m kubectl_suites --all                           every function, as a table of what passes
    python -m kubectl_suites run_pod_tests run_wait_tests
    python -m kubectl_suites --inert …                       without the controllers that make Pods of workloads
    python -m kubectl_suites --port 6443 …                   against a server at that port of 127.0.0.1 that knows the
                                                             token `admin-token` as an administrator's

The server is a `treeplane up` with one workspace of type kube-compat, served at the root of a port (front.py), and
Kubernetes' own kube-controller-manager, as the suite has one. Each function runs in a process of its own (driver.sh)
and in the suite's order; its output is a file in --logs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kubectl_suites.front import Front
from kubectl_suites.tree import lay_out
from realclusters import binaries
from realclusters.processes import Process
from support import compat
from support.plane import Plane, environment

HERE = Path(__file__).parent
PASSING = HERE / "passing.txt"
FUNCTION_SECONDS = 300
DISABLED = ("ServiceAccount", "DefaultStorageClass", "DefaultTolerationSeconds", "StorageObjectInUseProtection")
"""Admission plugins that the suite's server does without; it has others that are off here anyway."""
FLEET = """\
apiVersion: treeplane.dev/v1alpha1
kind: Fleet
metadata: {name: suite}
spec: {}
"""
CONTROLLERS = """\
apiVersion: v1
kind: Config
clusters: [{{name: it, cluster: {{server: "https://127.0.0.1:{port}", insecure-skip-tls-verify: true}}}}]
users: [{{name: it, user: {{token: admin-token}}}}]
contexts: [{{name: it, context: {{cluster: it, user: it}}}}]
current-context: it
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    function: str
    code: int | None
    """None where the time was over."""
    seconds: float

    @property
    def passed(self) -> bool:
        return self.code == 0

    def __str__(self) -> str:
        word = "passed" if self.passed else "FAILED" if self.code is not None else "TIME OVER"
        return f"{word:10}{self.seconds:6.1f} s  {self.function}"


def main() -> int:
    options = _options()
    try:
        return _run_all(options)
    except binaries.Unavailable as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _run_all(options: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kubectl-suites-")))
        tree = scratch / "tree"
        functions = lay_out(tree, options.kubectl)
        logs = options.logs or Path(tempfile.mkdtemp(prefix="kubectl-suites-logs-"))
        logs.mkdir(parents=True, exist_ok=True)
        wanted = options.functions or (functions if options.all else passing())
        unknown = [function for function in wanted if function not in functions]
        if unknown:
            sys.stderr.write(f"no such function in the suite: {', '.join(unknown)}\n")
            return 2
        port = options.port or stack.enter_context(_serving(scratch, options.writes))
        if not (options.port or options.inert):
            stack.enter_context(_controlling(scratch, port))
        bad = 0
        for function in sorted(wanted, key=functions.index):
            outcome = run(function, port, tree, logs / f"{function}.log")
            bad += not outcome.passed
            print(outcome, flush=True)  # noqa: T201
    print(f"{len(wanted) - bad} passed, {bad} failed; logs in {logs}")  # noqa: T201
    return 1 if bad else 0


def run(function: str, port: int, tree: Path, log: Path) -> Outcome:
    """One function, in a process group of its own that ends with it."""
    start = time.monotonic()
    command = ["bash", str(HERE / "driver.sh"), function, str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=tree,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(FUNCTION_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return Outcome(function, code, time.monotonic() - start)


def passing() -> list[str]:
    lines = PASSING.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@contextlib.contextmanager
def _serving(folder: Path, writes: str) -> Iterator[int]:
    """A workspace with Kubernetes' kinds at the root of a port."""
    fleet = folder / "fleet"
    compat.put(fleet, "suite", writes)
    (fleet / "treeplane.yaml").write_text(FLEET)
    tokens = folder / "tokens.csv"
    tokens.write_text('admin-token,admin,,"system:masters"\n')
    data = folder / "server" / "data"
    without = ",".join(DISABLED)
    with Plane(fleet, data, "--token-auth-file", str(tokens), "--disable-admission-plugins", without) as plane:
        certificate = data / "keys" / "server.crt"
        front = Front(plane.port, "/clusters/root:suite", certificate, certificate.with_suffix(".key"))
        with front.running() as port:
            yield port


@contextlib.contextmanager
def _controlling(folder: Path, port: int) -> Iterator[None]:
    """kube-controller-manager, with the arguments that the suite gives it."""
    config = folder / "controller-manager.kubeconfig"
    config.write_text(CONTROLLERS.format(port=port))
    authority = folder / "tree" / "hack" / "testdata" / "ca"
    program = binaries.find().path("kube-controller-manager")
    signing = [f"--cluster-signing-cert-file={authority}/ca.crt", f"--cluster-signing-key-file={authority}/ca.key"]
    process = Process([program, f"--kubeconfig={config}", "--secure-port=0", "--leader-elect=false", *signing], folder)
    try:
        yield
    finally:
        process.end(signal.SIGTERM)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="kubectl_suites", description="kubectl's own shell suite")
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help="which; otherwise those of passing.txt")
    parser.add_argument("--all", action="store_true", help="every function of the suite")
    parser.add_argument("--kubectl", default="", help="another kubectl than that of the suite's version")
    parser.add_argument("--writes", default="Store", choices=compat.WRITES, help="what the workspace's writes do")
    parser.add_argument("--inert", action="store_true", help="without kube-controller-manager")
    parser.add_argument("--port", type=int, help="a server that runs already, instead of starting Treeplane")
    parser.add_argument("--logs", type=Path, help="the folder for the functions' output")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
