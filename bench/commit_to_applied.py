"""From `git push` to kubectl and to a cluster: how long a commit of one object takes, and what it costs.

    .venv/bin/python bench/commit_to_applied.py [--commits 200]

A fleet with one workspace that runs on one real kube-apiserver (etcd with fsync), served by `treeplane up`, pushed to
over https with git. Each commit changes one ConfigMap. Two watches, one on the workspace and one on the cluster, tell
when the change has arrived. Times count from the moment `git push` is started, so git's own time is in them; it is
shown apart as well.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import Usage, milliseconds, percentile, size, table, usage, verdict
from realclusters import binaries
from realclusters.cluster import TOKEN, RealCluster
from support.plane import Clone, Connection, Credentials, Plane, Sightings, follow

WORKSPACE = "root:bench"
OBJECT = "workspaces/root/bench/subject.yaml"
SECONDS = 30.0

FLEET = {
    "treeplane.yaml": """
apiVersion: treeplane.dev/v1alpha1
kind: Fleet
metadata: {name: bench}
""",
    "workspaces/root/locations/workspace.yaml": """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: universal, path: root}}
""",
    "workspaces/root/locations/target.yaml": """
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: workload}
spec: {reference: {export: {path: "root:compute", name: workload.kcp.io}}}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: scheduling}
spec: {reference: {export: {path: "root:compute", name: scheduling.kcp.io}}}
---
apiVersion: workload.kcp.io/v1alpha1
kind: SyncTarget
metadata: {name: real, labels: {bench: "true"}}
spec: {connection: {kubeconfigSecretRef: {namespace: default, name: real, key: kubeconfig}}}
---
apiVersion: scheduling.kcp.io/v1alpha1
kind: Location
metadata: {name: here, labels: {bench: "true"}}
spec:
  resource: {group: workload.kcp.io, version: v1alpha1, resource: synctargets}
  instanceSelector: {matchLabels: {bench: "true"}}
""",
    "workspaces/root/locations/access.yaml": """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: location-user}
rules: [{apiGroups: [scheduling.kcp.io], resources: [locations], verbs: [use]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: location-users}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: location-user}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:workspace:root:bench"}]
""",
    "workspaces/root/bench/workspace.yaml": """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: universal, path: root}}
""",
    "workspaces/root/bench/placement.yaml": """
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: kubernetes}
spec: {reference: {export: {path: "root:compute", name: kubernetes}}}
---
apiVersion: apis.kcp.io/v1alpha1
kind: APIBinding
metadata: {name: scheduling}
spec: {reference: {export: {path: "root:compute", name: scheduling.kcp.io}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {bench: "true"}}
---
apiVersion: scheduling.kcp.io/v1alpha1
kind: Placement
metadata: {name: here}
spec:
  locationSelectors: [{matchLabels: {bench: "true"}}]
  locationResource: {group: workload.kcp.io, version: v1alpha1, resource: synctargets}
  locationWorkspace: root:locations
  namespaceSelector: {matchLabels: {bench: "true"}}
""",
}


def subject(number: int) -> str:
    return f"""apiVersion: v1
kind: ConfigMap
metadata: {{name: subject}}
data: {{number: "{number}"}}
"""


@dataclass(slots=True)
class Times:
    """Seconds from the start of each push."""

    pushed: list[float] = field(default_factory=list)
    visible: list[float] = field(default_factory=list)
    applied: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        cluster = RealCluster("real", folder / "cluster", binaries.find(), workloads=False, durable=True)
        with cluster:
            run(options.commits, folder, cluster)


def run(commits: int, folder: Path, cluster: RealCluster) -> None:
    seed = folder / "seed"
    for path, content in {**FLEET, OBJECT: subject(0)}.items():
        file = seed / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    data = folder / "data"
    write_credentials(data / "keys" / "secrets" / "root:locations", cluster.kubeconfig)
    with Plane(seed, data, "--trust-targets", "root:locations") as plane:
        visible = follow(
            lambda: plane.connection(None).stream(f"/clusters/{WORKSPACE}/api/v1/configmaps?watch=1"), number_of
        )
        applied = follow(lambda: cluster_watch(cluster), number_of)
        visible.wait("0", SECONDS)
        applied.wait("0", SECONDS)
        clone = plane.clone(folder / "clone")
        drift = idle_writes(plane, 5.0)
        before = {pid: taken for pid in watched(plane, cluster) if (taken := usage(pid))}
        first, begin = revision(plane), time.monotonic()
        times = measure(clone, visible, applied, commits)
        seconds = time.monotonic() - begin
        # The last status commit may still be under way: what it writes belongs to the run as well.
        time.sleep(2)
        writes = revision(plane) - first - drift * (seconds + 2)
        report(times, writes / commits, drift)
        report_processes(before, seconds, commits)


def write_credentials(folder: Path, kubeconfig: bytes) -> None:
    folder.mkdir(parents=True)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "real", "namespace": "default"},
        "data": {"kubeconfig": base64.b64encode(kubeconfig).decode()},
    }
    file = folder / "real.yaml"
    file.touch(0o600)
    file.write_text(json.dumps(secret))


def cluster_watch(cluster: RealCluster) -> Any:
    credentials = Credentials.read(cluster.kubeconfig_path)
    assert TOKEN in credentials.headers["Authorization"]
    return Connection(credentials, None).stream("/api/v1/configmaps?watch=1")


def number_of(obj: Any) -> str | None:
    number: str | None = obj.get("data", {}).get("number") if obj["metadata"]["name"] == "subject" else None
    return number


def measure(clone: Clone, visible: Sightings, applied: Sightings, commits: int) -> Times:
    times = Times()
    for number in range(1, commits + 1):
        clone.write(OBJECT, subject(number))
        clone.commit(f"number {number}")
        start = time.monotonic()
        clone.push()
        times.pushed.append(time.monotonic() - start)
        times.visible.append(visible.wait(str(number), SECONDS) - start)
        times.applied.append(applied.wait(str(number), SECONDS) - start)
        progress(number, commits)
    return times


def progress(done: int, total: int) -> None:
    if done % 50 == 0 or done == total:
        print(f"{done} of {total} commits", file=sys.stderr, flush=True)


def revision(plane: Plane) -> int:
    listed = plane.get(f"/clusters/{WORKSPACE}/api/v1/configmaps?limit=1")
    return int(listed["metadata"]["resourceVersion"])


def idle_writes(plane: Plane, seconds: float) -> float:
    """Writes a second while nothing is committed (heartbeats and the like)."""
    time.sleep(2)
    before = revision(plane)
    time.sleep(seconds)
    return (revision(plane) - before) / seconds


def watched(plane: Plane, cluster: RealCluster) -> list[int]:
    return [*plane.pids(), *cluster.pids.values()]


def report(times: Times, writes: float, drift: float) -> None:
    rows = [["", "p50", "p99", "max", "expected", ""]]
    for name, values, p50, p99 in (
        ("push answered", times.pushed, None, None),
        ("push → visible", times.visible, None, 1.0),
        ("push → applied", times.applied, 0.5, 2.0),
    ):
        middle, high = percentile(values, 0.5), percentile(values, 0.99)
        limits = [(middle, p50, "p50"), (high, p99, "p99")]
        wanted = ", ".join(f"{label} < {milliseconds(limit)}" for _, limit, label in limits if limit)
        good = all(value < limit for value, limit, _ in limits if limit)
        shown = [milliseconds(middle), milliseconds(high), milliseconds(max(values))]
        rows.append([name, *shown, wanted, verdict(good) if wanted else ""])
    table(f"{len(times.visible)} commits of one object", rows)
    table(
        "writes to the store",
        [
            ["per commit", f"{writes:.2f}", "expected 1.00", verdict(0.9 < writes < 1.1)],
            ["per second while idle", f"{drift:.2f}", "", ""],
        ],
    )


def report_processes(before: dict[int, Usage], seconds: float, commits: int) -> None:
    rows = [["process", "CPU", "CPU per commit", "own memory", "share of mapped files"]]
    for pid, start in before.items():
        end = usage(pid)
        if end is not None:
            cpu = end.cpu_seconds - start.cpu_seconds
            share = f"{cpu / seconds:.0%} of a core"
            rows.append([end.name, share, milliseconds(cpu / commits), size(end.own), size(end.mapped)])
    table(f"processes over {seconds:.0f} s", rows)


if __name__ == "__main__":
    main()
