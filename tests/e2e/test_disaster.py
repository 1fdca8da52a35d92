"""docs/disaster.md, typed as it says, on the machine of a real server that is lost and comes back."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyrage
import pytest
from realclusters.processes import Process, free_ports
from support.plane import COMMAND, Clone, Plane, environment, kubectl_program

ROOT = Path(__file__).parents[2]
LINES = [
    line
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/disaster.md").read_text(), re.DOTALL)
    for line in block.splitlines()
]
FLEET = "apiVersion: treeplane.dev/v1alpha1\nkind: Fleet\nmetadata: {name: lost}\nspec: {writes: Store}\n"


class Machine:
    """The server's: its `.treeplane` and a clone, `fleet`, in the working directory."""

    def __init__(self, server: Plane) -> None:
        self.server, self.folder = server, server.data.parent
        self.typed: set[str] = set()

    def run(self, line: str, code: int = 0) -> str:
        path = f"{Path(kubectl_program()).parent}:{COMMAND.parent}:/usr/bin:/bin"
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env=environment(PATH=path, KUBECONFIG=".treeplane/admin.kubeconfig"),
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == code, f"{line}: {done.returncode} {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr

    def type(self, begins: str, code: int = 0) -> str:
        """The one line of the page that begins so; a line that stands there twice is one."""
        [line] = {line for line in LINES if line.startswith(begins)}
        self.typed.add(line)
        return self.run(line, code)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    folder = tmp_path / "server"
    (folder / "begun" / "workspaces" / "root" / "a").mkdir(parents=True)
    (folder / "begun" / "treeplane.yaml").write_text(FLEET)
    (folder / "begun" / "workspaces" / "root" / "a" / "workspace.yaml").touch()
    secret = pyrage.x25519.Identity.generate()
    (folder / "backup.key").write_text(f"# made for a test\n{secret}\n")
    (folder / "recipient.txt").write_text(f"{secret.to_public()}\n")
    with Plane(folder / "begun", folder / ".treeplane") as server:
        yield Machine(server)


def holder(machine: Machine) -> str:
    machine.type("git -C fleet fetch")
    said = machine.type("git -C fleet log")
    return re.search(r"^Writer: (\S+)/", said, re.MULTILINE).group(1)  # type: ignore[union-attr]


def test_the_page_as_it_is_printed(machine: Machine, eventually: Any) -> None:
    server, folder = machine.server, machine.folder
    clone = server.clone(folder / "fleet")
    server.kubectl("create", "configmap", "made", "--from-literal=a=before", workspace="root:a")
    eventually(lambda: "treeplane/status" in clone.git("ls-remote", "origin"), 60, "it is recorded")

    # While it runs.
    assert "encrypted for age1" in machine.type("treeplane backup")
    machine.run(next(line for line in LINES if line.startswith("treeplane backup")), code=2)
    assert (folder / "treeplane.age").stat().st_mode & 0o777 == 0o600
    server.kubectl("create", "configmap", "later", "--from-literal=a=after", workspace="root:a")
    first = holder(machine)
    assert "recovery gives what is recorded" in machine.type("treeplane drill")
    machine.type("df -h")
    machine.type("du -sh")
    machine.type("treeplane status --data-dir .treeplane", code=_wrong(machine, ".treeplane"))
    machine.run("treeplane status || test $? = 1")
    machine.typed.add("treeplane status")
    assert "NAME" in machine.type("treeplane target list")
    machine.type("treeplane validate fleet")
    work = Clone(folder / "fleet")
    work.write("workspaces/root/a/note.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n")
    work.commit("a note")
    machine.type("git -C fleet push origin main")
    work.git("config", "user.name", "Ann")
    work.git("config", "user.email", "ann@example.org")
    machine.type("git -C fleet revert")
    machine.type("git -C fleet push origin HEAD:main")
    assert "is served" in machine.type("treeplane reconcile-now")
    machine.type("git init")
    machine.type("git -C .treeplane/mirror for-each-ref refs/treeplane/keep")
    [refs] = {line for line in LINES if line.endswith("for-each-ref refs/treeplane")}
    machine.typed.add(refs)
    assert "refs/treeplane/recorded" in machine.run(refs)
    work.git("fetch", "origin")
    machine.type("git -C fleet push ../other.git")
    uid = server.kubectl("get", "workspace", "a", "-o", "jsonpath={.metadata.uid}", workspace="root")

    # Keys.
    server.stop()
    keys = server.data / "keys"
    authority = (keys / "ca.crt").read_bytes()
    (keys / "ca.crt").unlink()
    up = f"treeplane up --data-dir .treeplane --listen 127.0.0.1:{server.port}"
    assert f"{keys / 'ca.crt'} is missing" in machine.run(up, code=3)
    assert not (keys / "ca.crt").exists()
    machine.type("kubectl config view")
    assert (keys / "ca.crt").read_bytes() == authority
    (keys / "service-accounts.key").rename(folder / "kept.key")
    assert "service-accounts.key.new" in machine.run(up, code=3)
    machine.type("touch .treeplane/keys/service-accounts.key.new")
    server.start()
    assert (keys / "service-accounts.key").exists()
    eventually(lambda: clone.git("ls-remote", "origin"), 30, "it is there")
    server.stop()

    # The machine.
    server.data.rename(folder / "lost")
    head = work.git("rev-parse", "HEAD").strip()
    machine.run("treeplane recover --from fleet --data-dir lost", code=2)
    (folder / "new" / ".recovering").mkdir(parents=True)
    (folder / "new" / "half").write_text("of an earlier one")
    assert "was cut off" in machine.run("treeplane up --data-dir new", code=3)
    said = machine.type("treeplane recover --from")
    assert "it begins anew" in said
    assert "recovery gives what is recorded" in said
    assert not (folder / "new" / "half").exists()
    assert not (folder / "new" / ".recovering").exists()
    assert not (folder / "new" / "installation").exists()
    [line] = [line for line in LINES if line.startswith("treeplane up")]
    machine.typed.add(line)
    listen = f"127.0.0.1:{free_ports(1)[0]}"
    process = Process([str(COMMAND), *line.split()[1:]], folder, environment(TREEPLANE_LISTEN=listen))
    again = Plane(folder / "fleet", folder / "new")
    log = folder / "treeplane.log"
    try:
        eventually(lambda: "recovered from the repository" in log.read_text(), 120, "it says what came back")
        eventually(lambda: log.read_text().rstrip().endswith(" fleet"), 60, "and what to type")
        told = log.read_text()
        assert "came back that w" in told
        assert "not back: what was made through the API in root" in told
        assert "this server holds the fleet" in told
        assert "is new, with a CA of its own" not in told
        assert (folder / "new" / "keys" / "ca.crt").read_bytes() == authority
        found = again.kubectl("get", "configmaps", "-o", "name", workspace="root:a")
        assert "configmap/made" in found
        assert "configmap/later" not in found
        assert again.kubectl("get", "workspace", "a", "-o", "jsonpath={.metadata.uid}", workspace="root") == uid
        assert not (folder / "new" / "unrecorded").exists()
        machine.type("treeplane status --data-dir new", code=_wrong(machine, "new"))
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.end(signal.SIGCONT, 20)
    _alone(machine, head, eventually)
    assert first not in (folder / "new" / "installation").read_text()
    assert machine.typed == {*LINES}


def _alone(machine: Machine, head: str, eventually: Any) -> None:
    """Of the backup, and nothing else: the repository is as it was then."""
    folder = machine.folder
    said = machine.type("treeplane recover --backup")
    assert "recovery gives what is recorded" in said
    assert re.search(r"^  (treeplane up --data-dir \S*alone)$", said, re.MULTILINE)
    log, listen = folder / "treeplane.log", f"127.0.0.1:{free_ports(1)[0]}"
    began = log.stat().st_size
    line = [str(COMMAND), "up", "--data-dir", "alone"]
    process = Process(line, folder, environment(TREEPLANE_LISTEN=listen))
    again = Plane("", folder / "alone")
    again._log_start = began
    try:
        eventually(lambda: again.output().rstrip().endswith(" fleet"), 120, "it says what to type")
        assert "this server holds the fleet" in again.output()
        found = again.kubectl("get", "configmaps", "-o", "name", workspace="root:a")
        assert "configmap/made" in found
        clone = again.clone(folder / "again")
        assert clone.git("rev-parse", "HEAD").strip() != head, "what was pushed later is in a clone alone"
        clone.git("pull", "--quiet", "--ff-only", str(folder / "fleet"), "main")
        clone.push()
        assert clone.git("ls-remote", "origin", "refs/heads/main").split()[0] == head
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.end(signal.SIGCONT, 20)


def _wrong(machine: Machine, data: str) -> int:
    """1 where the machine of the tests is short of something."""
    said = machine.run(f"treeplane status --data-dir {data} > found; echo $?").strip()
    return int(said.splitlines()[-1])
