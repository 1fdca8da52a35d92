"""A server's life: Ctrl-C, the next start, ports and directories that are taken, processes that die."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.plane import COMMAND, Clone, Plane, environment, signalled

WEB = "root:shop:web"
DEPLOYMENT = "workspaces/root/shop/web/deployment.yaml"


def test_ctrl_c_stops_and_the_next_start_continues(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    server = plane(example_fleet)
    eventually(lambda: settled(server), 60, "everything runs")
    server.kubectl("ws", WEB)
    before = versions(server)
    processes = server.pids()
    assert len(processes) >= 3

    assert server.stop() == 0
    assert "stopped; the next start continues" in server.output()
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    recorded = status(server, "-1")

    server.start()
    assert versions(server) == before
    assert server.kubectl("get", "deployment", "web", "-o", "name") == "deployment.apps/web\n"  # still in WEB
    assert server.kubectl("ws", "current") == f"Current workspace is '{WEB}' (type root:team).\n"

    # It goes on from there: one object changes, and what follows from that.
    clone = server.clone(tmp_path / "fleet")
    clone.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    head = clone.commit("three replicas")
    clone.push()
    eventually(lambda: ready(server) == 3, 60)
    changed = {key for key, version in versions(server).items() if before.get(key) != version}
    assert {key.rpartition("/")[0] for key in changed} <= {f"{WEB}/deployments/default", f"{WEB}/placements"}
    assert f"{WEB}/deployments/default/web" in changed
    # Only the push led to commits: the start did not.
    eventually(lambda: status(server, "-1") != recorded, 60)
    assert {line.split()[1] for line in status(server, f"^{recorded[0].split()[0]}")} == {head}


def test_no_process_outlives_a_crash(plane: Callable[..., Plane], example_fleet: Path, eventually: Any) -> None:
    server = plane(example_fleet)
    processes = server.pids()
    server.stop(signal.SIGKILL)
    eventually(lambda: not [pid for pid in processes if Path(f"/proc/{pid}").exists()], 60, "all have ended")
    server.start()
    # Who is slow to notice has the port until then: a start waits for it.
    slow = child(server, "apiserver")
    os.kill(slow, signal.SIGSTOP)
    server.stop(signal.SIGKILL)
    threading.Timer(1, signalled, (slow, signal.SIGCONT)).start()
    server.start()
    assert not Path(f"/proc/{slow}").exists()
    assert server.kubectl("get", "deployment", "web", "-o", "name", workspace=WEB) == "deployment.apps/web\n"
    # And as a service is stopped.
    processes = server.pids()
    assert server.stop(signal.SIGTERM) == 0
    assert not [pid for pid in processes if Path(f"/proc/{pid}").exists()]


@pytest.mark.slow
def test_no_process_outlives_a_crash_at_any_moment_of_the_start(
    example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    """Every process that `up` started is known by its environment, which its children inherit."""
    data = tmp_path / "data"
    for number in range(16):
        mark = f"crash-{tmp_path}-{number}"
        arguments = ["--data-dir", str(data), "--listen", "127.0.0.1:0", "--workers", "2"]
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(
                [str(COMMAND), "up", str(example_fleet), *arguments],
                env=environment(TREEPLANE_TEST_MARK=mark),
                stdout=log,
                stderr=log,
            )
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.2 * number)
                pytest.fail(f"it ended: {(tmp_path / 'log').read_text()}")
            process.kill()
            process.wait(10)
        eventually(lambda mark=mark: not marked(mark), 60, f"killed {0.2 * number:.1f} s after the start")


def marked(text: str) -> list[int]:
    """Processes with this in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"TREEPLANE_TEST_MARK={text}\0".encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def test_in_a_terminal(example_fleet: Path, tmp_path: Path, eventually: Any) -> None:
    """What is to be typed is not wrapped however narrow it is, and the key Ctrl-C ends everything."""
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 10, 40, 0, 0))
    command = [str(COMMAND), "up", str(example_fleet), "--data-dir", str(tmp_path / "data"), "--listen", "127.0.0.1:0"]
    # A session's first process that opens a terminal gets it as its own.
    opened = ["sh", "-c", 'exec "$@" <"$0" >"$0" 2>&1', os.ttyname(terminal), *command]
    process = subprocess.Popen(opened, env=environment(TERM="xterm"), start_new_session=True)
    shown = bytearray()

    def read() -> None:
        with contextlib.suppress(OSError):  # the terminal's end
            while data := os.read(screen, 65536):
                shown.extend(data)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        eventually(lambda: b" fleet\r\n" in shown, 60, "the line to clone with is shown")
        so_far = shown.decode(errors="replace")  # what follows may be cut within a character
        [line] = [line for line in so_far.splitlines() if line.strip().startswith("git clone ")]
        assert line.endswith("/git/fleet.git fleet")
        os.write(screen, b"\x03")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
        reader.join()
        os.close(screen)
    assert "stopped; the next start continues where this one was" in shown.decode()
    assert "Traceback" not in shown.decode()


def test_what_is_taken_is_said(plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path) -> None:
    server = plane(example_fleet)
    listen = f"127.0.0.1:{server.port}"
    code, said = up(example_fleet, tmp_path / "other", listen)
    assert code > 2
    assert listen in said
    assert re.search(r"by \S+ \(pid \d+\)", said)
    assert "--listen" in said

    code, said = up(example_fleet, server.data, "127.0.0.1:0")
    assert code > 2
    assert "in use by another treeplane up" in said
    assert "--data-dir" in said


def test_killed_processes_are_replaced(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    server = plane(example_fleet, "--workers", "1")
    eventually(lambda: settled(server), 60, "everything runs")
    before = versions(server)
    clone = server.clone(tmp_path / "fleet")

    worker, reconciler = child(server, "apiserver"), child(server, "reconciler")
    os.kill(worker, signal.SIGKILL)
    eventually(lambda: child(server, "apiserver") not in (0, worker), 60, "another worker runs")
    eventually(lambda: serves(server), 60, "it answers")
    assert versions(server) == before

    os.kill(reconciler, signal.SIGKILL)
    clone.edit(DEPLOYMENT, "replicas: 2", "replicas: 3")
    clone.commit("three replicas")
    clone.push()  # while nobody listens
    eventually(lambda: child(server, "reconciler") not in (0, reconciler), 60, "another reconciler runs")
    eventually(lambda: ready(server) == 3, 60, "it has caught up")
    assert "the reconciler ended with -9" in server.output()


def test_a_second_push_while_the_first_is_loaded(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, eventually: Any
) -> None:
    """Each commit is judged, none is lost, and the last one stands."""
    server = plane(example_fleet)
    clone = server.clone(tmp_path / "fleet")
    replicas = 2
    for number in range(3, 8):
        clone.edit(DEPLOYMENT, f"replicas: {replicas}", f"replicas: {number}")
        clone.commit(f"{number} replicas")
        clone.push()
        replicas = number
    eventually(lambda: ready(server) == replicas, 60)
    web = server.get(f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web")
    assert web["metadata"]["generation"] == 6
    assert web["metadata"]["annotations"]["treeplane.dev/source-commit"] == clone.git("rev-parse", "HEAD").strip()


def up(repository: Path, data: Path, listen: str) -> tuple[int, str]:
    """A start that is expected to fail: (exit code, all that was printed)."""
    command = [str(COMMAND), "up", str(repository), "--data-dir", str(data), "--listen", listen]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def versions(server: Plane) -> dict[str, tuple[str, str]]:
    """UID and resource version of everything: equal when nothing was written."""
    found = server.everything()
    return {key: (item["metadata"]["uid"], item["metadata"]["resourceVersion"]) for key, item in found.items()}


def status(server: Plane, option: str) -> list[str]:
    """Commits of the status branch, newest first: `id source-commit`. `option`: one of git log."""
    form = "--format=%H %(trailers:key=Source-Commit,valueonly,separator=)"
    ref = "refs/heads/treeplane/status"
    return Clone(server.data / "repo" / "fleet.git").git("log", "--first-parent", form, option, ref).splitlines()


def settled(server: Plane) -> bool:
    """Every workload of the example runs and nothing more is on its way into the status branch."""
    found = server.everything()
    running = [
        item.get("status", {}).get("availableReplicas") == item["spec"]["replicas"]
        for key, item in found.items()
        if "/deployments/" in key
    ]
    jobs = [item.get("status", {}).get("succeeded") == 1 for key, item in found.items() if "/jobs/" in key]
    placed = [
        {each["type"]: each["status"] for each in item.get("status", {}).get("conditions", [])}.get("Synced") == "True"
        for key, item in found.items()
        if "/placements/" in key
    ]
    return len(running) == 5 and len(jobs) == 1 and len(placed) == 4 and all(running + jobs + placed)


def ready(server: Plane) -> int:
    web = server.get(f"/clusters/{WEB}/apis/apps/v1/namespaces/default/deployments/web")
    return int(web.get("status", {}).get("readyReplicas", 0))


def child(server: Plane, module: str) -> int:
    """The process that runs this package, 0 if there is none just now."""
    for pid in server.pids()[1:]:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        except OSError:
            continue
        if "-m" in words and words[words.index("-m") + 1].partition(".")[0] == module:
            return pid
    return 0


def serves(server: Plane) -> bool:
    try:
        return server.request("GET", "/readyz").status == 200
    except OSError:
        return False
