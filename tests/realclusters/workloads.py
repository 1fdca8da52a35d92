"""What makes workloads run without nodes: Kubernetes' controllers and scheduler, and kwok with one node.

cluster.py runs it beside a real kube-apiserver, the conformance suite beside Treeplane.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from realclusters.binaries import Binaries

_STAGES = Path(__file__).with_name("stages.yaml")
_PATIENT = "--node-monitor-grace-period=12h"
"""kwok's nodes tell of themselves every ten minutes, and their Leases may be late on a busy machine. Of a node that
counts as lost every Pod is unready, and kwok, which made it ready once, does not do it again."""
_SIZE = {"cpu": "32", "memory": "256Gi", "pods": "110"}
NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "node-0", "labels": {"kubernetes.io/hostname": "node-0"}},
    "status": {"allocatable": _SIZE, "capacity": _SIZE},
}
"""To be created once the programs run; kwok makes it ready."""


def commands(binaries: Binaries, kubeconfig: Path, *controllers: str) -> list[list[str]]:
    """Program and arguments of each; `controllers`: further arguments of kube-controller-manager."""
    config = f"--kubeconfig={kubeconfig}"
    alone = ("--leader-elect=false", "--secure-port=0")
    stages = (f"--config={binaries.stages}", f"--config={_STAGES}")
    return [
        ["kube-controller-manager", config, *alone, _PATIENT, *controllers],
        ["kube-scheduler", config, *alone],
        ["kwok", config, *stages, "--manage-all-nodes=true", "--cidr=10.240.0.0/16", "--node-ip=127.0.0.1"],
    ]


def ready(node: dict[str, Any]) -> bool:
    """Whether a Node takes Pods."""
    conditions = node.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
