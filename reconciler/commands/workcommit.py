"""A commit of some files, made in a clone's work tree by the user's git: with his name, signature and hooks.

Called by commands that put files there whose content git has already. All else in index and work tree stays as it is;
where git refuses the commit, so do these files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

from apiserver.model.counts import some_of
from reconciler.commands.clone import WorkTree
from reconciler.commands.failure import Failure
from reconciler.repository.difference import FileChange
from reconciler.repository.objects import Repository, TreeEntry
from reconciler.repository.write import Batch

_BLOB = 3
_NONE = "0" * 40
_NAMED = 10


def require_clean(clone: WorkTree, changes: Iterable[FileChange]) -> None:
    """That the work tree has these files as HEAD has them, and none that git does not know of in their places."""
    given = b"".join(_bytes(change.path) + b"\0" for change in changes)
    every = clone.run("ls-files", "-z", "--others", "--", *_tops(changes)).split("\0")
    wanted = {*given.decode("utf-8", "replace").split("\0")} - {""}
    against = ("--no-ext-diff", "--no-renames", "HEAD", "--", *_tops(changes))
    differing = clone.run("diff", "-z", "--name-only", *against).split("\0")
    dirty = sorted(wanted.intersection((*every, *differing)))
    if dirty:
        text = f"these files have changes that are in no commit: {some_of(dirty, _NAMED)}"
        raise Failure(text, "commit them first, or take them back", 2)


def commit_files(clone: WorkTree, source: Repository, changes: Sequence[FileChange], message: Sequence[str]) -> str:
    """The commit. `source`: has the contents. `message`: paragraphs."""
    _lend(clone, source, changes)
    _put(clone, changes)
    paths = b"".join(_bytes(change.path) + b"\0" for change in changes)
    try:
        texts = [f"-m{text}" for text in message]
        clone.run("commit", "--quiet", *texts, "--pathspec-from-file=-", "--pathspec-file-nul", given=paths)
    except Failure:
        _put(clone, [FileChange(change.path, change.new, change.old) for change in changes])
        raise
    return clone.repo.resolve("HEAD") or ""


def _tops(changes: Iterable[FileChange]) -> list[str]:
    """The directories that git is to look at, and no argument for each file."""
    found = sorted({change.path.rpartition("/")[0] for change in changes})
    return [each for each in found if not any(each.startswith(f"{other}/") for other in found)]


def _lend(clone: WorkTree, source: Repository, changes: Iterable[FileChange]) -> None:
    """Gives the clone what it lacks."""
    batch = Batch()
    for change in changes:
        if change.new is not None and not clone.repo.has(change.new.id):
            batch.add(_BLOB, source.blob(change.new.id))
    batch.write(clone.repo)


def _put(clone: WorkTree, changes: Sequence[FileChange]) -> None:
    """Has index and work tree say what is new."""
    told = b"".join(_entry(change.new) + b"\t" + _bytes(change.path) + b"\0" for change in changes)
    clone.run("update-index", "-z", "--add", "--index-info", given=told)
    for change in changes:
        if change.new is None:
            file = clone.top / change.path
            file.unlink(missing_ok=True)
            with suppress(OSError):  # a directory that is not empty stays
                for above in file.relative_to(clone.top).parents[:-1]:
                    (clone.top / above).rmdir()
    there = b"".join(_bytes(change.path) + b"\0" for change in changes if change.new is not None)
    clone.run("checkout-index", "--force", "-z", "--stdin", given=there)


def _entry(entry: TreeEntry | None) -> bytes:
    """As `git update-index` reads it; without one the file goes."""
    if entry is None:
        return f"0 {_NONE}".encode()
    mode = "120000" if entry.kind == "link" else "100755" if entry.executable else "100644"
    return f"{mode} {entry.id}".encode()


def _bytes(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")
