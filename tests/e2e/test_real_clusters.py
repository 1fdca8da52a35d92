"""The clusters that the other tests stand on: they run workloads, fail as told and leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from realclusters.cluster import RealCluster

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
"""


def test_a_deployment_becomes_available(
    real_cluster: Callable[..., RealCluster], eventually: Any, record_property: Callable[[str, object], None]
) -> None:
    begin = time.monotonic()
    cluster = real_cluster("whole")
    if not cluster.workloads:
        pytest.skip("KUBEBUILDER_ASSETS has no controller-manager, scheduler and kwok: no Deployment can run")
    up = time.monotonic()
    cluster.kubectl("apply", "-f", "-", input=DEPLOYMENT)
    replicas = "jsonpath={.status.availableReplicas}"
    eventually(lambda: cluster.kubectl("get", "deployment", "web", "-o", replicas) == "3", 60)
    available = time.monotonic()
    record_property("seconds_to_ready", round(up - begin, 2))
    record_property("seconds_to_available", round(available - up, 2))
    sys.stdout.write(f"ready after {up - begin:.1f} s, 3 replicas available after another {available - up:.1f} s\n")


def test_two_clusters_run_side_by_side(two_real_clusters: tuple[RealCluster, RealCluster]) -> None:
    west, east = two_real_clusters
    assert west.server != east.server
    for cluster in two_real_clusters:
        assert "server" in cluster.kubeconfig.decode()
        assert "v1.36" in cluster.kubectl("version")


def test_a_cluster_hangs_refuses_and_comes_back(real_cluster: Callable[..., RealCluster], eventually: Any) -> None:
    cluster = real_cluster("bare", workloads=False)
    cluster.kubectl("create", "configmap", "kept", "--from-literal=a=b")

    cluster.pause()
    with pytest.raises(TimeoutError):
        cluster.request("GET", "/readyz", seconds=0.5)
    cluster.resume()
    # It may still say of etcd that it did not answer in time.
    eventually(lambda: cluster.request("GET", "/readyz") == (200, "ok"), 60, "it is as before")

    cluster.kill()
    with pytest.raises(ConnectionRefusedError):
        cluster.request("GET", "/readyz")
    server = cluster.server
    cluster.start()
    assert cluster.server == server
    assert cluster.kubectl("get", "configmap", "kept", "-o", "jsonpath={.data.a}") == "b"


def test_processes_end_with_the_process_that_started_them(tmp_path: Path, eventually: Any) -> None:
    """Also when it is killed, and also when the thread that started them ended before."""
    script = f"""
import os, pathlib, sys, threading
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from realclusters.processes import Process
started = []
thread = threading.Thread(target=lambda: started.append(Process(["sleep", "600"], pathlib.Path({str(tmp_path)!r}))))
thread.start(); thread.join()
print(started[0].pid, flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert _runs(pid)
        parent.kill()
    eventually(lambda: not _runs(pid), 30)


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):  # the other one where it ends between opening and reading
        return False
