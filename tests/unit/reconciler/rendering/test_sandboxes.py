"""A renderer that does what it must not, in each sandbox: nothing comes of it, and nothing is left of it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reconciler.rendering.confinement import Confinement
from reconciler.rendering.running import RunEnd, RunResult

MIB = 1024 * 1024


def refused(result: RunResult) -> bool:
    return result.code != 0 and not result.output.startswith(b"done")


def test_without_a_sandbox_it_would(hostile: Path, top: Path) -> None:
    """Else what follows would say nothing."""
    with socket.create_server(("127.0.0.1", 0)) as tcp:
        host, port = tcp.getsockname()
        for words in (
            ("read", "/proc/self/environ"),
            ("read", str(top / "workspaces/root/own.yaml")),
            ("write", str(top / "new")),
            ("connect", "tcp", f"{host}:{port}"),
            ("exec", str(hostile)),
            ("fork",),
        ):
            assert subprocess.run([hostile, *words], capture_output=True, check=False).stdout.startswith(b"done"), words


def test_it_reads_what_it_is_shown(does: Any) -> None:
    assert does("read", "workspaces/root/own.yaml").output == b"done own: 1\n\n"


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ", "/proc/1/environ", "/proc/self/cmdline", "/proc/net/tcp", "/etc/passwd", "/etc/hostname",
        "/sys/kernel/uevent_seqnum", "/dev/mem", "../../../../../../../../../../etc/passwd", "/bin/sh", sys.executable,
        __file__,
    ],
)  # fmt: skip
def test_it_reads_nothing_of_the_machine(does: Any, path: str) -> None:
    assert refused(does("read", path))


def test_it_reads_nothing_beside_what_it_is_shown(does: Any, top: Path) -> None:
    """As another workspace's files are, or keys in the server's data directory."""
    beside = top.parent / "keys"
    beside.mkdir()
    (beside / "token").write_text("secret")
    for path in (str(beside / "token"), "../keys/token", f"/fleet/../{beside.name}/token"):
        result = does("read", path)
        assert refused(result) and b"secret" not in result.output
    (top / "absolute").symlink_to(beside / "token")
    (top / "relative").symlink_to("../keys/token")
    (top / "above").symlink_to("..")
    for path in ("absolute", "relative", "above/keys/token"):
        result = does("read", path)
        assert refused(result) and b"secret" not in result.output
    assert refused(does("list", str(top.parent)))


@pytest.mark.parametrize(
    "path", ["new", "workspaces/root/own.yaml", "/tmp/new", "/dev/shm/new", "/new", "/var/tmp/new"]
)
def test_it_writes_nowhere(does: Any, top: Path, path: str) -> None:
    assert refused(does("write", path))
    assert refused(does("remove", "workspaces/root/own.yaml"))
    assert refused(does("change", "workspaces/root/own.yaml"))
    assert (top / "workspaces/root/own.yaml").read_text() == "own: 1\n"
    assert sorted(p.name for p in top.iterdir()) == ["workspaces"]


def test_it_reaches_no_network(does: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        for network, listener in (("tcp", tcp), ("udp", udp)):
            host, port = listener.getsockname()
            assert refused(does("connect", network, f"{host}:{port}"))
        udp.setblocking(False)
        with pytest.raises(BlockingIOError):
            udp.recv(1)
    assert refused(does("listen", "tcp", "127.0.0.1:0"))
    assert refused(does("connect", "udp", "192.0.2.1:53"))


def test_it_reaches_no_socket_of_the_machine(does: Any, top: Path) -> None:
    """Neither one without a name in the file system, nor one that has its name beside what it is shown."""
    abstract = f"treeplane-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as other:
        one.bind(f"\0{abstract}")
        one.listen()
        other.bind(str(top / "s"))
        other.listen()
        assert refused(does("connect", "unix", f"@{abstract}"))
        assert refused(does("connect", "unix", str(top / "s")))
        assert refused(does("connect", "unix", "s"))


def test_it_starts_nothing_else(does: Any, hostile: Path) -> None:
    for path in ("/bin/sh", "/usr/bin/git", "git", str(hostile), "/program/hostile", sys.executable):
        assert refused(does("exec", path)), path
    assert refused(does("become", "/bin/sh"))
    assert refused(does("fork"))


def test_it_touches_no_other_process(does: Any) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            assert refused(does("signal", str(other.pid)))
            assert refused(does("owner", str(other.pid)))
            assert other.poll() is None
        finally:
            other.kill()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of calls are this processor's")
@pytest.mark.parametrize(
    ("name", "number"),
    {
        "socketpair": 53, "ptrace": 101, "mount": 165, "unshare": 272, "setns": 308, "bpf": 321, "keyctl": 250,
        "io_uring_setup": 425, "memfd_create": 319, "userfaultfd": 323, "perf_event_open": 298, "clone3": 435,
        "vfork": 58, "fork": 57, "process_vm_readv": 310, "open_by_handle_at": 304, "pidfd_open": 434, "shmget": 29,
        "truncate": 76, "chmod": 90, "mknod": 133, "kexec_load": 246, "x32 read": 0x40000000,
    }.items(),
)  # fmt: skip
def test_it_has_no_call_that_it_does_not_need(does: Any, name: str, number: int) -> None:
    result = does("call", str(number))
    assert result.output.startswith((b"refused operation not permitted", b"refused function not implemented")), name


def test_it_raises_no_limit(does: Any) -> None:
    assert refused(does("raise"))


def test_it_sees_nothing_of_this_process(does: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TREEPLANE_TOKEN", "secret")
    with (tmp_path / "held").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        assert b"secret" not in does("environment").output
        # One or two are its own runtime's.
        assert len(does("descriptors").output.split()) <= 4
        names = {line.partition("=")[0] for line in does("environment").output.decode().split("\n")[1:]}
        assert "USER" not in names and "PYTHONPATH" not in names


def test_it_takes_no_more_memory(does: Any) -> None:
    result = does("memory", "600", memory=256 * MIB)
    assert result.code != 0 and b"out of memory" in result.said
    assert does("memory", "60", memory=256 * MIB).code == 0


def test_it_prints_no_more(does: Any) -> None:
    assert does("print", "2", output=3 * MIB).end is RunEnd.BY_ITSELF
    result = does("print", "1000", output=3 * MIB)
    assert (result.end, result.output) == (RunEnd.OUTPUT, b"")
    assert len(does("complain", "100").said) < MIB


@pytest.mark.parametrize("deed", ["spin", "wait", "linger", "babble"])
def test_its_time_ends_and_nothing_is_left(does: Any, program: Path, deed: str) -> None:
    before = _running(program)
    assert does(deed, seconds=0.5).end is RunEnd.TIME
    assert _running(program) <= before


def test_it_is_stopped_by_a_kill_of_the_server(sandbox: Confinement, program: Path, top: Path, eventually: Any) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from reconciler.rendering import bubblewrap, landlock, running, programs;"
        "from reconciler.rendering.confinement import ConfinedRun; from reconciler.rendering.settings import *;"
        "s = landlock.Landlock() if sys.argv[1] == 'Landlock' else bubblewrap.Bubblewrap(bubblewrap.programs()[0]);"
        "p = programs.program_of('kustomize', Path(sys.argv[2]));"
        "running.run_confined(s, ConfinedRun(p, ('wait',), {}, Path(sys.argv[3]), '', RenderingBounds()))"
    )
    before = _running(program)
    with subprocess.Popen([sys.executable, "-c", code, sandbox.name, str(program), str(top)]) as server:
        eventually(lambda: _running(program) - before, 60)
        server.kill()
    eventually(lambda: not _running(program) - before, 60)


def _running(program: Path) -> set[int]:
    """Processes of this program that are not dead."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if program.name in str((entry / "exe").readlink()):
                    found.add(int(entry.name))
            except OSError:
                continue
    return found
