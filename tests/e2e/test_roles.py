"""The roles of a server's reconciler, in one process and in two: who stands still, and who is killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.plane import Clone, Plane, environment

from apiserver.logs.records import LOG
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.told import tell

EVENTS = "/clusters/root:shop:web/api/v1/namespaces/default/events"
EVENT = {
    "metadata": {"generateName": "still-", "namespace": "default"},
    "involvedObject": {"namespace": "default"},
    "reason": "Still",
}
REST = "controllers,status,syncing"
PATH = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps/"


@pytest.fixture
def served(plane: Callable[..., Plane], example_fleet: Path) -> Plane:
    return plane(example_fleet, "--workers", "1", "--roles", "together")


@pytest.fixture
def apart(plane: Callable[..., Plane], example_fleet: Path) -> Plane:
    return plane(example_fleet, "--workers", "1", "--roles", "apart")


def reconcilers(server: Plane) -> dict[str, psutil.Process]:
    """By their roles."""
    found = {}
    for process in psutil.Process(server.pids()[0]).children():  # and not what one of them is about to run
        with suppress(psutil.NoSuchProcess):
            words = process.cmdline()
            if "reconciler.commands.reconcile" in words:
                found[words[-1]] = process
    return found


def reconciler(server: Plane) -> psutil.Process:
    [found] = reconcilers(server).values()
    return found


def standing_still(server: Plane, eventually: Any, roles: str = "all") -> psutil.Process:
    """One that is stopped, and not in the middle of a transaction: the API still writes."""
    process = reconcilers(server)[roles]

    def stopped() -> bool:
        process.suspend()
        connection = server.connection(2)
        try:
            if connection.request("POST", EVENTS, EVENT).status == 201:
                return True
        except OSError:
            pass
        finally:
            connection.close()
        process.resume()
        return False

    eventually(stopped, 60, "it stands still")
    return process


def killed(process: psutil.Process) -> None:
    """One that may have ended by itself since it was found."""
    with suppress(psutil.NoSuchProcess):
        process.kill()


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
    """A second reconciler's process for the same data directory, told what the first was told."""
    url = f"https://127.0.0.1:{server.port}"
    told = ReconcileSettings(
        server.data, server.data / "keys", source=hosted(server)[-1], url=url, local_url=url, hosted=True,
        roles="together",
    )  # fmt: skip
    quiet = {name: value for name, value in like.environ().items() if name != LOG}  # a pipe of the first's own
    process = subprocess.Popen(
        like.cmdline(), env=quiet, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    tell(process, told.to_json())
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
        eventually(lambda: "the reconciler ended with 5" in served.output(), 30, "it ended")
        # The next one waits: the second lives.
        eventually(lambda: f"process {second.pid} has the role loading still" in served.output(), 60, "it waits")
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
        # Either takes them: the second, or the one that is started for the first.
        push(clone, "second")
        eventually(lambda: is_served(served, "second"), 60, "another one loads")


def runs(server: Plane) -> bool:
    """What is beside loading is done: it is placed, runs, and says so."""
    found = server.get("/clusters/root:shop:web/apis/apps/v1/namespaces/default/deployments/web")
    return bool((found.get("status") or {}).get("readyReplicas") == found["spec"]["replicas"])


def hosted(server: Plane) -> list[str]:
    return ["git", "--git-dir", str(server.data / "repo" / "fleet.git")]


def hosted_heads(server: Plane) -> str:
    return subprocess.run([*hosted(server), "for-each-ref"], capture_output=True, text=True, check=True).stdout


def source_commit(server: Plane) -> str:
    """What the status branch is at."""
    asked = ["log", "-1", "--format=%(trailers:key=Source-Commit,valueonly)", "treeplane/status"]
    return subprocess.run([*hosted(server), *asked], capture_output=True, text=True, check=True).stdout.strip()


def recorded(server: Plane, name: str) -> bool:
    """Whether the status branch is at a commit that has it."""
    place = f"{source_commit(server)}:workspaces/root/shop/web/{name}.yaml"
    return subprocess.run([*hosted(server), "cat-file", "-e", place], capture_output=True, check=False).returncode == 0


def facts(server: Plane) -> dict[str, Any]:
    """What a recovery has to bring back of everything but Events and the like."""
    return {
        key: (item["metadata"]["uid"], item["metadata"]["creationTimestamp"], item.get("spec"), item.get("data"))
        for key, item in server.everything().items()
        if not {"events", "leases"} & set(key.split("/"))
    }


def test_two_processes_do_what_one_does(apart: Plane, tmp_path: Path, eventually: Any) -> None:
    assert set(reconcilers(apart)) == {"all", REST}
    eventually(lambda: runs(apart), 60, "it runs")
    clone = apart.clone(tmp_path / "work")
    push(clone, "pushed")
    eventually(lambda: is_served(apart, "pushed"), 30, "it is served")
    eventually(lambda: recorded(apart, "pushed"), 30, "it is recorded")
    for file in (apart.data / "roles").iterdir():
        assert file.stat().st_mode & 0o777 == 0o600


def test_who_stands_still_beside_loading_holds_up_no_commit(apart: Plane, tmp_path: Path, eventually: Any) -> None:
    clone = apart.clone(tmp_path / "work")
    eventually(lambda: REST in reconcilers(apart) and runs(apart), 60, "both are there")
    rest = standing_still(apart, eventually, REST)
    push(clone, "meanwhile")
    eventually(lambda: is_served(apart, "meanwhile"), 30, "it is served")
    assert not recorded(apart, "meanwhile")
    rest.resume()
    eventually(lambda: recorded(apart, "meanwhile"), 30, "it is recorded")


def test_either_process_may_be_killed_at_any_time(apart: Plane, tmp_path: Path, eventually: Any) -> None:
    """And what stands in the end is what a recovery gives."""
    clone = apart.clone(tmp_path / "work")
    chance = random.Random(7)
    eventually(lambda: runs(apart), 60, "it runs")
    for number in range(6):
        push(clone, f"c{number}")
        there = eventually(lambda: reconcilers(apart), 30, "one is there to be killed")
        victim = there[chance.choice(sorted(there))]
        if chance.random() < 0.5:
            eventually(lambda number=number: is_served(apart, f"c{number}"), 60, "it is served")
        killed(victim)
        eventually(lambda number=number: is_served(apart, f"c{number}"), 60, "it is served, whoever was killed")
        eventually(lambda victim=victim: victim.pid not in {p.pid for p in reconcilers(apart).values()}, 30, "it ended")
    eventually(lambda: set(reconcilers(apart)) == {"all", REST}, 60, "both are there")
    eventually(lambda: recorded(apart, "c5"), 60, "all is recorded")
    eventually(lambda: runs(apart), 60, "it runs")
    before = facts(apart)
    apart.stop()
    shutil.rmtree(apart.data / "store")
    shutil.rmtree(apart.data / "mirror")
    apart.start()
    eventually(lambda: runs(apart), 60, "it runs")
    assert facts(apart) == before


MANY = 10_001
"""Workspaces with which a fleet is large (see `--roles`)."""


def test_a_commit_that_makes_a_fleet_large_is_loaded_whoever_is_killed(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    """While one process hands over what is beside loading, and while the other has it."""
    server = plane(example_fleet, "--workers", "1")
    assert set(reconcilers(server)) == {"all"}
    clone = server.clone(tmp_path / "work")
    before, chance = workspaces(server), random.Random(3)
    with pushing_many(clone) as head:
        eventually(lambda: head in hosted_heads(server), 120, "it is pushed")
        for number in range(4):
            eventually(lambda number=number: workspaces(server) >= before + number * MANY // 8, 120, "it goes on")
            there = eventually(lambda: reconcilers(server), 30, "one is there to be killed")
            victim = there[chance.choice(sorted(there))]
            killed(victim)
            eventually(lambda victim=victim: not victim.is_running(), 30, "it ended")
    eventually(lambda: workspaces(server) == before + MANY, 240, "all are there")
    eventually(lambda: set(reconcilers(server)) == {"all", REST}, 60, "both are there")
    eventually(lambda: source_commit(server) == head, 120, "all is recorded")
    push(clone, "after")
    eventually(lambda: is_served(server, "after"), 30, "it is served")


def workspaces(server: Plane) -> int:
    """How many there are below root itself."""
    found = server.get("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces?limit=1")
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))


@contextmanager
def pushing_many(clone: Clone) -> Iterator[str]:
    """MANY workspaces in one commit, whose id it is. Whoever pushes is told a verdict, or that there is none yet."""
    blob = clone.git("hash-object", "-w", os.devnull).strip()
    lines = (f"100644 {blob}\tworkspaces/root/many/w-{number}/workspace.yaml\n" for number in range(MANY))
    git = ["git", "-C", str(clone.folder)]
    subprocess.run([*git, "update-index", "--index-info"], input="".join(lines), text=True, check=True)
    clone.git("commit", "--quiet", "--message", "many")
    clone.git("reset", "--quiet", "--hard")
    with subprocess.Popen([*git, "push", "--quiet"], env=environment(), stderr=subprocess.DEVNULL) as push:
        yield clone.git("rev-parse", "HEAD").strip()
        assert push.wait(240) == 0
