"""What the status branch costs: many statuses at once, and a day in which statuses never come to rest.

    .venv/bin/python bench/statuses.py [--objects 100000] [--flapping 100] [--hours 24]

First N Deployments in workspaces of a hundred all get a status: how long the commit takes that records it, and how many
there are. Then some Deployments, each in another workspace, say something else every second for a day. The clock is
made: the day is gone through as the status writer's schedule asks for, with every commit made for real, and packed as a
server does at last.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import orjson
from measure import bytes_on_disk, size, table
from support.loadedfleet import LoadedFleet, Object

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.storage.protocol import Put
from reconciler.repository.mirror import STATUS_REF
from reconciler.statusbranch.schedule import Schedule
from reconciler.statusbranch.writer import StatusWriter, WriterSettings

EACH = 100
"""Deployments of a workspace."""
TOGETHER = 1_000
"""Objects of one transaction, as a busy server has them."""
MOST_SECONDS, MOST_COMMITS, MOST_MIB = 60, 3_000, 50
WORKSPACE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: kube-compat, path: root}}\n"
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app-%d}
spec:
  selector: {matchLabels: {app: app-%d}}
  template:
    metadata: {labels: {app: app-%d}}
    spec: {containers: [{name: main, image: example.com/app}]}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--objects", type=int, default=100_000)
    parser.add_argument("--flapping", type=int, default=100, help="Deployments that never come to rest.")
    parser.add_argument("--hours", type=float, default=24)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as name:
        at_once(Path(name) / "at-once", options.objects)
        flapping(Path(name) / "flapping", options.flapping, options.hours)


def prepared(directory: Path, workspaces: int, each: int) -> tuple[LoadedFleet, list[Key]]:
    """A fleet that is loaded and recorded, and where its Deployments are stored."""
    fleet = LoadedFleet(directory)
    files = {f"workspaces/root/ws-{number}/workspace.yaml": WORKSPACE for number in range(workspaces)}
    text = "---\n".join(DEPLOYMENT % (number, number, number) for number in range(each))
    files |= {f"workspaces/root/ws-{number}/apps.yaml": text for number in range(workspaces)}
    fleet.begin(files)
    fleet.publish()
    paths = [f"root:ws-{number}" for number in range(workspaces)]
    first = fleet.key(paths[0], "deployments.apps", "app-0")
    clusters = [fleet.record(path).cluster for path in paths]
    return fleet, [first._replace(cluster=c, name=f"app-{number}") for c in clusters for number in range(each)]


def status(ready: int, second: int) -> Object:
    """As Kubernetes' controller says it of a rollout that comes and goes."""
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_800_000_000 + second))
    said = {"type": "Available", "status": str(bool(ready)), "reason": "MinimumReplicas", "message": ""}
    times = {"lastUpdateTime": when, "lastTransitionTime": when}
    return {"observedGeneration": 1, "replicas": 3, "readyReplicas": ready, "conditions": [{**said, **times}]}


def puts(fleet: LoadedFleet, keys: list[Key], ready: int, second: int) -> Iterator[Put]:
    for key in keys:
        found = fleet.store.get(key)
        assert found is not None, f"{key} is not there"
        yield Put(key, codec.encode({**orjson.loads(found.value), "status": status(ready, second)}))


def at_once(directory: Path, objects: int) -> None:
    fleet, keys = prepared(directory, max(1, objects // EACH), EACH)
    for first in range(0, len(keys), TOGETHER):
        fleet.store.write(*puts(fleet, keys[first : first + TOGETHER], 3, 0)).result()
    writer, before = StatusWriter(fleet.store, fleet.mirror, WriterSettings()), commits(fleet)
    began = time.perf_counter()
    assert writer.flush() is not None, "nothing was recorded"
    seconds, count = time.perf_counter() - began, commits(fleet) - before
    rows = [["seconds", f"{seconds:.1f}", f"at most {MOST_SECONDS}"], ["commits", str(count), "1"]]
    table(f"{len(keys):,} statuses at once", rows)
    fleet.close()


def flapping(directory: Path, objects: int, hours: float) -> None:
    fleet, keys = prepared(directory, objects, 1)
    settings = WriterSettings()
    writer, schedule = StatusWriter(fleet.store, fleet.mirror, settings), Schedule(settings.quiet, settings.longest)
    before, began = commits(fleet), time.perf_counter()
    for second in range(int(hours * 3600)):
        schedule.status(second)
        if schedule.due <= second + 1:  # what the store says at other times, nobody reads
            fleet.store.write(*puts(fleet, keys, second % 3, second)).result()
            writer.flush()
            schedule.wrote()
    seconds, count = time.perf_counter() - began, commits(fleet) - before
    git("repack", "-a", "-d", "-q", fleet=fleet)
    packed = bytes_on_disk(fleet.mirror.path)
    rows = [
        ["commits", f"{count:,}", f"at most {MOST_COMMITS:,}"],
        ["packed", size(packed), f"at most {MOST_MIB} MiB"],
        ["seconds of work", f"{seconds:.0f}", ""],
    ]
    table(f"{hours:g} hours of {objects} Deployments that never come to rest", rows)
    fleet.close()


def commits(fleet: LoadedFleet) -> int:
    return int(git("rev-list", "--count", "--first-parent", STATUS_REF, fleet=fleet))


def git(*words: str, fleet: LoadedFleet) -> str:
    command = ["git", "-C", str(fleet.mirror.path), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
