"""How the status branch that a recovered store gives differs from the one that it was recovered from, file by file.

Called by the drill. Of a file that differs the fields are named, never what they say: of an object that waits for its
end all is recorded, and who reads the log of a job need not be who may read that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from reconciler.layout.errors import BadFile
from reconciler.layout.yamldoc import parse
from reconciler.repository.difference import FileChange, difference
from reconciler.repository.objects import Repository
from reconciler.review.fields import differences

MISSING, MADE, CHANGED = "missing", "made", "changed"
"""What is wrong with a file: the recovery does not give it; it gives one that the branch lacks; it gives another."""
_LARGEST = 1 << 20
"""Bytes of a file whose fields are told."""
_FIELDS = 100


class RecordDifference(NamedTuple):
    """`file`: of the status branch. `what`: MISSING, MADE or CHANGED; then `fields` differ, () where that is not told.
    `alike`: no field differs, and the form of the file does."""

    file: str
    what: str
    fields: tuple[str, ...] = ()
    alike: bool = False


def compared(repo: Repository, cloned: str, made: str) -> Iterator[RecordDifference]:
    """By path. `cloned`, `made`: trees."""
    for change in difference(repo, cloned, made):
        yield _told(repo, change)


def _told(repo: Repository, change: FileChange) -> RecordDifference:
    if change.old is None or change.new is None:
        return RecordDifference(change.path, MADE if change.old is None else MISSING)
    sides = [_read(repo, entry.kind, entry.id, change.path) for entry in (change.old, change.new)]
    if None in sides:
        return RecordDifference(change.path, CHANGED)
    before, after = sides[0] or {}, sides[1] or {}
    found = sorted({each.field for each in differences("", before, after)})
    more = [f"and {len(found) - _FIELDS} more"] if len(found) > _FIELDS else []
    return RecordDifference(change.path, CHANGED, (*found[:_FIELDS], *more), not found)


def _read(repo: Repository, kind: str, blob: str, path: str) -> dict[str, Any] | None:
    """None where it is no file that could have been recorded."""
    if kind != "blob" or repo.blob_size(blob) > _LARGEST:
        return None
    try:
        documents = parse(repo.blob(blob), path)
    except BadFile:
        return None
    return documents[0].value if len(documents) == 1 else None
