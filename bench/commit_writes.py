"""Writes that are commits: how long one takes, and how many go into one commit under load.

    .venv/bin/python bench/commit_writes.py [--writes 1000]

ConfigMaps are created over TLS in two workspaces of one server: in one writes are commits, in the other they go to the
store alone. One client at first, then 64 at once; and one client again, when the workspace holds all of them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import uvloop
from api import config_map, maps
from apiclient import Result, Server, load
from measure import milliseconds, percentile, table, verdict
from support.plane import Credentials, Plane

SINGLE, TOGETHER = 50, 64
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
FLEET = {
    "treeplane.yaml": "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: bench}\n",
    "workspaces/root/committed.yaml": TYPE % ("committed", "Commit"),
    "workspaces/root/stored.yaml": TYPE % ("stored", "Store"),
    "workspaces/root/commit/workspace.yaml": WORKSPACE % "committed",
    "workspaces/root/store/workspace.yaml": WORKSPACE % "stored",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--writes", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        folder = Path(name)
        for path, text in FLEET.items():
            (folder / "fleet" / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / "fleet" / path).write_text(text)
        with Plane(folder / "fleet", folder / "server" / "data") as plane:
            uvloop.run(run(plane, options.writes))


async def run(plane: Plane, writes: int) -> None:
    rows, names = [["", "", "per second", "p50", "p99", "CPU ms each", "commits"]], count()
    alone: dict[str, Result] = {}
    for title, number, connections in (
        ("one client", SINGLE, 1),
        (f"{TOGETHER} clients", writes, TOGETHER),
        (f"one client, {writes} objects there", SINGLE, 1),
    ):
        for where in ("commit", "store"):
            server = Server(where, Credentials.read(plane.kubeconfig), f"/clusters/root:{where}", plane.pids)
            wanted = [server.request("POST", maps("default"), config_map("default", f"c{next(names)}"))
                      for _ in range(number)]  # fmt: skip
            before = commits(plane)
            result = await load(server, wanted, connections)
            alone.setdefault(where, result)
            figures = [milliseconds(percentile(result.latencies, share)) for share in (0.5, 0.99)]
            cost = f"{1000 * result.cpu / number:.1f}"
            made = str(commits(plane) - before)
            rows.append([title, where, f"{number / result.seconds:.0f}", *figures, cost, made])
    table("creating ConfigMaps", rows)
    median = percentile(alone["commit"].latencies, 0.5)
    table("expected", [["a write alone, median", milliseconds(median), "< 100 ms", verdict(median < 0.1)]])


def commits(plane: Plane) -> int:
    """On the served branch."""
    git = ["git", "-C", str(plane.data / "repo" / "fleet.git"), "rev-list", "--count", "main"]
    return int(subprocess.run(git, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
