"""Writes that are commits: how long one takes, and how many go into one commit under load.

    .venv/bin/python bench/commit_writes.py [--writes 1000]

ConfigMaps are created over TLS in workspaces of one server: in some writes are commits, in others they go to the store
alone. One client at first, then 64 at once, of one user, of 8 and of 64; and one client again, when the workspace
holds all of them. A kube-apiserver with etcd creates the same ones before all that and behind it, since machines differ
from each other and from one minute to the next: 500 writes a second of 64 users were asked for where it creates 1,650
from 16 clients (docs/performance.md).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import peer
import uvloop
from api import CONNECTIONS, config_map, maps, served
from apiclient import Result, Server, load
from measure import milliseconds, percentile, table, verdict
from support.plane import Credentials, Plane

SINGLE, TOGETHER = 50, 64
USERS = (1, 8, 64)
EXPECTED = 500
"""Writes a second of 64 users, where a kube-apiserver creates `peer.PEER` a second."""
ALONE = "one client"
TYPE = """
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: %s}
spec: {writes: %s}
"""
WORKSPACE = """
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
spec: {type: {name: %s, path: root}}
"""
GROUP = "writers"
"""Whoever is one of it may write in all of the workspaces."""
GRANTS = "---\n".join(
    f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{role}"}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: Group, name: {GROUP}}}]
"""
    for name, role in (("enter", "system:kcp:workspace:access"), ("write", "cluster-admin"))
)
FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: bench}\n",
    "workspaces/root/committed.yaml": TYPE % ("committed", "Commit"),
    "workspaces/root/stored.yaml": TYPE % ("stored", "Store"),
    **{
        f"workspaces/root/{kind}-{users}/{file}": text
        for kind, type_ in (("commit", "committed"), ("store", "stored"))
        for users in USERS
        for file, text in (("workspace.yaml", WORKSPACE % type_), ("grants.yaml", GRANTS))
    },
}
"""A commit takes longer where many objects stand, so each number of users has its own workspaces."""


@dataclass(frozen=True, slots=True)
class WriteCase:
    """`users`: who write, in turn."""

    title: str
    writes: int
    connections: int
    users: int = 1

    def requests(self, server: Server, names: Iterator[int]) -> list[bytes]:
        return [
            server.request("POST", maps("default"), config_map("default", f"c{next(names)}"), who=(f"user-{n}", GROUP))
            for n in (number % self.users for number in range(self.writes))
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--writes", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        before = peer.creates(folder / "before")
        with served(folder, files=FLEET) as plane:
            rows, found = uvloop.run(of_plane(plane, options.writes))
        tell(rows, found, [before, peer.creates(folder / "behind")])


Found = dict[tuple[str, str], Result]
"""By the title of a case, and which writes."""


async def of_plane(plane: Plane, writes: int) -> tuple[list[list[str]], Found]:
    rows, found, names = list[list[str]](), Found(), count()
    cases = [
        WriteCase(ALONE, SINGLE, 1),
        *(WriteCase(together(users), writes, TOGETHER, users) for users in USERS),
        WriteCase(f"one client, {writes} objects there", SINGLE, 1),
    ]
    for case in cases:
        for where in ("commit", "store"):
            server = Server(
                where, Credentials.read(plane.kubeconfig), f"/clusters/root:{where}-{case.users}", plane.pids
            )
            before = commits(plane)
            result = found[case.title, where] = await load(server, case.requests(server, names), case.connections)
            rows.append([case.title, where, *figures(result), str(commits(plane) - before)])
    return rows, found


def tell(rows: list[list[str]], found: Found, peers: list[Result]) -> None:
    heading = ["", "", "per second", "p50", "p99", "CPU ms each", "commits"]
    before, behind = ([f"{CONNECTIONS} clients", "kube-apiserver", *figures(each), ""] for each in peers)
    table("creating ConfigMaps", [heading, before, *rows, behind])
    median = percentile(found[ALONE, "commit"].latencies, 0.5)
    one, many = (found[together(users), "commit"].rate for users in (USERS[0], USERS[-1]))
    share, expected = peer.share(many, peers), EXPECTED / peer.PEER
    beside = f"a write of {USERS[-1]} users' beside one of one user's"
    table("expected", [
        ["a write alone, median", milliseconds(median), "< 100 ms", verdict(median < 0.1)],
        [f"writes a second of {USERS[-1]} users", f"{many:.0f}", f">= {EXPECTED}", verdict(many >= EXPECTED)],
        ["the same beside a kube-apiserver", f"{share:.2f}", f">= {expected:.2f}", verdict(share >= expected)],
        [beside, f"{many / one:.2f}", ">= 0.7", verdict(many >= 0.7 * one)],
    ])  # fmt: skip


def figures(result: Result) -> list[str]:
    times = [milliseconds(percentile(result.latencies, share)) for share in (0.5, 0.99)]
    return [f"{result.rate:.0f}", *times, f"{result.cost:.1f}"]


def together(users: int) -> str:
    return f"{TOGETHER} clients of {users} user{'s' if users > 1 else ''}"


def commits(plane: Plane) -> int:
    """On the served branch."""
    git = ["git", "-C", str(plane.data / "repo" / "fleet.git"), "rev-list", "--count", "main"]
    return int(subprocess.run(git, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
