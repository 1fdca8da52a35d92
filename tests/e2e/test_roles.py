"""A server's reconciler that stands still: nobody takes its roles, until it is killed; and where somebody could after
all, it writes nothing more."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.plane import Clone, Plane

EVENTS = "/clusters/root:shop:web/api/v1/namespaces/default/events"
EVENT = {
    "metadata": {"generateName": "still-", "namespace": "default"},
    "involvedObject": {"namespace": "default"},
    "reason": "Still",
}
PATH = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps/"


@pytest.fixture
def served(plane: Callable[..., Plane], example_fleet: Path) -> Plane:
    return plane(example_fleet, "--workers", "1")


def reconciler(server: Plane) -> psutil.Process:
    there = [p for p in map(psutil.Process, server.pids()) if p.status() != psutil.STATUS_ZOMBIE]
    [found] = [p for p in there if "reconciler.commands.reconcile" in p.cmdline()]
    return found


def standing_still(server: Plane, eventually: Any) -> psutil.Process:
    """Its reconciler, stopped, and not in the middle of a transaction: the API still writes."""
    process = reconciler(server)

    def stopped() -> bool:
        process.suspend()
        connection = server.connection(2)
        try:
            return connection.request("POST", EVENTS, EVENT).status == 201
        except OSError:
            process.resume()
            return False
        finally:
            connection.close()

    eventually(stopped, 60, "it stands still")
    return process


def push(clone: Clone, name: str) -> None:
    clone.write(
        f"workspaces/root/shop/web/{name}.yaml", f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n"
    )
    clone.commit(f"add {name}")
    clone.push()


def is_served(server: Plane, name: str) -> bool:
    return server.request("GET", f"{PATH}{name}").status == 200


@contextmanager
def another(server: Plane, like: psutil.Process) -> Iterator[subprocess.Popen[bytes]]:
    """A second reconciler's process for the same data directory, started as the first was."""
    process = subprocess.Popen(
        like.cmdline(), env=like.environ(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate()


def says(process: subprocess.Popen[bytes], event: str) -> dict[str, Any]:
    """The next report of that kind."""
    assert process.stdout is not None
    for line in process.stdout:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event:
            return found
    raise AssertionError(f"it ended before it said {event}")


def test_one_that_comes_back_after_another_took_its_roles_ends(served: Plane, tmp_path: Path, eventually: Any) -> None:
    """The locks were worth nothing: their directory was taken away while it stood still."""
    clone = served.clone(tmp_path / "work")
    first = standing_still(served, eventually)
    for file in (served.data / "roles").iterdir():
        file.unlink()
    with another(served, first) as second:
        says(second, "loaded")
        push(clone, "meanwhile")
        eventually(lambda: is_served(served, "meanwhile"), 30, "the second loads")
        os.kill(first.pid, signal.SIGCONT)
        eventually(lambda: "another process has taken the role" in served.output(), 30, "it is told")
        eventually(lambda: "the reconciler ended with 5" in served.output(), 10, "it ended")
        # The next one waits: the second lives.
        eventually(lambda: f"process {second.pid} has the role loading still" in served.output(), 30, "it waits")
        assert f"kill -9 {second.pid}" in served.output()
        push(clone, "by-the-second")
        eventually(lambda: is_served(served, "by-the-second"), 30, "the second goes on")
    push(clone, "by-the-next")
    eventually(lambda: is_served(served, "by-the-next"), 30, "the next one has the roles")
    assert served.output().count("another process has taken the role") == 1


def test_nobody_takes_the_roles_of_one_that_stands_still(served: Plane, tmp_path: Path, eventually: Any) -> None:
    """Until it is killed."""
    clone = served.clone(tmp_path / "work")
    first = standing_still(served, eventually)
    with another(served, first) as second:
        assert says(second, "trouble")["text"].startswith(f"process {first.pid} has the role loading still")
        first.kill()
        says(second, "loaded")
        push(clone, "second")
        eventually(lambda: is_served(served, "second"), 30, "the second loads")
