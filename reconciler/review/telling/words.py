"""What all forms of a review have in common: counts, values, fields as lines. Texts are as strangers wrote them.

Called by the forms, which make harmless what they get from here.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from apiserver.model.counts import counted
from reconciler.loading.changeset import ChangeKind
from reconciler.review.fields import ABSENT, HIDDEN, FieldChange
from reconciler.review.result import ChangeReview, CopyChange, ReviewedCommit, TargetDifference, WorkspaceDifference

_VALUE = 160
"""Characters of a value that are shown on one line."""
_LINES = 40
"""Lines of a difference between two long texts."""


def summary(review: ChangeReview) -> str:
    """Counts: `2 workspaces configured, 1 held; 3 objects created; 1 copy on a sync target changes`."""
    workspaces = Counter(each.change for each in review.workspaces)
    objects = Counter(found.change for each in review.workspaces for found in each.objects)
    copies = Counter(copy.verb for target in review.targets for copy in target.copies)
    said = ["treeplane.yaml configured"] if review.settings else []
    said += [_counted(workspaces, "workspace"), _counted(objects, "object")]
    waiting = sum(map(len, review.waiting.values()))
    said.append(f"{waiting} held for another workspace's mistake" if waiting else "")
    verbs = {"gets": "made", "changes": "changed", "loses": "removed"}
    of_copies = ", ".join(f"{copies[verb]} {word}" for verb, word in verbs.items() if copies[verb])
    said.append(f"copies on sync targets: {of_copies}" if of_copies else "")
    return "; ".join(part for part in said if part) or "no differences"


def _counted(found: Counter[ChangeKind], noun: str) -> str:
    words = [word for word in ChangeKind if found[word]]
    if not words:
        return ""
    first, *rest = words
    return ", ".join([f"{counted(found[first], noun)} {first}", *(f"{found[word]} {word}" for word in rest)])


def commit_line(found: ReviewedCommit) -> str:
    """Who pushed it comes first: the author is whoever the commit says, in whatever words."""
    return f"commit {found.id:.10} pushed by {found.by}, author {found.author}: {found.subject}"


def others(found: WorkspaceDifference) -> str:
    """Of objects that come, go or change with a workspace, and that no file declares."""
    return f"and {counted(found.others, 'object')} that no file declares"


def by_rule(found: TargetDifference) -> Iterator[tuple[str, list[CopyChange]]]:
    """The copies on a sync target by the Placement and the rule for which they are there, or go; in words."""
    groups: dict[str, list[CopyChange]] = {}
    for copy in found.copies:
        groups.setdefault(f"by Placement {copy.object.workspace} {copy.placement}: {copy.why}", []).append(copy)
    yield from groups.items()


def copy_line(copy: CopyChange) -> str:
    return f"{copy.verb} {copy.object}"


def value(said: Any, most: int = _VALUE) -> str:
    if said is ABSENT:
        return "(nothing)"
    if said is HIDDEN:
        return "(not shown)"
    text = json.dumps(said, ensure_ascii=False) if not isinstance(said, str) or not said else said
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def field_lines(change: FieldChange) -> Iterator[str]:
    """As a difference: lines that begin with `-`, `+` or a blank."""
    name, before, after = change
    if HIDDEN in (before, after):
        word = "created" if before is ABSENT else "deleted" if after is ABSENT else "configured"
        yield f"{_sign(word)} {name}: {word}, its value is not shown"
        return
    if isinstance(before, str) and isinstance(after, str) and ("\n" in before or "\n" in after):
        yield f"  {name}:"
        yield from _text_lines(before, after)
        return
    if before is not ABSENT:
        yield f"- {name}: {value(before)}"
    if after is not ABSENT:
        yield f"+ {name}: {value(after)}"


def _sign(word: str) -> str:
    return {"created": "+", "deleted": "-"}.get(word, "~")


def _text_lines(before: str, after: str) -> Iterator[str]:
    found = list(difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=1))[2:]
    for line in found[:_LINES]:
        if not line.startswith("@@"):
            yield f"{line[:1]}   {line[1:]}"
    if len(found) > _LINES:
        yield f"    and {counted(len(found) - _LINES, 'more line')}"


def cut(lines: Iterable[str], most: int, noun: str) -> Iterator[str]:
    """At most so many, and how many there are besides."""
    found = list(lines)
    yield from found[:most]
    if len(found) > most:
        yield f"and {counted(len(found) - most, f'more {noun}')}"
