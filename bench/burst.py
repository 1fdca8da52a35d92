"""Many commits in a short time: how soon after the last one was made all of it is seen.

    .venv/bin/python bench/burst.py [--commits 100] [--seconds 10] [--rounds 3]

Into a clone of the example fleet, served by `treeplane up`, commits come at a steady rate, each to the ConfigMap of
another of ten workspaces; what there is gets pushed over https as soon as the push before is answered. A round ends
when the last commit of each workspace is read through the API.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from measure import milliseconds, table, verdict
from support.plane import Clone, Connection, Plane

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "fleet-repo"
WORKSPACES = 10
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: burst}\ndata: {number: '%s'}\n"
MOST, LONGEST = 2.0, 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commits", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="treeplane-bench-") as directory:
        top = Path(directory)
        with Plane(shutil.copytree(EXAMPLE, top / "fleet"), top / "server" / "data") as plane:
            clone = plane.clone(top / "clone")
            for number in range(WORKSPACES):
                clone.write(f"workspaces/root/burst-{number}/workspace.yaml", "")
            clone.commit("workspaces")
            clone.push()
            rows = [["", "seconds for the commits", "pushes", "seen after the last", f"expected {MOST:g} s"]]
            for turn in range(options.rounds):
                rows.append([str(turn + 1), *burst(plane, clone, turn, options)])
            table(f"{options.commits} commits in {options.seconds:g} s", rows)


def burst(plane: Plane, clone: Clone, turn: int, options: argparse.Namespace) -> list[str]:
    pusher = Pusher(clone)
    began = time.monotonic()
    for number in range(options.commits):
        time.sleep(max(0.0, began + number * options.seconds / options.commits - time.monotonic()))
        clone.write(f"workspaces/root/burst-{number % WORKSPACES}/burst.yaml", CONFIG % f"{turn}-{number}")
        clone.commit(f"burst {number}")
        pusher.wake()
    last = time.monotonic()
    connection = plane.connection()
    for number in range(max(0, options.commits - WORKSPACES), options.commits):
        await_seen(connection, number % WORKSPACES, f"{turn}-{number}")
    seen = time.monotonic() - last
    pushes = pusher.end()
    return [f"{last - began:.1f}", str(pushes), milliseconds(seen), verdict(seen <= MOST)]


class Pusher:
    """Pushes what there is, in a thread of its own."""

    def __init__(self, clone: Clone) -> None:
        self._clone, self._pushes = clone, 0
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def end(self) -> int:
        """How many pushes there were."""
        self._end.set()
        self._wake.set()
        self._thread.join()
        return self._pushes

    def _run(self) -> None:
        while self._wake.wait() and not self._end.is_set():
            self._wake.clear()
            self._clone.push("origin", "HEAD:main")
            self._pushes += 1


def await_seen(connection: Connection, workspace: int, text: str) -> None:
    url = f"/clusters/root:burst-{workspace}/api/v1/namespaces/default/configmaps/burst"
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        answer = connection.request("GET", url)
        if answer.status == 200 and answer.body["data"]["number"] == text:
            return
        time.sleep(0.01)
    raise TimeoutError(f"{text} was not seen")


if __name__ == "__main__":
    main()
