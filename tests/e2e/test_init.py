"""`treeplane init` and what it prints, typed as it is printed, until the Deployment is READY."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.plane import COMMAND, environment

_IDENTITY = {
    f"GIT_{who}_{what}": "newcomer@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}
_SECONDS = 60


def shell(line: str, at: Path) -> str:
    """As in a terminal, whose PATH has treeplane."""
    found = environment(**_IDENTITY, PATH=f"{COMMAND.parent}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-c", line], cwd=at, env=found, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
    return done.stdout


def printed(said: str) -> tuple[list[str], list[str]]:
    """What to type in the one terminal, and in the other."""
    _, _, following = said.partition("\nnext:\n")
    first, _, second = following.partition("and in a second terminal, in the same directory:\n")
    return ([line.strip() for line in text.splitlines()] for text in (first, second))  # type: ignore[return-value]


@pytest.mark.parametrize("begun", ["nothing", "empty", "cloned"])
def test_what_it_prints_leads_to_a_deployment_that_runs(tmp_path: Path, begun: str) -> None:
    (tmp_path / "fleet").mkdir()
    if begun != "nothing":
        shell("git init --quiet --initial-branch trunk fleet", tmp_path)
    if begun == "cloned":
        shell("echo mine > README.md; echo mine > LICENSE; echo '*.bak' > .gitignore", tmp_path / "fleet")
        shell("git add . && git commit -qm begun", tmp_path / "fleet")
    at = tmp_path if begun == "nothing" else tmp_path / "fleet"
    said = shell("treeplane init fleet" if begun == "nothing" else "treeplane init", at)
    steps, then = printed(said)
    assert ("git init --initial-branch main" in steps) == (begun == "nothing")
    if begun == "cloned":
        assert (tmp_path / "fleet" / "README.md").read_text() == "mine\n"
        assert "README.md unchanged" in said
    assert steps[-1].startswith("treeplane up .")

    shell(" && ".join(steps[:-1]), at)
    # Beside the printed words only a free port, and nothing but the shell's own directory.
    log = (tmp_path / "log").open("w")
    server = subprocess.Popen(
        [str(COMMAND), *steps[-1].split()[1:], "--listen", "127.0.0.1:0"],
        cwd=tmp_path / "fleet", env=environment(), stdout=log, stderr=log,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + _SECONDS
        ready = False
        while not ready and time.monotonic() < deadline and server.poll() is None:
            if (tmp_path / "fleet" / ".treeplane" / "admin.kubeconfig").exists():
                found = subprocess.run(
                    ["bash", "-c", " && ".join(then)],
                    cwd=tmp_path / "fleet", capture_output=True, text=True, check=False,
                    env=environment(PATH=f"{COMMAND.parent}:{os.environ['PATH']}"),
                )  # fmt: skip
                ready = "2/2" in found.stdout
        assert ready, (tmp_path / "log").read_text()
        assert found.stdout.splitlines()[1].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    finally:
        server.terminate()
        server.wait(30)
        log.close()
    # Keys are not committed by the next `git add .`.
    assert shell("git status --short --untracked-files", tmp_path / "fleet") == ""


def test_nothing_is_overwritten_and_all_is_told_as_data(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reconciler", "init", str(tmp_path / "fleet"), "-o", "json"]
    found = environment(PYTHONPATH=str(Path(__file__).parents[2]))
    said = [json.loads(subprocess.run(command, env=found, capture_output=True, check=True).stdout) for _ in range(2)]
    assert [{each["change"] for each in one["files"]} for one in said] == [{"created"}, {"unchanged"}]
    assert said[0]["next"][0] == f"cd {tmp_path / 'fleet'}"
    shutil.rmtree(tmp_path / "fleet")
    (tmp_path / "fleet").mkdir()
    (tmp_path / "fleet" / "workspaces").write_text("a file")
    done = subprocess.run(command, env=found, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "workspaces/root/infra/access.yaml: Not a directory" in done.stderr
    assert (tmp_path / "fleet" / "workspaces").read_text() == "a file"
