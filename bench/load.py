"""N workspaces in one commit: how fast they are all Ready, and what each costs on disk and in memory.

    .venv/bin/python bench/load.py 10000

Each workspace is a workspace.yaml and one small ConfigMap, two files in a directory, fanned out over 256 grouping
directories. `treeplane up` serves an empty fleet first; then the commit is pushed over https. The clock runs from the
start of `git push` until every Workspace is Ready.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import Usage, bytes_on_disk, size, table, usage, verdict
from support.plane import Clone, Connection, Plane, PlaneError

FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: bench}\n"
ROOT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: about}\ndata: {this: is a benchmark}\n"
WORKSPACE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: universal, path: root}}\n"
WORKSPACES = "/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces"
ROOT_CLUSTER = "/clusters/root/apis/core.kcp.io/v1alpha1/logicalclusters/cluster"
PAGE = 500
LARGE_PUSH = ("--max-push-mib", "4096")
"""A million workspaces are more than a server takes in one push by default."""


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes: on disk under the data directory, and of all processes together."""

    disk: dict[str, int]
    processes: list[Usage]

    @property
    def resident(self) -> int:
        return sum(each.own + each.mapped for each in self.processes)

    @property
    def stored(self) -> int:
        return sum(self.disk.values())

    @staticmethod
    def of(plane: Plane) -> Footprint:
        folders = [folder for folder in plane.data.iterdir() if folder.is_dir()]
        disk = {folder.name: bytes_on_disk(folder) for folder in sorted(folders)}
        return Footprint(disk, [taken for pid in plane.pids() if (taken := usage(pid))])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    parser.add_argument("--timeout", type=float, default=0, help="seconds; default: 60 and 10 per 1,000 workspaces")
    parser.add_argument("--roles", default="auto", help="as of `treeplane up`")
    options = parser.parse_args()
    count: int = options.workspaces
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        run(count, Path(name), options.timeout or 60 + count / 100, options.roles)


def run(count: int, folder: Path, timeout: float, roles: str) -> None:
    seed = folder / "seed"
    (seed / "workspaces" / "root").mkdir(parents=True)
    (seed / "treeplane.yaml").write_text(FLEET)
    (seed / "workspaces" / "root" / "about.yaml").write_text(ROOT)
    with Plane(seed, folder / "data", "--roles", roles, *LARGE_PUSH) as plane:
        clone = plane.clone(folder / "clone")
        add(clone, count)
        before = Footprint.of(plane)
        shipped = counted(plane.connection())
        start = time.monotonic()
        clone.push("origin", "HEAD")
        pushed = time.monotonic() - start
        ready = wait_ready(plane, count + shipped, start, timeout)
        check_last(plane, count)
        report(count, pushed, ready, before, Footprint.of(plane))


def directory(number: int) -> str:
    name = f"ws-{number}"
    return f"workspaces/root/{hashlib.sha256(name.encode()).hexdigest()[:2]}/{name}"


def config(number: int) -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: settings}}\ndata: {{number: '{number}'}}\n"


def add(clone: Clone, count: int, *, empty: bool = False) -> None:
    """One commit with all workspaces, through fast-import: a work tree of 2 N files would take longer than the test."""
    branch = clone.git("symbolic-ref", "HEAD").strip()
    command = ["git", "-C", str(clone.folder), "fast-import", "--quiet", "--date-format=now"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as importer:
        assert importer.stdin is not None
        message = f"{count} workspaces"
        who = "committer bench <bench@example.com> now"
        importer.stdin.write(f"commit {branch}\n{who}\ndata {len(message)}\n{message}\nfrom {branch}^0\n".encode())
        for number in range(count):
            files = (("workspace.yaml", WORKSPACE), ("settings.yaml", config(number)))
            for file, content in files[:1] if empty else files:
                text = f"M 100644 inline {directory(number)}/{file}\ndata {len(content)}\n{content}\n"
                importer.stdin.write(text.encode())
        importer.stdin.close()
    if importer.returncode:
        raise PlaneError("git fast-import failed")


def wait_ready(plane: Plane, count: int, start: float, timeout: float) -> float:
    """Seconds since `start` at which all were there and Ready. To read a million of them takes a minute, which is not
    counted: none of them may have changed since they were counted."""
    connection = plane.connection()
    shown = time.monotonic()
    try:
        while True:
            found, revision = count_at(connection)
            now = time.monotonic()
            if found == count and all_ready(connection, revision):
                return now - start
            if now > start + timeout:
                raise PlaneError(f"{found} of {count} workspaces after {timeout:.0f} s: {plane.output()[-2000:]}")
            if now > shown + 5:
                shown = now
                stop_if_held(connection)
                print(f"{found} of {count} workspaces", file=sys.stderr, flush=True)
            time.sleep(0.05)
    finally:
        connection.close()


def stop_if_held(connection: Connection) -> None:
    """A commit that is held appears never, however long one waits."""
    cluster = connection.request("GET", ROOT_CLUSTER).body
    for condition in cluster.get("status", {}).get("conditions", []):
        if condition["type"] == "FleetFollowed" and condition["reason"] == "Held":
            raise PlaneError(condition["message"])


def counted(connection: Connection) -> int:
    """How many Workspaces root has."""
    return count_at(connection)[0]


def count_at(connection: Connection) -> tuple[int, int]:
    """The same and at which revision, from the first page's count: cheap for the server and for us."""
    answer = connection.request("GET", f"{WORKSPACES}?limit=1")
    if answer.status != 200:
        return -1, 0
    metadata = answer.body["metadata"]
    return len(answer.body["items"]) + metadata.get("remainingItemCount", 0), int(metadata["resourceVersion"])


def all_ready(connection: Connection, revision: int) -> bool:
    """Whether all are, and were at that revision."""
    token = ""
    while True:
        answer = connection.request("GET", f"{WORKSPACES}?limit={PAGE}" + (f"&continue={token}" if token else ""))
        if answer.status != 200:
            return False
        for item in answer.body["items"]:
            if item.get("status", {}).get("phase") != "Ready" or int(item["metadata"]["resourceVersion"]) > revision:
                return False
        token = answer.body["metadata"].get("continue", "")
        if not token:
            return True


def check_last(plane: Plane, count: int) -> None:
    """A Ready workspace answers with its objects."""
    found = plane.get(f"/clusters/root:ws-{count - 1}/api/v1/namespaces/default/configmaps/settings")
    if found["data"]["number"] != str(count - 1):
        raise PlaneError(f"the last workspace's ConfigMap is {found}")


def report(count: int, pushed: float, ready: float, before: Footprint, after: Footprint) -> None:
    rate = count / ready
    table(
        f"{count:,} workspaces in one commit",
        [
            ["push answered after", f"{pushed:.1f} s", ""],
            ["all Ready after", f"{ready:.1f} s", ""],
            ["workspaces per second", f"{rate:,.0f}", "expected ≥ 1,000", verdict(rate >= 1000)],
        ],
    )
    limit = 20 * 1024
    rows = [["", "total", "per workspace"]]
    for name, total in after.disk.items():
        grown = total - before.disk.get(name, 0)
        if grown:
            rows.append([f"{name}/", size(total), size(grown / count)])
    for name, total, grown in (
        ("on disk", after.stored, after.stored - before.stored),
        ("resident memory", after.resident, after.resident - before.resident),
    ):
        rows.append([name, size(total), size(grown / count), "expected ≤ 20 KiB", verdict(grown / count <= limit)])
    table("bytes", rows)
    rows = [["process", "CPU", "own memory", "share of mapped files"]]
    rows += [[each.name, f"{each.cpu_seconds:.1f} s", size(each.own), size(each.mapped)] for each in after.processes]
    table("processes", rows)


if __name__ == "__main__":
    main()
