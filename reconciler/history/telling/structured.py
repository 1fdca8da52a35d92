"""What was found of a history, for programs: one object, as JSON or YAML. See telling. Nothing is cut."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from reconciler.history.result import (
    CopyDifference,
    FleetLog,
    LogEntry,
    ObjectBlame,
    ObjectStep,
    ObjectTrace,
    ObjectWriter,
    SetField,
    SignedBy,
    ToldCommit,
    TracedPlacement,
    WorkspaceStep,
    moment,
)
from reconciler.review.fields import ABSENT, HIDDEN
from reconciler.review.result import ObjectName
from reconciler.review.telling import structured

Object = dict[str, Any]


def as_json(found: Any) -> str:
    return structured.json_of(_told(found))


def as_yaml(found: Any) -> str:
    return structured.yaml_of(_told(found))


@singledispatch
def _told(found: object) -> Object:
    raise TypeError(found)


@_told.register
def _(found: FleetLog) -> Object:
    head = {"name": found.head, "commit": found.commit}
    return {"head": head, "commits": [_entry(each) for each in found.entries], "more": found.more}


@_told.register
def _(found: ObjectBlame) -> Object:
    return {
        "head": {"name": found.head, "commit": found.commit},
        "workspace": found.object.workspace,
        **_name(found.object),
        "file": found.file,
        "line": found.line,
        "fields": [_field(each, found) for each in found.fields],
        "commits": [_commit(commit) | _writer(writer) for commit, writer in found.commits],
        "notes": list(found.notes),
    }


@_told.register
def _(found: tuple) -> Object:  # type: ignore[type-arg]
    return {"objects": [_trace(each) for each in found]}


def _entry(entry: LogEntry) -> Object:
    workspaces = [_workspace(each) for each in entry.workspaces]
    return _commit(entry.commit) | {"workspaces": workspaces, "more": entry.more, "notes": list(entry.notes)}


def _workspace(step: WorkspaceStep) -> Object:
    out: Object = {"path": step.path, "directory": step.directory, "change": str(step.change)}
    out |= {"movedFrom": step.moved_from} if step.moved_from else {}
    out |= {"movedTo": step.moved_to} if step.moved_to else {}
    return out | _writer(step.writer) | {"objects": [_object(each) for each in step.objects]}


def _object(step: ObjectStep) -> Object:
    out = {**_name(step.object), "change": str(step.change), "file": step.file, "line": step.line}
    return out | ({"movedFrom": step.moved_from} if step.moved_from else {}) | _writer(step.writer)


def _name(name: ObjectName) -> Object:
    out = {"kind": name.kind, "resource": name.resource, "name": name.name}
    return out | ({"namespace": name.namespace} if name.namespace else {})


def _commit(commit: ToldCommit) -> Object:
    return {
        "commit": commit.id,
        "time": moment(commit.time),
        "author": commit.author,
        "signer": _signer(commit.signer),
        "pusher": commit.pusher.as_json() or None,
        "subject": commit.subject,
    }


def _signer(by: SignedBy) -> Object:
    said = {"user": by.user, "key": by.key, "why": by.why}
    return {"state": by.state.value} | {name: text for name, text in said.items() if text}


def _writer(writer: ObjectWriter | None) -> Object:
    return {"writtenBy": {"user": writer.user, "known": writer.known}} if writer is not None else {}


def _field(each: SetField, found: ObjectBlame) -> Object:
    said: Object = {"hidden": True} if each.value is HIDDEN else {"value": each.value}
    commit = found.commits[each.commit][0].id
    return {"field": each.field, **said, "commit": commit, "file": each.file, "line": each.line}


def _trace(found: ObjectTrace) -> Object:
    out: Object = {"workspace": found.object.workspace, **_name(found.object), "target": found.target}
    out |= {"file": found.file, "line": found.line, "served": found.served}
    out |= {"commit": _commit(found.commit) | _writer(found.writer)}
    out |= {"recorded": {"commit": found.recorded, "time": found.recorded_at} if found.recorded else None}
    out |= {"placements": [_placement(each) for each in found.placements], "observed": found.observed}
    if found.differs is not None:
        out["differs"] = [_difference(each) for each in found.differs]
    return out | {"notes": list(found.notes)}


def _placement(found: TracedPlacement) -> Object:
    out: Object = {"name": found.name, "rule": found.rule, "since": found.since}
    if found.synced:
        out["synced"] = {"status": found.synced, "since": found.synced_since, "message": found.message}
    return out


def _difference(found: CopyDifference) -> Object:
    sides = {"declared": found.declared, "there": found.there}
    out: Object = {"field": found.field}
    out |= {side: said for side, said in sides.items() if said not in (ABSENT, HIDDEN)}
    return out | ({"hidden": True} if HIDDEN in sides.values() else {})
