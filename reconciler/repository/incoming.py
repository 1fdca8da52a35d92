"""What a fetch brings, kept apart from the repository until git has found it whole.

Called by remote.py. Left to itself, git writes what it fetches among the repository's objects, and leaves it there even
where it lied. Here it writes into a directory of its own, as for a push, and borrows from the repository; so it can be
told which commits need no second look (gitvouch). What is not taken over is dropped. A process that is killed leaves
the directory, which packing removes a day later.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from apiserver import gitvouch

_BRANCH = re.compile(r"([0-9a-f]{40})\t[^\t]*\tbranch '(.+?)' of ")
_OBJECT = re.compile(r"[0-9a-f]{38}")


class Incoming(NamedTuple):
    """`git_dir`: the repository; `directory`: where git writes objects meanwhile. No ref may move before `take`."""

    git_dir: Path
    directory: Path

    def variables(self, tips: Iterable[str]) -> dict[str, str]:
        """Environment for `git fetch`; `tips`: ids of what it is to bring."""
        return {
            "GIT_OBJECT_DIRECTORY": str(self.directory),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(self.git_dir / "objects"),
            **gitvouch.variables(tips, str(self.directory)),
        }

    def branches(self) -> dict[str, str]:
        """Which branches were fetched, and the commits that they were at."""
        said = (self.git_dir / "FETCH_HEAD").read_text(errors="surrogateescape")
        return {found[2]: found[1] for found in map(_BRANCH.match, said.splitlines()) if found is not None}

    def take(self) -> None:
        """Makes all of it the repository's. Of each pack the index is last: without it nobody looks for the pack. A
        server without git gives objects one by one."""
        objects = self.git_dir / "objects"
        for index in self.directory.glob("pack/pack-*.idx"):
            if not (objects / "pack" / index.name).exists():
                for path in sorted(index.parent.glob(f"{index.stem}.*"), key=lambda path: path == index):
                    _move(path, objects / "pack")
        for path in self.directory.glob("??/*"):
            if _OBJECT.fullmatch(path.name):
                _move(path, objects / path.parent.name)


def _move(path: Path, directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    path.rename(directory / path.name)


@contextlib.contextmanager
def incoming(git_dir: Path) -> Iterator[Incoming]:
    """For one fetch. Afterwards nothing is left but what was taken over."""
    git_dir = git_dir.resolve()
    with TemporaryDirectory(prefix="tmp_objdir-incoming-", dir=git_dir / "objects") as name:
        yield Incoming(git_dir, Path(name))


def _quoted(path: Path) -> str:
    """As git takes it where a colon stands between paths."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
