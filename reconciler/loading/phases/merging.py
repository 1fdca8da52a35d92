"""Merge: what good content makes of what is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from apiserver.model.commits import NONE
from apiserver.model.keys import Key
from apiserver.model.storagenames import SCHEMAS
from apiserver.registry import codec, keptschemas
from apiserver.storage.protocol import Delete, Put, Record
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.sourceref import SourceRef
from reconciler.loading.case import Recorded, Verdict
from reconciler.loading.changeset import ChangeKind, ObjectChange
from reconciler.loading.effects import Effects
from reconciler.loading.leaving import FINALIZERS, LeftBehind, is_waiting, label, labels_of, storages
from reconciler.loading.phases.effecting import effects_of, restored_of
from reconciler.loading.phases.judgement import Judgement
from reconciler.loading.phases.kinds import resolving
from reconciler.loading.render import DeclaredObject
from reconciler.loading.resolving import said_otherwise, waiting
from reconciler.loading.statuses import beginning, remembered, status_of
from reconciler.plan import heldbefore, turned
from reconciler.plan.residue import restore as restore_residue
from reconciler.plan.residue import restored_ending

Object = dict[str, Any]


def merge(at: Judgement) -> None:
    """Into what is stored, by what git said before."""
    known, content = at.known, at.content
    heldbefore.note(known, at.grounds.served.passed)
    known.served, known.held, known.before, known.claims, known.errors, known.damaged = None, NONE, NONE, {}, [], []
    if content.apis is not None:
        known.bindings = said_otherwise(content.apis.bindings, content.apis)
        known.waiting = waiting(content.apis)
        known.ending = labels_of(at.grounds.store, known.ending, at.record.cluster)
    effects, records = effects_of(at), at.stored([*content.declared, *content.removed])
    _remove(at, effects, records)
    for key, declared in content.declared.items():
        stored = records.get(key)
        if stays(at, declared):
            effects.changes.unchanged += 1
            effects.changed |= content.old.get(key) != declared.obj  # whoever has the key finds so, too
            continue
        status = status_of(declared, stored, content, effects, beginning)
        effects.put(declared, content.old.get(key), stored, status)
    if effects.changed or not at.record.served:
        known.commit = at.case.said_at
    _accept(at, effects)


def restore(at: Judgement) -> None:
    """What the status branch knows of the workspace and its objects is put back with what git says of them."""
    content, recorded = at.content, at.case.recorded
    assert recorded is not None
    effects, records = restored_of(at), at.stored([*content.declared, *content.removed])
    _remove(at, effects, records)
    _restore_endings(at, recorded, effects)
    otherwise = partial(remembered, recorded)
    for key, declared in content.declared.items():
        stored = records.get(key)
        if stays(at, declared):
            continue
        status = status_of(declared, stored, content, effects, otherwise)
        if stored is None:
            restore_residue(declared.obj, recorded.residue(key) or {})
        effects.put(declared, content.old.get(key), stored, status)
    _accept(at, effects)


def drop_likeness(at: Judgement) -> None:
    """What stands there is no more than a likeness of the workspace (loading/ahead): what that alone has goes. No
    commit takes it away, so nobody is asked."""
    objects = at.verdict.changes.objects
    written = {change.op.key for change in objects}
    left = at.grounds.stored([key for key in at.content.removed if key not in written])
    objects.extend(ObjectChange(ChangeKind.DELETED, Delete(key)) for key in left)


def stays(at: Judgement, declared: DeclaredObject) -> bool:
    """Whether an object is not written: nobody here can read what git says of it, so what is stored of it stays as it
    is, and what is not stored is not made."""
    return declared.manifest.locked and not at.case.keys.shown


def _accept(at: Judgement, effects: Effects) -> None:
    case, record, pinned = at.case, at.record, at.case.pinned
    passed, sourced = at.grounds.served.passed, case.sourced
    heldbefore.note_over(at.known, pinned.over, passed)
    at.known.source = {n: v for n, v in sourced.said.items() if n != "commit"} if sourced.of else {}
    heldbefore.note_content(at.known, sourced.commit, passed, case.moment.commit)
    served = replace(
        record,
        served=True,
        judged=NONE,
        errors=at.known.errors,
        commit=at.known.commit,
        head=case.moment.commit if effects.changes else record.head,
        directory=case.stands,
        writes=at.typed.kind.writes,
        labels=dict(at.typed.kind.labels),
        pin=dict(pinned.said),
        locked=at.gathered.locked,
        due=pinned.due,
        source=dict(sourced.said),
        follows=dict(sourced.follows),
    )
    effects.changes.locked = [*at.gathered.locked, *_elsewhere(at)]
    at.grounds.tree_objects.put(case, served, at.gathered, effects, at.look)
    at.verdict = Verdict(served, effects.changes)


def _elsewhere(at: Judgement) -> Iterator[str]:
    """What of a workspace was not looked at, since it is in another repository, of which nothing is here."""
    case, ref = at.case, SourceRef.kept(at.case.sourced.said)
    if ref is not None and case.content is not None and not isinstance(case.content.tree, ContentTree):
        yield f"{case.path}: its content is in {ref}, and was not looked at"


def _remove(at: Judgement, effects: Effects, records: Mapping[Key, Record]) -> None:
    for key, manifest in at.content.removed.items():
        record = records.get(key)
        waits = record is not None and key.resource in FINALIZERS and _takes_along(at, record, effects)
        effects.delete(key, record, FINALIZERS[key.resource] if waits else "")
        effects.changed |= manifest.locked
        turned.forget(at.known, turned.named(manifest.gvk.kind, key.name))
        if waits:
            at.known.ending.append(label(key))
        if record is not None:
            _keep_for_consumers(at, record, effects)


def _restore_endings(at: Judgement, recorded: Recorded, effects: Effects) -> None:
    """What no file declares any more and still waits for its finalizers."""
    cluster, content = at.record.cluster, at.content
    left = LeftBehind(recorded.endings(), cluster, at.case.path, resolving(at).read).objects(content.kinds)
    at.known.ending = [label(key) for key in left if key.resource in FINALIZERS and key not in content.declared]
    for key, obj in left.items():
        if key not in content.declared:
            put = Put(key, codec.encode(restored_ending(obj, cluster)))
            effects.changes.objects.append(ObjectChange(ChangeKind.CREATED, put))


def _takes_along(at: Judgement, definition: Record, effects: Effects) -> bool:
    """With a CRD or a binding go the objects of its kinds that git does not know of; whether any of all those waits for
    its finalizers, so that the definition has to."""
    key, content, store = definition.key, at.content, at.grounds.store
    known, waits = {*content.removed, *content.declared}, False
    brought = storages(key.resource, key.name, orjson.loads(definition.value))
    for resource in brought - {kind.storage for kind in content.kinds.all()}:
        waits = waits or is_waiting(store, resource, key.cluster)
        for left in store.scan(resource, key.cluster).records:
            if left.key not in known:
                effects.delete(left.key, left)
    return waits


def _keep_for_consumers(at: Judgement, record: Record, effects: Effects) -> None:
    """A provider that takes a schema away breaks nobody who is bound to it, be it on its way out."""
    if record.key.resource != SCHEMAS:
        return
    if at.grounds.world.consumers(at.case.path) or keptschemas.is_named(at.grounds.store, keptschemas.ref_of(record)):
        effects.changes.also.append(keptschemas.keep(record))
