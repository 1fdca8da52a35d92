"""The repository on this machine whose objects a mirror borrows. A data directory that was moved takes the hosted one
with it, and its mirror goes on naming the former place until the server starts in the new one.

Called by `hosted` and `unpushed`, which only read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from apiserver.model.hostedrepository import PLACE
from reconciler.repository.borrowed import borrow
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.source import is_git_dir


def lender(data_dir: Path) -> Path | None:
    """Its git directory, whether it is there or not; None where the mirror borrows nothing."""
    alternates = data_dir / "mirror" / "objects" / "info" / "alternates"
    if not alternates.is_file():
        return None
    named, along = Path(alternates.read_text().strip()).parent, (data_dir / PLACE).resolve()
    came_along = not named.exists() and named.match(PLACE) and is_git_dir(along)
    return along if came_along else named


@contextmanager
def readable(data_dir: Path) -> Iterator[Repository]:
    """The mirror, with what it borrows. Raises RepositoryUnreadable where that is away."""
    mirror, found = Repository(data_dir / "mirror"), lender(data_dir)
    if found is not None and not is_git_dir(found):
        said = "put it back, or start the server with the place where it is now (--from)"
        raise RepositoryUnreadable(f"{found} is away, whose commits {mirror.path} goes on from", said)
    if found is None or found != (data_dir / PLACE).resolve():
        yield mirror  # what is not hosted cannot have come along
        return
    with TemporaryDirectory(prefix="treeplane-") as scratch:
        both = borrow(mirror, Path(scratch) / "mirror.git", (found / "objects",))
        for name in mirror.references:
            commit = mirror.ref(name)
            if commit is not None:
                both.references.create(name, commit, force=True)
        yield both
