"""The files of a request, laid out for a program in a directory of its own.

Called by renderer. A tree of git may say anything (it need not be git that made it): names that lead elsewhere, a name
twice, links to anywhere. So nothing is written through a link, since there is none until all files stand, and none is
made that leads out of what the program may see.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from reconciler.rendering.settings import RenderingBounds
from reconciler.repository.objects import Repository, TreeEntry

_LINK = 4096
"""Bytes of the longest target of a link that Linux takes."""
_DEEP = 64
"""Names of the longest path."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class UnfitFiles(Exception):
    """These files are not for a program to be shown, the same each time. The text says which, `hint` what to do."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def lay_out(files: Iterable[tuple[str, TreeEntry]], repo: Repository, top: Path, bounds: RenderingBounds) -> None:
    """Writes them below `top`, an empty directory. Raises UnfitFiles, OSError where this machine is at fault, and
    RepositoryUnreadable."""
    plain, links = _sorted(files, bounds.files)
    made, left = {""}, bounds.content
    for path, entry in (*plain.items(), *links.items()):
        try:
            _make_directory(top, path.rpartition("/")[0], made)
            if entry.kind == "link":
                _link(top, path, _visible(path, entry, repo, plain, links, made))
                continue
            left -= repo.blob_size(entry.id)
            if left < 0:
                text = f"the files that it may see have more than {bounds.content >> 20} MiB together"
                raise UnfitFiles(text, _FEWER)
            _write(top / path, repo.blob(entry.id))
        except (FileExistsError, NotADirectoryError):
            raise UnfitFiles(f"{path} is there twice, as git has it", _REPAIR) from None


_FEWER = "move what it does not need out of the directories that it may see"
_REPAIR = "commit the directory again with git itself"
_PLAIN_FILE = "commit the file itself in its place, or let the link lead to a file beside it, by a relative path"


def _sorted(files: Iterable[tuple[str, TreeEntry]], most: int) -> tuple[dict[str, TreeEntry], dict[str, TreeEntry]]:
    """Files and links, by path."""
    plain: dict[str, TreeEntry] = {}
    links: dict[str, TreeEntry] = {}
    for path, entry in files:
        if any(part in ("", ".", "..") or "\0" in part for part in path.split("/")):
            raise UnfitFiles(f"{path!r} is no path", _REPAIR)
        lengths = [len(os.fsencode(part)) for part in path.split("/")]
        if len(lengths) > _DEEP or max(lengths) > 255 or sum(lengths) > _LINK // 2:
            raise UnfitFiles(f"{path[:100]}… is too long a path", "choose shorter names, and fewer directories")
        if path in plain or path in links:
            raise UnfitFiles(f"{path} is there twice, as git has it", _REPAIR)
        if entry.kind in ("blob", "link"):
            (links if entry.kind == "link" else plain)[path] = entry
        if len(plain) + len(links) > most:
            raise UnfitFiles(f"there are more than {most:,} files that it may see", _FEWER)
    return plain, links


def _make_directory(top: Path, path: str, made: set[str]) -> None:
    missing = []
    while path not in made:
        missing.append(path)
        path = path.rpartition("/")[0]
    for new in reversed(missing):
        (top / new).mkdir(mode=0o700)
        made.add(new)


def _link(top: Path, path: str, target: str) -> None:
    (top / path).symlink_to(os.path.relpath(f"/{target}", f"/{path.rpartition('/')[0]}"))


def _write(file: Path, content: bytes) -> None:
    descriptor = os.open(file, _NEW, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)


def _visible(
    path: str,
    entry: TreeEntry,
    repo: Repository,
    plain: dict[str, TreeEntry],
    links: dict[str, TreeEntry],
    made: set[str],
) -> str:
    """What a link leads to, as a path of the repository. Raises UnfitFiles where the program may not see that."""
    target = _target(path, entry, repo)
    if target in plain or target in made or any(above in links for above in _above(target)):
        return target
    text = f"{path} is a symbolic link to {target or '/'}, which is not among the files that it may see"
    raise UnfitFiles(text, _PLAIN_FILE)


def _above(path: str) -> Iterator[str]:
    """A path and those of all directories that it is in."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _target(path: str, entry: TreeEntry, repo: Repository) -> str:
    """What a link leads to, as a path of the repository. Up first and then down, so that no other link on the way
    makes something else of it."""
    if repo.blob_size(entry.id) > _LINK:
        raise UnfitFiles(f"{path} is a symbolic link to nowhere", _PLAIN_FILE)
    said = os.fsdecode(repo.blob(entry.id))
    parts = [part for part in said.split("/") if part not in ("", ".")]
    up = next((n for n, part in enumerate(parts) if part != ".."), len(parts))
    above = PurePosixPath(path).parent.parts
    if said.startswith("/") or "\0" in said or not said or up > len(above) or ".." in parts[up:]:
        text = f"{path} is a symbolic link to {said!r}, which leads out of the files that it may see"
        raise UnfitFiles(text, _PLAIN_FILE)
    return "/".join((*above[: len(above) - up], *parts[up:]))
