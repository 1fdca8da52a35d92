"""What a push brings, before git takes it: in a directory of its own beside the repository's objects, which goes when
the push is refused, and whenever git likes.

Called by whoever judges a push. Only a directory that git itself makes for this is read, by its name: nobody can have
another one looked into. A reader lives for one question; nothing of it stays open, and nothing is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.repository import library
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository

NAME = re.compile(r"(?:tmp_objdir-)?incoming-[A-Za-z0-9]{6,64}")
"""As git calls them; the shorter form is that of versions before 2.35."""


class PushedObjects:
    """Of one push to the repository `git_dir`. `name`: of the directory."""

    def __init__(self, git_dir: Path, name: str) -> None:
        """Raises RepositoryUnreadable where there is no such directory."""
        self._place = git_dir / "objects" / name
        real = not self._place.is_symlink() and self._place.is_dir()
        # git makes no `info` there: it could name further directories to read.
        if NAME.fullmatch(name) is None or not real or os.path.lexists(self._place / "info"):
            raise RepositoryUnreadable(f"{self._place} is not what git keeps a push in")

    def size(self, most: int) -> int:
        """Bytes on disk; it ends as soon as they are more than `most`. Raises RepositoryUnreadable."""
        found = 0
        try:
            for folder, _, names in os.walk(self._place):
                found += sum((Path(folder) / name).lstat().st_size for name in names)
                if found > most:
                    break
        except OSError as error:
            raise RepositoryUnreadable(f"{self._place} has gone ({error.strerror})") from error
        return found

    @contextmanager
    def read(self, onto: Path, folders: tuple[str, ...] = ("",)) -> Iterator[Repository]:
        """The repository `onto`, opened anew, with what the push brings; it is closed at the end. Raises
        RepositoryUnreadable."""
        repo = Repository(onto, folders)
        try:
            self._add_to(repo)
            yield repo
        finally:
            library.let_go(repo.git)

    def _add_to(self, repo: Repository) -> None:
        try:
            library.also_read(repo.git, self._place)
        except library.FAILURES as error:
            raise RepositoryUnreadable(f"{self._place} cannot be read ({error})") from error
