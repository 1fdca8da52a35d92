"""How much a tree holds: files and directories, each as often as it stands there.

A tree of git may name one directory again and again, on every level: ten small objects are then ten billion files, and
whoever walks them never ends. So what is new in a commit, and all of a first load, is weighed before it is walked.
Called by compare, and by loading before what it loads at first. What a commit adds also tells whether it is large
(commands/holder.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.layout.errors import LayoutError
from reconciler.repository.objects import Repository

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
