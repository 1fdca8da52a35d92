"""What was found of a history, for a terminal. See telling."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from reconciler.history.result import (
    FleetLog,
    LogEntry,
    ObjectBlame,
    ObjectStep,
    ObjectTrace,
    ObjectWriter,
    SignatureState,
    SignedBy,
    ToldCommit,
    WorkspaceStep,
    moment,
)
from reconciler.review.telling.harmless import plain
from reconciler.review.telling.words import cut, value

_OBJECTS = 200
"""Lines of one workspace."""
_DIFFERENCES = 100


@singledispatch
def _lines(found: object) -> Iterator[str]:
    raise TypeError(found)


def told(found: Any) -> str:
    return "".join(f"{plain(line)}\n" for line in _lines(found))


def _head(found: FleetLog | ObjectBlame) -> str:
    return found.head if found.commit.startswith(found.head) else f"{found.head} ({found.commit:.10})"


def people(commit: ToldCommit) -> Iterator[str]:
    """Three who need not be one: the author is whoever the commit says."""
    yield f"author {commit.author}"
    yield f"signer {signed(commit.signer)}"
    yield f"pusher {commit.pusher}"


def signed(by: SignedBy) -> str:
    match by.state:
        case SignatureState.GOOD:
            return f"{by.user} ({by.key})"
        case SignatureState.SERVER:
            return f"the server ({by.key})"
        case SignatureState.NONE:
            return "none: it is not signed"
        case SignatureState.LAPSED:
            return f"not at present: {by.why}"
        case _:
            return f"{by.state.value}: {by.why}"


def _written(writer: ObjectWriter | None) -> str:
    if writer is None:
        return ""
    return f", written by {writer.user}" if writer.known else f", written by {writer.user}, as its author claims"


@_lines.register
def _(found: FleetLog) -> Iterator[str]:
    for entry in found.entries:
        yield from _entry(entry)
    if not found.entries:
        yield f"no commit of {_head(found)} changes it"
    if found.more:
        yield "there are older commits: --max shows more"


def _entry(entry: LogEntry) -> Iterator[str]:
    commit = entry.commit
    yield f"commit {commit.id} {moment(commit.time)}"
    yield from (f"  {line}" for line in people(commit))
    yield f"    {commit.subject}"
    for workspace in entry.workspaces:
        yield from (f"  {line}" for line in _workspace(workspace))
    if entry.more:
        yield "  and more workspaces"
    yield from (f"  note: {note}" for note in entry.notes)


def _workspace(found: WorkspaceStep) -> Iterator[str]:
    where = f" from {found.moved_from}" if found.moved_from else f" to {found.moved_to}" if found.moved_to else ""
    yield f"workspace {found.path} {found.change}{where}{_written(found.writer)}"
    yield from cut((f"  {_object(each)}" for each in found.objects), _OBJECTS, "objects")


def _object(step: ObjectStep) -> str:
    where = f"{step.file}:{step.line}" if step.line else step.file
    moved = f" from {step.moved_from}" if step.moved_from else ""
    return f"{step.object} {step.change}{moved} ({where}){_written(step.writer)}"


@_lines.register
def _(found: ObjectBlame) -> Iterator[str]:
    yield f"{found.object} of {found.object.workspace}, at {_head(found)}: {found.file}:{found.line}"
    for each in found.fields:
        commit, _ = found.commits[each.commit]
        yield f"{commit.id:.10} {each.file}:{each.line} {each.field}: {value(each.value)}"
    for commit, writer in found.commits:
        yield f"commit {commit.id} {moment(commit.time)}{_written(writer)}"
        yield from (f"  {line}" for line in people(commit))
        yield f"    {commit.subject}"
    yield from (f"note: {note}" for note in found.notes)


@_lines.register
def _(found: tuple) -> Iterator[str]:  # type: ignore[type-arg]
    for each in found:
        yield from _trace(each)


def _trace(found: ObjectTrace) -> Iterator[str]:
    on = f" on {found.target}" if found.target else ""
    yield f"{found.object} of {found.object.workspace}{on}"
    yield f"  file {found.file}:{found.line} of {found.served:.10}, which is served"
    yield f"  commit {found.commit.id} {moment(found.commit.time)}{_written(found.writer)}"
    yield from (f"    {line}" for line in people(found.commit))
    yield f"      {found.commit.subject}"
    if found.recorded:
        yield f"  served since {found.recorded_at}, as status commit {found.recorded:.10} says"
    for each in found.placements:
        yield f"  by Placement {each.name} since {each.since}: {each.rule}"
        if each.synced:
            said = "applied" if each.synced == "True" else "not all is applied"
            yield f"    {said}, since {each.synced_since}" + (f": {each.message}" if each.message else "")
    if found.observed is not None:
        yield f"  the cluster has {'' if found.observed else 'not '}looked at it as it is now"
    yield from _compared(found)
    yield from (f"  note: {note}" for note in found.notes)


def _compared(found: ObjectTrace) -> Iterator[str]:
    if found.differs is None:
        return
    if not found.differs:
        yield "  its content is what the file declares"
        return
    yield "  its content is not what the file declares:"
    lines = (f"    {d.field}: {value(d.declared)} is declared, {value(d.there)} is there" for d in found.differs)
    yield from cut(lines, _DIFFERENCES, "fields")
