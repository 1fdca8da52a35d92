"""What the suite runs against: Treeplane in the place of kube-apiserver, and around it what a cluster has.

The server is a `treeplane up` with one workspace, of a type that extends kube-compat, alone in a fleet of its own.
Kubernetes' own controller manager and scheduler run beside it and kwok plays a node, so that Pods come to run, without
containers. What Treeplane does itself (garbage, ends of namespaces, ServiceAccounts and their tokens, root CAs,
aggregated roles) is switched off in the controller manager: the suite is to see Treeplane do it.
"""

from __future__ import annotations

import contextlib
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml
from realclusters import workloads
from realclusters.binaries import Binaries
from realclusters.processes import Process
from support import compat
from support.plane import SHARD_BASE, Plane, PlaneError

PATH = "/clusters/root:suite"
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: suite}\nspec: {}\n"
ACCESS = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: enter}
rules: [{verbs: [access], nonResourceURLs: [/]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: enter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: enter}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: system:authenticated}]
"""
"""As in a cluster: whoever is known gets in, and may do what RBAC says."""
OURS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "legacy-serviceaccount-token-cleaner-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
)
READY_SECONDS = 60.0
HISTORY_SECONDS = 60
"""The suite waits for past states to be forgotten."""


@contextlib.contextmanager
def serving(programs: Binaries, writes: str, *, pods: bool = True) -> Iterator[Path]:
    """A kubeconfig of the workspace's administrator, while it is served. `writes`: what writes to it do; `pods`: with
    what makes Pods run, if the programs for that are there."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name:
        folder = Path(name)
        workspace = compat.put(folder / "fleet", "suite", writes)
        (folder / "fleet" / "treeplane.yaml").write_text(FLEET)
        (workspace / "access.yaml").write_text(ACCESS)
        data = folder / "server" / "data"
        with Plane(folder / "fleet", data, f"--history-seconds={HISTORY_SECONDS}") as plane:
            kubeconfig = folder / "kubeconfig"
            kubeconfig.write_text(_kubeconfig(plane))
            with _running_pods(plane, programs, kubeconfig) if pods else contextlib.nullcontext():
                yield kubeconfig


def _kubeconfig(plane: Plane) -> str:
    """As of a cluster's administrator, who is in system:masters."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    config["current-context"] = SHARD_BASE
    for entry in config["clusters"]:
        entry["cluster"]["server"] = f"https://127.0.0.1:{plane.port}{PATH}"
    text: str = yaml.safe_dump(config)
    return text


@contextlib.contextmanager
def _running_pods(plane: Plane, programs: Binaries, kubeconfig: Path) -> Iterator[None]:
    """Where the programs are missing, nothing runs."""
    if not programs.run_workloads:
        yield
        return
    ours = f"--controllers=*,{','.join(f'-{name}' for name in OURS)}"
    authority = plane.data / "keys" / "ca"
    often = "--resource-quota-sync-period=20s"  # the suite waits for it, with the usual five minutes too
    signing = [f"--cluster-signing-cert-file={authority}.crt", f"--cluster-signing-key-file={authority}.key"]
    processes = []
    try:
        for program, *arguments in workloads.commands(programs, kubeconfig, ours, often, *signing):
            processes.append(Process([programs.path(program), *arguments], kubeconfig.parent))
        plane.request("POST", f"{PATH}/api/v1/nodes", workloads.NODE)
        _await_node(plane)
        yield
    finally:
        for process in reversed(processes):
            process.end(signal.SIGTERM)


def _await_node(plane: Plane) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not workloads.ready(plane.get(f"{PATH}/api/v1/nodes/{workloads.NODE['metadata']['name']}")):
        if time.monotonic() > deadline:
            raise PlaneError("kwok made no node ready")
        time.sleep(0.1)
