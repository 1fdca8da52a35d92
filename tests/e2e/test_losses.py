"""Disks that are full or read-only, and directories of another user: as a user meets them, in a mount namespace."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from support.plane import COMMAND, environment

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fleet-repo"


def _mounts() -> bool:
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return os.geteuid() == 0 and done.returncode == 0


mounts = pytest.mark.skipif(not _mounts(), reason="this user may mount nothing")


def mounted(folder: Path, options: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A command, with a disk of its own mounted at a folder."""
    folder.mkdir()
    script = f"mount -t tmpfs -o {options} none {shlex.quote(str(folder))} && exec {shlex.join(map(str, words))}"
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env=environment(), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@mounts
@pytest.mark.parametrize(
    ("options", "what"), [("size=64k", "there is no room left on its disk"), ("ro", "its file system is read-only")]
)
def test_a_disk_that_cannot_be_written_to_is_a_sentence(tmp_path: Path, options: str, what: str) -> None:
    disk = tmp_path / "disk"
    data = disk / "data" if options != "ro" else disk
    done = mounted(disk, options, COMMAND, "up", EXAMPLE, "--data-dir", data, "--listen", "127.0.0.1:0")
    assert done.returncode == 3, done.stdout + done.stderr
    assert f"the data directory {data} cannot be used: " in done.stderr
    assert what in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes directories of others")
def test_a_directory_of_another_user_is_a_sentence_for_root_too(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 4711, 4711)
    done = subprocess.run(
        [COMMAND, "up", EXAMPLE, "--data-dir", data, "--listen", "127.0.0.1:0"],
        env=environment(), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 3
    assert f"{data} is user 4711's, and this is root" in done.stderr
    assert [*data.iterdir()] == []
