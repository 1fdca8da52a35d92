"""A virtual environment of what the lock files name, and Treeplane in it as it stands here.

    python3 release/environment.py .venv run.txt build.txt        (make up; tools.txt for make test and make check)

Run by any Python that is supported, with nothing installed: the standard library is all that it needs. Each package is
the very one that the lock files name, or nothing is installed. What takes time in the usual way is left out: pip is not
copied where this Python has one, versions are not looked for, nothing is compiled ahead of its first use, and each core
has a pip of its own, since most of the time goes into reading the index's lists of files.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_OLDEST = (3, 11)
_PIP = (22, 3)
"""The first that installs into another environment than its own."""


def pip(home: Path) -> list[str]:
    """The command of a pip that installs into the environment, which is made if it is not there."""
    python = home / "bin" / "python"
    try:
        usable = tuple(int(part) for part in version("pip").split(".")[:2]) >= _PIP
    except (PackageNotFoundError, ValueError):
        usable = False
    if not python.exists():
        venv.create(home, symlinks=True, with_pip=not usable)
    command = [sys.executable, "-m", "pip", "--python", str(python)] if usable else [str(python), "-m", "pip"]
    # Errors alone: each warns of what the other is just putting there.
    return [*command, "--disable-pip-version-check", "-qq"]


def entries(text: str) -> list[str]:
    """Those of a lock file: a package with its hashes, which stand indented below it."""
    found: list[str] = []
    for line in text.splitlines(keepends=True):
        if line.startswith(" ") and found:
            found[-1] += line
        elif line.strip() and not line.startswith("#"):
            found.append(line)
    return found


def install(command: list[str], packages: list[str]) -> bool:
    """Whether all of them are there now. No package is in two hands, and none waits for another."""
    hands = min(len(packages), os.cpu_count() or 1)
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for hand in range(hands):
            file = Path(folder) / f"{hand}.txt"
            file.write_text("".join(packages[hand::hands]))
            running.append(subprocess.Popen([*command, "--require-hashes", "--requirement", str(file)]))
        ended = [each.wait() for each in running]  # all of them, also where one has failed
    return not any(ended)


def main(arguments: list[str]) -> int:
    if sys.version_info < _OLDEST:
        sys.exit(f"Treeplane needs Python 3.11 or newer, this is {sys.version.split()[0]}; try make PYTHON=python3.12")
    home, *names = arguments
    command = [*pip(Path(home)), "install", "--no-deps", "--no-compile"]
    packages = [entry for name in names for entry in entries((ROOT / "requirements" / name).read_text())]
    if not install(command, packages):
        return 1
    treeplane = ["--no-build-isolation", "--no-index", "--editable", str(ROOT)]
    return subprocess.run([*command, *treeplane], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
