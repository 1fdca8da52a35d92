"""What the loader spends on each workspace that appears, and on each that comes back: CPU of its own thread, and of the
store's writer beside it.

    .venv/bin/python bench/judging.py 10000

N workspaces in one commit, loaded in this process, without servers or controllers: empty ones; with one small ConfigMap
that differs from the others in a text in quotes; with one that differs in its name, so that each is read and validated.
Then the same from a status branch that says what was served, into an empty store. What else a machine does shows in CPU
time as well, so compare two versions in turns.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import table
from support.loadedfleet import LoadedFleet

from apiserver import heap
from apiserver.model.commits import own

WORKSPACE = "apiVersion: tenancy.kcp.io/v1alpha1\nkind: Workspace\nspec: {type: {name: universal, path: root}}\n"
SETTINGS = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {number: '%d'}\n"
NAMED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings-%d}\ndata: {number: '1'}\n"
FILES = {
    "empty": {"workspace.yaml": WORKSPACE},
    "two files, a text of its own": {"workspace.yaml": WORKSPACE, "settings.yaml": SETTINGS},
    "two files, a name of its own": {"workspace.yaml": WORKSPACE, "settings.yaml": NAMED},
}


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds of CPU for each workspace: of the thread that loads, and of all."""

    loader: float
    process: float

    def told(self) -> list[str]:
        return [f"{self.loader:.0f} µs", f"{self.process - self.loader:.0f} µs"]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workspaces", type=int, nargs="?", default=10_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    heap.share()
    heap.settle()
    rows = [["", "they appear: loader", "store's writer", "they come back: loader", "store's writer"]]
    for _ in range(options.rounds):
        for name, files in FILES.items():
            came, returned = measured(options.workspaces, files)
            rows.append([name, *came.told(), *returned.told()])
    table(f"{options.workspaces:,} workspaces in one commit: CPU for each", rows)


def measured(count: int, files: dict[str, str]) -> tuple[Cost, Cost]:
    with tempfile.TemporaryDirectory() as directory, ExitStack() as stack:
        fleet = LoadedFleet(Path(directory) / "fleet")
        stack.callback(fleet.close)
        fleet.begin()
        head = committed(fleet, count, files)
        came = cost(count, lambda: fleet.loader.load(own(head)))
        fleet.publish()
        new = LoadedFleet(Path(directory) / "again", fleet.repo)
        stack.callback(new.close)
        recorded = new.recorded()
        return came, cost(count, lambda: new.loader.load(own(head), recorded))


def cost(count: int, work: Callable[[], object]) -> Cost:
    gc.collect()
    loader, process = time.thread_time(), time.process_time()
    work()
    loader, process = time.thread_time() - loader, time.process_time() - process
    return Cost(loader / count * 1e6, process / count * 1e6)


def committed(fleet: LoadedFleet, count: int, files: dict[str, str]) -> str:
    """A commit on top of what is loaded, made by git alone; its id."""
    repo = fleet.repo
    command = ["git", "-C", str(repo.path), "fast-import", "--quiet", "--force"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as git:
        assert git.stdin is not None
        begin = f"commit refs/heads/{repo.branch}\ncommitter b <b@example.com> 1790000000 +0000\ndata 1\nx\n"
        git.stdin.write(f"{begin}from {repo.head}\n".encode())
        for path, text in written(count, files):
            git.stdin.write(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(text), text.encode()))
    return subprocess.check_output(["git", "-C", str(repo.path), "rev-parse", repo.branch], text=True).strip()


def written(count: int, files: dict[str, str]) -> Iterator[tuple[str, str]]:
    for number in range(count):
        name = f"ws-{number}"
        group = hashlib.sha256(name.encode()).hexdigest()[:2]
        for file, text in files.items():
            yield f"workspaces/root/{group}/{name}/{file}", text.replace("%d", str(number))


if __name__ == "__main__":
    main()
