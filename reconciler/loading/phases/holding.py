"""Hold: a workspace whose content is no good stays as it is, and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import orjson

from apiserver.model import commits, marks
from apiserver.model.commits import NONE
from apiserver.model.storagenames import BINDINGS
from apiserver.registry.tree import WorkspaceRecord
from reconciler.layout.errors import LayoutError
from reconciler.layout.workspacedir import is_unknown
from reconciler.loading.case import Sourced, Verdict, was_served
from reconciler.loading.changeset import ChangeKind, ObjectChange, WorkspaceChanges
from reconciler.loading.leaving import labels_of
from reconciler.loading.phases.effecting import effects_of, restored_of
from reconciler.loading.phases.judgement import Go, Judgement
from reconciler.loading.phases.merging import stays
from reconciler.loading.phases.publishing import list_consumer, note_feeds, seal
from reconciler.loading.render import DeclaredObject, Renderer, itself
from reconciler.loading.statuses import beginning
from reconciler.loading.workspacetype import brought_by
from reconciler.loading.world import PROVIDED
from reconciler.plan.bindings import BindingInShort
from reconciler.plan.residue import COMPUTED
from reconciler.statusbranch import format

Object = dict[str, Any]

_FOLLOWED = PROVIDED | COMPUTED


def hold(at: Judgement) -> Go | None:
    """Where there are problems. All of them with their lines, the same ones whenever somebody looks."""
    return _hold(at, _nothing)


def hold_as_served(at: Judgement) -> Go | None:
    """The same where something may have gone that no commit takes away: what is served says it still, so it is made
    anew. It had been taken away and said again while it waited for its finalizers."""
    return _hold(at, _gone)


def _hold(at: Judgement, lacking: Callable[[Judgement], Iterable[ObjectChange]]) -> Go | None:
    if not at.content.problems:
        return None
    if not at.gathered.complete:
        return Go.WHOLE
    changes = WorkspaceChanges(at.case.path, why=_problems(at), refused=at.refused)
    at.known.damaged = at.gathered.damaged
    at.verdict = Verdict(held(at, changes), changes)
    changes.objects += lacking(at)
    _tell(at)
    return Go.DONE


def _problems(at: Judgement) -> list[LayoutError]:
    """All of them; of files that are read in another commit, or another repository, they say so."""
    found, pinned, sourced = set(at.content.problems), at.case.pinned.said, at.case.sourced
    if sourced.said and at.case.content is not None:
        theirs, text = {path for path, _ in at.case.content.tree.files(at.case.content.directory)}, told(sourced)
        if sourced.of and at.case.directory is not None:
            theirs.add(at.case.directory.manifest_path)
        there = {each for each in found if each.path in theirs}
        found = (found - there) | {replace(each, message=each.message + text) for each in there}
    elif pinned:
        inside, text = f"{at.record.directory}/", f", in {pinned['commit']:.10} to which it is pinned"
        here = {each for each in found if each.path.startswith(inside) and each.path != pinned["file"]}
        found = (found - here) | {replace(each, message=each.message + text) for each in here}
    return sorted(found)


def told(sourced: Sourced) -> str:
    """Where a file stands that is none of the fleet's. What it is pinned to is that commit."""
    return f", in {sourced.commit.id:.10} of {sourced.said['repository']}"


def _nothing(_: Judgement) -> Iterable[ObjectChange]:
    return ()


def _gone(at: Judgement) -> Iterable[ObjectChange]:
    """What makes the objects that the served commit has and the store has not. What others follow or kinds come from
    is left alone: while it ends it is never said again without holding the workspace."""
    if not at.record.served:
        return ()
    renderer = Renderer(at.content.was, at.record.cluster, lambda manifest, _: manifest.line, itself)
    found = (renderer.render(manifest)[0] for manifest in at.gathered.old)
    said = {each.key: each for each in found if each is not None and _is_of_a_file(each)}
    there = at.stored([*said])
    moment = at.grounds.site.moments.at(at.record.head, at.case.moment.time)
    said_at = commits.parse(at.record.source.get("commit", ""))
    effects = replace(effects_of(at), moment=moment, said_at=said_at)
    for key, declared in said.items():
        if key not in there and not stays(at, declared):
            effects.put(declared, None, None, beginning(declared, None))
    return effects.changes.objects


def _is_of_a_file(declared: DeclaredObject) -> bool:
    """What the server says for its own exports (their Secrets and slices) is made where it is known."""
    annotations = declared.obj["metadata"].get("annotations") or {}
    return declared.key.resource not in _FOLLOWED and annotations.get(marks.ORIGIN) != marks.SYSTEM


def hold_away(at: Judgement) -> Go | None:
    """The same of one that was served before a recovery and cannot be brought back: it is not served for now, and what
    the status branch knows of it stays as it is."""
    if not was_served(at.case.recorded) or not at.content.problems:
        return hold(at)
    changes = WorkspaceChanges(at.case.path, why=_problems(at))
    record = away(at.record, changes, at.case.removed)
    at.verdict = Verdict(replace(record, follows=dict(at.case.sourced.follows)), changes)
    if at.case.behind and at.known.served is None:
        # Who recovers from what is recorded next finds it where it was, and not where the fleet is by then.
        at.known.served, at.known.held = at.case.moment.commit, at.case.behind
        at.known.errors = at.verdict.record.errors
    _tell(at)
    return Go.DONE


def held(at: Judgement, changes: WorkspaceChanges) -> WorkspaceRecord:
    """The record of one that stays as it is; `known` is completed."""
    record, known, grounds = at.record, at.known, at.grounds
    changes.became = ChangeKind.HELD
    out = replace(
        record,
        errors=[str(p) for p in changes.why],
        judged=at.case.moment.commit,
        due=at.case.pinned.due,
        follows=dict(at.case.sourced.follows),
    )
    known.ending = labels_of(grounds.store, known.ending, record.cluster)
    known.errors = out.errors
    known.brought = brought_by(record) if record.served else {}  # its type may say something else meanwhile
    if not known.held:
        known.held = at.case.moment.commit
        known.before = grounds.guard.before_held(known.held) if grounds.guard is not None else NONE
        out, known.claims = _standing(at, out)
    out = replace(out, directory=_stood(at))
    known.served = out.head if record.served else NONE
    # What it is served with follows from the past alone, whatever its providers do meanwhile.
    statuses = _binding_statuses(at) if record.served else {}
    known.bindings = {name: BindingInShort.of(status).as_json() for name, status in statuses.items()}
    return out


def _stood(at: Judgement) -> str:
    """The directory that the record of one that is held names: where it is served from, or none of the repository's,
    where another workspace has that by now. Once it is so, it is so until this one is good again."""
    case, directory = at.case, at.record.directory
    if case.stays:
        return case.stands
    now_there = case.tree.at(directory) if directory else None
    return directory if now_there is None or now_there.path == case.path else format.apart(case.path)


def _standing(at: Judgement, record: WorkspaceRecord) -> tuple[WorkspaceRecord, dict[str, str]]:
    """One that is held from now on, and Summary.claims of it."""
    if not record.served:
        return record, {}
    served, claims = at.grounds.served.stands(record)
    return replace(record, head=served), claims


def away(record: WorkspaceRecord, changes: WorkspaceChanges, removed: LayoutError | None = None) -> WorkspaceRecord:
    """The record of one that cannot be brought back. `removed`: see Case."""
    text = "was served, and cannot be brought back"
    changes.became = ChangeKind.HELD
    changes.why = [LayoutError(p.path, p.line, p.column, f"{text}: {p.message}", p.hint) for p in changes.why]
    changes.why += [removed] if removed is not None else []
    return replace(record, served=False, errors=[str(p) for p in changes.why], due=0, source={})


def _tell(at: Judgement) -> None:
    """What stands for the workspace says so, too."""
    verdict = at.verdict
    if is_unknown(at.case.directory):
        seal(at)  # what its objects say is found once it is here
        return
    effects = restored_of(at) if at.case.recorded is not None else effects_of(at)
    effects.changes = verdict.changes
    at.grounds.tree_objects.put(at.case, verdict.record, at.gathered, effects, at.look)
    list_consumer(at, held=True)
    note_feeds(at, held=True)
    seal(at)


def _binding_statuses(at: Judgement) -> dict[str, Object]:
    found = at.grounds.store.scan(BINDINGS, at.record.cluster).records
    return {r.key.name: orjson.loads(r.value).get("status") or {} for r in found}
