"""Where the processes of one server have their numbers: `metrics/` in the data directory, emptied when it starts.

The parent makes it (`empty`) and says which process has ended (`ended`); each process says who it is (`begin`) before
it counts. Names are tasks (`api-1`, `reconciler`), so a process that is started again goes on where the one before was.
A server on a data directory is alone there.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from apiserver.metrics import pending

DIRECTORY = "metrics"
_NUMBER = ".process"


class MetricsPlace(NamedTuple):
    """Of this process. `name`: without an underscore, which ends it in the names of files."""

    directory: Path
    name: str


_here: MetricsPlace | None = None


def empty(data_dir: Path) -> None:
    """Before any process begins."""
    shutil.rmtree(data_dir / DIRECTORY, ignore_errors=True)
    with suppress(OSError):  # see begin
        (data_dir / DIRECTORY).mkdir(mode=0o700)


def begin(data_dir: Path, name: str) -> None:
    """This process counts there from now on, where its parent has made the place; else it counts for itself."""
    global _here  # noqa: PLW0603 - one for the process
    directory = data_dir / DIRECTORY
    pending.begin()
    try:
        (directory / f"{name}{_NUMBER}").write_text(str(os.getpid()))
    except OSError:  # nobody has made it, or there is no room: that is no reason to serve nothing
        return
    _here = MetricsPlace(directory, name)


def here() -> MetricsPlace | None:
    return _here


def ended(data_dir: Path, name: str) -> None:
    """A process has ended, however it did: what it had open it has no more."""
    directory = data_dir / DIRECTORY
    (directory / f"{name}{_NUMBER}").unlink(missing_ok=True)
    import_module("apiserver.metrics.library").ended(directory, name)


def processes(directory: Path) -> dict[str, int]:
    """By its name the number of each process that runs."""
    found = {}
    for file in sorted(directory.glob(f"*{_NUMBER}")):
        try:
            found[file.name.removesuffix(_NUMBER)] = int(file.read_text())
        except (OSError, ValueError):
            continue
    return found
