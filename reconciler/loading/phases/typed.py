"""The workspace's type, which decides what it starts with, and with it the record that it will have."""

from __future__ import annotations

from dataclasses import replace

from apiserver.registry import workspacetypes as types
from apiserver.registry.tree import WorkspaceRecord
from reconciler.loading.case import Case
from reconciler.loading.newcomers import given_by, new_record
from reconciler.loading.phases.judgement import Grounds, Judgement, known_of, summary_of
from reconciler.loading.workspacetype import HasType, RememberedType, Served, type_of


def find_type(at: Judgement) -> None:
    """Of one that is served by what its record says."""
    _type(at, Served(at.case.record, known_of(at.grounds, at.case)))
    if not at.typed.problems:
        at.typed.tell(at.known)


def bring_type_back(at: Judgement) -> None:
    """As the status branch knows it."""
    assert at.case.recorded is not None
    _type(at, RememberedType(at.case.recorded))
    kind = at.typed.kind  # what stands where it comes back may be no more than a likeness of it (see ahead)
    at.record = _of_type(at.record, kind)


def identity(grounds: Grounds, case: Case, kind: types.ResolvedType) -> WorkspaceRecord:
    """The record as it is, or that of a workspace which appears now (or, at recovery, appeared then). Until a
    workspace is served, it has the type that it would have."""
    if case.record is not None:
        if case.record.served:
            return case.record
        return _of_type(case.record, kind)
    return new_record(grounds.site, case, kind, served=False)


def _of_type(record: WorkspaceRecord, kind: types.ResolvedType) -> WorkspaceRecord:
    return replace(record, type=str(kind.ref), builtins=kind.builtins, writes=kind.writes, **given_by(kind))


def _type(at: Judgement, has: HasType) -> None:
    at.typed = type_of(at.grounds.world, at.case, at.gathered, has)
    at.gathered.problems.extend((*at.case.problems, *at.typed.problems))
    at.record = identity(at.grounds, at.case, at.typed.kind)
    at.known = summary_of(at.grounds, at.case, at.record)
