"""Copies commits between two repositories of this machine, without running git on either side's history.

Called by mirror for statuses, which are small and many: the objects are found by comparing each new commit's tree with
its parent's, so the cost is the change's and not the repository's.
"""

from __future__ import annotations

from reconciler.repository.chain import CONTINUES
from reconciler.repository.objects import Repository, raw_entries
from reconciler.repository.write import Batch

_COMMIT, _TREE, _BLOB = 1, 2, 3


def copy_commits(source: Repository, target: Repository, commit: str) -> int:
    """Gives `target` the commit and all it needs that it lacks. Returns the number of objects written."""
    batch, pending, copied = Batch(), [commit], set[str]()
    while pending:
        current = pending[-1]
        if current in copied or target.has(current):
            pending.pop()
            continue
        info = source.commit(current)
        lacking = [parent for parent in info.parents if parent not in copied and not target.has(parent)]
        if lacking:
            # First: whoever is killed in the middle has written no commit without all that it needs.
            pending += lacking
            continue
        # A commit that ends the history has none of its own, and nearly all its files from the one it goes on from.
        ended = source.trailers(current).get(CONTINUES, "")
        before = ended if ended and target.has(ended) else info.parents[0] if info.parents else ""
        _copy_tree(source, batch, info.tree, source.commit(before).tree if before else None)
        batch.objects[current] = (_COMMIT, source.raw(current, _COMMIT))
        copied.add(current)
    count = len(batch.objects)
    batch.write(target)
    return count


def _copy_tree(source: Repository, batch: Batch, new: str, old: str | None) -> None:
    if new == old or new in batch.objects:
        return
    data = source.raw(new, _TREE)
    before = {name: (mode, oid) for mode, name, oid in raw_entries(source.raw(old, _TREE))} if old else {}
    for mode, name, oid in raw_entries(data):
        if before.get(name) == (mode, oid) or mode == b"160000":
            continue
        if mode == b"40000":
            was_mode, was = before.get(name, (b"", b""))
            _copy_tree(source, batch, oid.hex(), was.hex() if was_mode == b"40000" else None)
        elif oid.hex() not in batch.objects:
            batch.objects[oid.hex()] = (_BLOB, source.blob(oid.hex()))
    batch.objects[new] = (_TREE, data)
