"""Where a command may write: below the directory that it was given, whatever names lead there.

Called by `desk` for each file. Names come from users, kubeconfigs and clusters; those that `layout/place` makes are
safe by themselves, and are asked all the same.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

from reconciler.commands.failure import Failure
from reconciler.layout.draft import Draft

_LONGEST = 255
"""Bytes of a name that every file system takes."""
_GITS = frozenset({".git", "git~1"})
"""Git's own directory, also as some file systems call it."""


def require_inside(path: str) -> None:
    """That a relative path stays below where it begins. Raises Failure."""
    for part in path.split("/"):
        fault = _fault(part)
        if fault:
            raise Failure(f"{path!r} cannot be the path of a file: {fault}", "choose another name", 2)


def _fault(part: str) -> str:
    if part in ("", ".", ".."):
        return "it leads out of its directory"
    if any(unicodedata.category(each) in ("Cc", "Cf", "Cs") for each in part) or "\\" in part:
        return f"{part!r} has characters that no file's name should have"
    if part.rstrip(" .").lower() in _GITS:
        return f"{part!r} is git's own"
    if len(part.encode()) > _LONGEST:
        return f"a name in it has more than {_LONGEST} bytes"
    return ""


def require_no_links(top: Path, path: str) -> None:
    """That no directory on the way, nor the file, is a symbolic link, which leads elsewhere. Raises Failure."""
    at = top
    for part in path.split("/"):
        at = at / part
        if at.is_symlink():
            raise Failure(f"{at} is a symbolic link, and what is written there would land elsewhere", "remove it", 2)


def require_directories(draft: Draft, path: str) -> None:
    """The same of what a commit has: every name on the way is a directory, or nothing yet. Raises Failure."""
    *above, _ = path.split("/")
    for count in range(1, len(above) + 1):
        name = "/".join(above[:count])
        entry = draft.repo.entry_at(draft.base, name)
        if entry is not None and entry.kind != "tree":
            raise Failure(f"{name} is no directory, so {path} cannot be written", "choose another name, or move it", 2)
