"""A review for a terminal. See telling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.layout.fleet import FILE
from reconciler.loading.consequences import waiting_lines
from reconciler.loading.renames import REMEDY
from reconciler.plan.deletions import command
from reconciler.review.fields import FieldChange
from reconciler.review.result import ChangeReview, ObjectDifference, TargetDifference, WorkspaceDifference
from reconciler.review.telling.harmless import plain
from reconciler.review.telling.words import by_rule, commit_line, copy_line, cut, field_lines, others, summary

_OBJECTS, _FIELDS, _COPIES, _LINES, _COMMITS = 200, 100, 100, 100, 50


def told(review: ChangeReview) -> str:
    """In the order in which it is decided: workspaces with their objects, clusters, what is wrong, what to do."""
    return "".join(f"{line}\n" for line in _lines(review))


def _lines(review: ChangeReview) -> Iterator[str]:
    yield plain(f"from {review.base} to {review.target}")
    yield from cut((plain(commit_line(each)) for each in review.brings), _COMMITS, "commit")
    if review.settings:
        yield f"{FILE} configured"
        yield from _fields(review.settings, "  ")
    for workspace in review.workspaces:
        yield from _workspace(workspace)
    for line in waiting_lines(review.waiting):
        yield plain(line)
    for target in review.targets:
        yield from _target(target)
    for problem in review.problems:
        yield plain(f"error: {problem}")
    if review.problems:
        yield "nothing of it would be served"
    for old, new in sorted(review.renames.items()):
        yield plain(f"{old} does not move to {new}: {REMEDY}")
    yield from deletions(review)
    for warning in review.warnings:
        where = ": ".join(part for part in (warning.path, warning.file) if part)
        yield plain(f"warning: {where}: {warning.text}" if where else f"warning: {warning.text}")
    for note in review.notes:
        yield plain(f"note: {note}")
    yield summary(review)


def _workspace(found: WorkspaceDifference) -> Iterator[str]:
    moved = f" from {found.moved_from}" if found.moved_from else ""
    yield plain(f"workspace {found.path} {found.change}{moved}")
    for problem in found.why:
        yield plain(f"  error: {problem}")
    yield from cut((line for each in found.objects for line in _object(each)), _OBJECTS * 2, "line")
    if found.others:
        yield f"  {others(found)}"


def _object(found: ObjectDifference) -> Iterator[str]:
    yield plain(f"  {found.object} {found.change}" + (f" ({found.file})" if found.file else ""))
    yield from _fields(found.fields, "    ")


def _fields(changes: Iterable[FieldChange], indent: str) -> Iterator[str]:
    lines = [line for change in changes for line in field_lines(change)]
    yield from (f"{indent}{plain(line)}" for line in cut(lines, _FIELDS, "line"))


def _target(found: TargetDifference) -> Iterator[str]:
    yield plain(f"sync target {found.target}")
    for rule, copies in by_rule(found):
        yield plain(f"  {rule}")
        yield from (f"    {plain(line)}" for line in cut(map(copy_line, copies), _COPIES, "copy"))


def deletions(review: ChangeReview) -> Iterator[str]:
    """What has to be allowed first, and how."""
    for path, refused in sorted(review.refused.items()):
        yield plain(f"workspace {path}: {refused.why}; this would be deleted ({refused.digest}):")
        yield from (f"  {plain(line)}" for line in cut(refused.lines(), _LINES, "object"))
    if review.refused:
        yield "to delete all of this, push:"
        yield f"  {command(sorted({each.digest for each in review.refused.values()}))}"
