"""The clone that somebody is in: for commands that work without a server."""

from __future__ import annotations

from pathlib import Path

from reconciler.commands.failure import Failure
from reconciler.repository.objects import Repository


def clone_of(directory: Path) -> tuple[Path, Repository]:
    """The top of the work tree that a directory is in, and its repository. Raises RepositoryError."""
    here = directory.absolute()
    for above in (here, *here.parents):
        if (above / ".git").exists():
            return above, Repository(above)
    raise Failure(f"{directory} is in no clone", "go to a clone of the fleet's repository, or name one", 2)
