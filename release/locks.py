"""The lock files in requirements/: every package that an installation is made of, with its version and its hashes.

    python -m release.locks [--upgrade]     (make lock)

`run.txt` is what runs, `build.txt` what makes a wheel, `tools.txt` all that `make test` and `make check` need, and what
runs in the same versions. pyproject.toml stays the truth: each file says in its first line which requirements it
was made of, and a test fails where these have changed. They hold for every platform and every Python that is supported,
and name no registry: that is pip's setting on each machine.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
_MADE = "# Made by `make lock` of the requirements with the SHA-256"


@dataclass(frozen=True, slots=True)
class Lock:
    """`of`: the requirements that it was made of. `within`: another whose versions it keeps to."""

    name: str
    of: tuple[str, ...]
    python: str
    within: str = ""

    @property
    def path(self) -> Path:
        return FOLDER / self.name

    def first_line(self) -> str:
        digest = hashlib.sha256(json.dumps([*sorted(self.of), self.python, self.within]).encode()).hexdigest()
        return f"{_MADE} {digest}"

    def is_stale(self) -> bool:
        """Whether it is missing, or was made of other requirements than those of today."""
        if not self.path.is_file():
            return True
        with self.path.open() as lines:
            return lines.readline().rstrip() != self.first_line()


def locks() -> tuple[Lock, ...]:
    """All of them, in the order in which they are made."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, build = said["project"], tuple(said["build-system"]["requires"])
    run, python = tuple(project["dependencies"]), project["requires-python"].removeprefix(">=")
    tools = (*run, *build, *project["optional-dependencies"]["dev"])
    return (
        Lock("run.txt", run, python),
        Lock("build.txt", build, python),
        Lock("tools.txt", tools, python, within="run.txt build.txt"),
    )


def make(lock: Lock, *, upgrade: bool) -> None:
    """Write it. What it has already is kept as long as it fits, so that a new requirement moves nothing else."""
    command = ["uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--no-emit-index-url"]
    command += ["--no-header", "--no-annotate", "--python-version", lock.python, *(["--upgrade"] if upgrade else [])]
    for name in lock.within.split():
        command += ["--constraint", str(FOLDER / name)]
    with tempfile.TemporaryDirectory() as folder:
        wanted, made = Path(folder) / "wanted.in", Path(folder) / "made.txt"
        wanted.write_text("\n".join(lock.of) + "\n")
        if lock.path.is_file():
            made.write_text(lock.path.read_text())
        subprocess.run([*command, "--output-file", str(made), str(wanted)], check=True)
        lock.path.write_text(f"{lock.first_line()}\n{made.read_text()}")


def main(arguments: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    for lock in locks():
        make(lock, upgrade="--upgrade" in arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
