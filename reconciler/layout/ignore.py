""".treeplaneignore: which paths are not looked at. Called by tree.

The files are written as .gitignore is; one applies to its directory and what is below, and the deepest that says
anything about a path decides. As in git, nothing below an ignored directory can be taken back in.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pathspec

FILE = ".treeplaneignore"
_KEPT, _SHORT = 64, 1024
"""How many files are kept as they were read, and the bytes of one up to which: each pattern takes far more."""


class Rules(NamedTuple):
    """One file's patterns. `id` is its blob, so that equal rules are known without reading them."""

    directory: str
    id: str
    patterns: pathspec.GitIgnoreSpec


Stack = tuple[Rules, ...]
"""The rules that apply in a directory, outermost first."""


def rules(directory: str, blob_id: str, data: bytes) -> Rules:
    """Raises ValueError for a pattern that cannot be read."""
    return Rules(directory, blob_id, _remembered(data) if len(data) <= _SHORT else _read(data))


def _read(data: bytes) -> pathspec.GitIgnoreSpec:
    import pathspec  # noqa: PLC0415 - most fleets have no such file, and each start of theirs would wait for it

    return pathspec.GitIgnoreSpec.from_lines(data.decode("utf-8", "replace").splitlines(), backend="re2")


_remembered = lru_cache(_KEPT)(_read)
"""Every commit's tree has the file anew, and mostly the same."""


def ignored(stack: Stack, path: str, *, directory: bool = False) -> bool:
    """Whether the file or directory `path`, of a directory that is not ignored itself, is."""
    for level in reversed(stack):
        below = path[len(level.directory) + 1 :] if level.directory else path
        verdict = level.patterns.check_file(below + "/" if directory else below).include
        if verdict is not None:
            return bool(verdict)
    return False


def same(one: Stack, other: Stack) -> bool:
    """Whether two stacks say the same."""
    return one is other or [(r.directory, r.id) for r in one] == [(r.directory, r.id) for r in other]
