"""How much a tree holds: files and directories, each as often as it stands there.

A tree of git may name one directory again and again, on every level: ten small objects are then ten billion files, and
whoever walks them never ends. So what is new in a commit, and all of a first load, is weighed before it is walked.
Called by compare, and by loading before what it loads at first. What a commit adds also tells whether it is large
(commands/holder.py), and what a push changes, whether it is judged before it is taken (loading/trial.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.layout.errors import LayoutError
from reconciler.repository.objects import Repository, TreeEntry

MOST_ADDED = 4_000_000
"""What one commit may add: a million workspaces of two files each."""
MOST = 10_000_000
"""What a fleet may have where it is loaded at first: a million workspaces of ten files each."""


def too_heavy(directory: str, most: int) -> LayoutError:
    """What is wrong with a directory that holds more than `most`."""
    hint = "a commit adds at most so many; make several" if most == MOST_ADDED else "a fleet has at most so many"
    return LayoutError(directory, 0, 0, f"holds more than {most:,} files and directories", hint)


def weigh(repo: Repository, trees: Iterable[str], most: int) -> int:
    """Files and directories below all of these trees. It ends as soon as they are more than `most`."""
    found, pending = 0, list(trees)
    while pending and found <= most:
        entries = repo.entries(pending.pop())
        found += len(entries)
        pending += [entry.id for entry in entries if entry.kind == "tree"]
    return found


def added(repo: Repository, old: str, new: str, most: int) -> int:
    """Files and directories of the tree `new` that are not the same in `old`. It ends as soon as they are more than
    `most`."""
    found, pending = 0, [(old, new)]
    while pending and found <= most:
        was, now = pending.pop()
        before = {entry.name: entry for entry in repo.entries(was)} if was else {}
        for entry in repo.entries(now):
            other = before.get(entry.name)
            if other is None or other.id != entry.id:
                found += 1
                if entry.kind == "tree":
                    pending.append((other.id if other is not None and other.kind == "tree" else "", entry.id))
    return found


def changed(repo: Repository, old: str, new: str, most: int) -> tuple[int, int]:
    """Files and directories that are not the same in two trees, and the bytes of those files that are new. It ends as
    soon as they are more than `most`."""
    found, size, pending = 0, 0, [(old, new)]
    while pending and found <= most:
        for was, now in _pairs(repo, *pending.pop()):
            found += 1
            below = [each.id if each is not None and each.kind == "tree" else "" for each in (was, now)]
            if any(below):
                pending.append((below[0], below[1]))
            if now is not None and now.kind == "blob":
                size += repo.blob_size(now.id)
    return found, size


def _pairs(repo: Repository, old: str, new: str) -> Iterator[tuple[TreeEntry | None, TreeEntry | None]]:
    """What is not the same in two directories, by name; "" is one that is not there."""
    wide = repo.differing(old, new, ()) if old and new else None
    before, after = wide or (repo.entries(old) if old else (), repo.entries(new) if new else ())
    names, others = {each.name: each for each in before}, {each.name: each for each in after}
    for name in {**names, **others}:
        was, now = names.get(name), others.get(name)
        if was != now:
            yield was, now
