"""A workspace that a commit takes away while something in it waits for finalizers: it leaves, and is served until that
is gone.

What would go at once goes at once (removal). Where its type has terminators, these act first (the phase Terminating),
and all stays as it is. After that objects with finalizers are marked, as those that a commit takes away alone; what is
needed to let them go stays beside them (who may do what, namespaces, definitions); the rest goes. Workspace and
LogicalCluster get kcp's finalizers and say what is waited for. All that is left says that it was removed, so the status
branch has all of it, and a recovery needs no file of the commit that was left.

Called by steps (`depart`, `stay_away`), by the loader when something has gone (`is_over`, `tell`), and at a recovery
(`restore`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from apiserver.model import paths
from apiserver.model.commits import NONE
from apiserver.model.keys import Key
from apiserver.model.marks import CLUSTER_FINALIZER, WORKSPACE_FINALIZER
from apiserver.model.storagenames import BINDINGS, CRDS, LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import codec, indexes, tree
from apiserver.registry.lifecycles import TERMINATOR
from apiserver.registry.tree import USUAL_TYPE, WorkspaceRecord, listed, placed, put_workspace
from apiserver.storage.paging import pages
from apiserver.storage.protocol import Conflict, Delete, Op, Put, Record, Store, View
from reconciler.layout.errors import LayoutError
from reconciler.loading import parting, vacated
from reconciler.loading.changeset import ChangeKind, ObjectChange, WorkspaceChanges
from reconciler.loading.consumers import listing
from reconciler.loading.effects import ended, removed
from reconciler.loading.leaving import storages
from reconciler.loading.moment import Moment
from reconciler.loading.removal import kept_schemas, remove, unless_changed
from reconciler.plan.summary import Summary
from reconciler.statusbranch import format

Object = dict[str, Any]
AskedBehind = Mapping[str, dict[str, Any]]
"""By path, see Summary.asked."""

_RBAC = ".rbac.authorization.k8s.io"
_ACCOUNTS = "serviceaccounts"
_NAMESPACES = "namespaces"
_RETRIES = 20


def is_awaited(store: View, record: WorkspaceRecord) -> bool:
    """Whether a terminator is to act on the workspace, or anything in it has finalizers, a workspace below it that
    leaves included."""
    return bool(_terminators(store, record)) or bool(
        store.indexed(indexes.FINALIZERS, indexes.waiting(record.cluster), limit=1)
    )


def depart(
    store: View, record: WorkspaceRecord, parent: WorkspaceRecord | None, moment: Moment
) -> tuple[WorkspaceRecord, WorkspaceChanges]:
    """The workspace as it leaves, and what is written for that. `moment`: the commit that takes it away, of which it is
    from then on: nothing of it is declared there, and its directory may be anybody's."""
    at = moment.rfc3339
    changes = WorkspaceChanges(record.path, ChangeKind.DELETED)
    changes.objects = _all_removed(store, record) if _terminators(store, record) else _content_ended(store, record, at)
    left = replace(record, leaves=True, directory=format.apart(record.path), head=moment.commit, errors=[])
    left = replace(left, judged=NONE, due=0, source={}, follows={})
    changes.objects += _told(store, left, parent, at)
    changes.also += kept_schemas(store, (each.key for each in changes.objects if isinstance(each.op, Delete)))
    changes.also += listing(store, record.path, ())
    changes.also += _rows(left, record)
    return left, changes


def _terminators(store: View, record: WorkspaceRecord) -> list[str]:
    """Whose turn comes before anything in the workspace ends. One whose type has none costs no look."""
    found = store.get(Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster")) if record.terminators else None
    return TERMINATOR.left(orjson.loads(found.value)) if found is not None else []


def _all_removed(store: View, record: WorkspaceRecord) -> list[ObjectChange]:
    """While terminators act all stays, and is no file's any more."""
    out: list[ObjectChange] = []
    for key, each in _objects(store, record):
        if key.resource != LOGICAL_CLUSTERS:
            out += _put(each, removed(orjson.loads(each.value)))
    return out


def _content_ended(store: View, record: WorkspaceRecord, at: str) -> list[ObjectChange]:
    """What has finalizers is marked, what that needs stays, the rest goes."""
    out: list[ObjectChange] = []
    waiting = _waiting(store, record)
    needed = _Needed(waiting)
    for key, each in _objects(store, record):
        if key.resource == LOGICAL_CLUSTERS:
            continue
        if key in waiting:
            out += _put(each, ended(orjson.loads(each.value), at))
        elif not needed.stays(key, each):
            out.append(ObjectChange(ChangeKind.DELETED, Delete(key, each.revision)))
    # What stays beside them is known last: a namespace by what is in it.
    for each in needed.kept():
        out += _put(each, removed(orjson.loads(each.value)))
    return out + [ObjectChange(ChangeKind.DELETED, Delete(each.key, each.revision)) for each in needed.gone()]


class _Needed:
    """What stays of a workspace as long as these objects wait."""

    def __init__(self, waiting: Iterable[Key]) -> None:
        self._resources = {key.resource for key in waiting}
        self._namespaces = {key.namespace for key in waiting if key.namespace}
        self._kept: list[Record] = []
        self._spaces: dict[str, Record] = {}

    def stays(self, key: Key, record: Record) -> bool:
        """Whether it may stay: of namespaces `kept` tells."""
        if key.resource == _NAMESPACES:
            self._spaces[key.name] = record
            return True
        if key.resource in (CRDS, BINDINGS):
            stays = bool(storages(key.resource, key.name, orjson.loads(record.value)) & self._resources)
        else:
            stays = key.resource.endswith(_RBAC) or key.resource == _ACCOUNTS
        if stays:
            self._kept.append(record)
            self._namespaces |= {key.namespace} - {""}
        return stays

    def kept(self) -> Iterator[Record]:
        yield from self._kept
        yield from (record for name, record in self._spaces.items() if name in self._namespaces)

    def gone(self) -> Iterator[Record]:
        """The namespaces that nothing needs."""
        return (record for name, record in self._spaces.items() if name not in self._namespaces)


def go_on(store: Store, record: WorkspaceRecord, at: str) -> None:
    """Something has gone that one that leaves may have waited for, or its last terminator is done: it goes, too, or
    says what it waits for by now. `at`: the time (RFC 3339)."""
    for _ in range(_RETRIES):
        parent = tree.workspace_at(store, record.parent)
        if _begins_to_end(store, record):
            with suppress(Conflict):
                store.write(*_ending(store, record, parent, at)).result()
            continue
        over = is_over(store, record, parent)
        last = _last(store, record, parent) if over else []
        over = over and is_over(store, record, parent)  # since what goes was read
        ops = last if over else tell(store, record, parent, at)
        try:
            if ops:
                store.write(*ops).result()
            return
        except Conflict:
            continue  # somebody wrote to it meanwhile, and may have added a finalizer
    raise RuntimeError(f"workspace {record.path} is written to so often that it cannot be taken away")


def _last(store: Store, record: WorkspaceRecord, parent: WorkspaceRecord | None) -> list[Op]:
    """What ends it. What a commit has in its place is judged after that, whatever comes between (vacated)."""
    vacate = vacated.vacate(record.path, dict(asked_behind(store, record)))
    return [*unless_changed(store, remove(store, record, parent)).ops(), vacate]


def _begins_to_end(store: View, record: WorkspaceRecord) -> bool:
    """Whether the last of its terminators is done, and nothing of it has ended yet."""
    found = store.get(Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster")) if record.terminators else None
    obj = orjson.loads(found.value) if found is not None else {}
    return bool((obj.get("status") or {}).get("phase") == TERMINATOR.phase and not TERMINATOR.left(obj))


def _ending(store: View, record: WorkspaceRecord, parent: WorkspaceRecord | None, at: str) -> list[Op]:
    """What ends its content then."""
    changes = _content_ended(store, record, at)
    gone = (each.key for each in changes if isinstance(each.op, Delete))
    return [*(each.op for each in changes), *tell(store, record, parent, at), *kept_schemas(store, gone)]


def is_over(store: View, record: WorkspaceRecord, parent: WorkspaceRecord | None) -> bool:
    """Whether nothing is waited for any more."""
    if _terminators(store, record):
        return False
    waiting = (each.key for each in store.indexed(indexes.FINALIZERS, indexes.waiting(record.cluster), limit=2))
    if any(key.resource != LOGICAL_CLUSTERS for key in waiting):
        return False
    own = [store.get(key) for key in _own(record, parent)]
    metadata = (orjson.loads(each.value)["metadata"] for each in own if each is not None)
    found = {finalizer for each in metadata for finalizer in each.get("finalizers") or ()}
    return found <= {CLUSTER_FINALIZER, WORKSPACE_FINALIZER}


def tell(store: View, record: WorkspaceRecord, parent: WorkspaceRecord | None, at: str) -> list[Op]:
    """What says in Workspace and LogicalCluster what is waited for, if that is something else by now."""
    return [change.op for change in _told(store, record, parent, at)]


def stay_away(
    store: View,
    record: WorkspaceRecord,
    parent: WorkspaceRecord | None,
    moment: Moment,
    why: Iterable[LayoutError],
    asked: AskedBehind | None = None,
) -> tuple[WorkspaceRecord, WorkspaceChanges]:
    """That a commit has a workspace at the path of one that leaves, or was made through the API: it is held for that
    until the other one has gone; for nothing, where there is none any more. `asked`: see Summary; None for what is
    known."""
    changes = WorkspaceChanges(record.path, ChangeKind.UNCHANGED, why=[*why])
    if changes.why:
        changes.became = ChangeKind.HELD
    errors = [str(each) for each in changes.why]
    held = replace(record, errors=errors, judged=(record.judged or moment.commit) if errors else NONE)
    known = asked_behind(store, record)
    if held != record:
        changes.objects += _told(store, held, parent, moment.rfc3339)
    if held != record or (asked is not None and asked != known):
        changes.also += _rows(held, record, known if asked is None else asked)
    return held, changes


def remember(store: View, record: WorkspaceRecord, asked: AskedBehind) -> WorkspaceChanges:
    """That something else is known of workspaces below it that a commit has; nothing, where it is not."""
    changes = WorkspaceChanges(record.path, ChangeKind.UNCHANGED)
    if asked != asked_behind(store, record):
        changes.also += _rows(record, record, asked)
    return changes


def asked_behind(store: View, record: WorkspaceRecord) -> AskedBehind:
    """What is known of workspaces that a commit has in the place of one that leaves, or below that (see Summary)."""
    found: AskedBehind = tree.summary(store, record.path).get("asked") or {}
    return found


def restore(record: WorkspaceRecord, objects: Mapping[Key, Object], asked: AskedBehind) -> WorkspaceChanges:
    """What puts back one that the status branch knows."""
    changes = WorkspaceChanges(record.path, ChangeKind.CREATED)
    changes.objects = [ObjectChange(ChangeKind.CREATED, Put(key, codec.encode(obj))) for key, obj in objects.items()]
    changes.also = _rows(record, None, asked)
    return changes


def _objects(store: View, record: WorkspaceRecord) -> Iterator[tuple[Key, Record]]:
    for resource in store.resources(record.cluster):
        if not resource.startswith("~"):
            for page in pages(store, resource, record.cluster):
                yield from ((each.key, each) for each in page)


def _put(record: Record, obj: Object) -> list[ObjectChange]:
    """Nothing where it is so already."""
    value = codec.encode(obj)
    put = Put(record.key, value, record.revision, record.stamp)
    return [ObjectChange(ChangeKind.CONFIGURED, put)] if value != record.value else []


def _rows(record: WorkspaceRecord, before: WorkspaceRecord | None, asked: AskedBehind | None = None) -> list[Op]:
    brought = {"writes": record.writes, "builtins": record.builtins}
    known = Summary(
        record.origin,
        record.commit,
        held=record.judged,
        errors=record.errors,
        leaves=record.leaves,
        asked=dict(asked or {}),
        type=record.type if record.type != USUAL_TYPE else "",
        brought={name: value for name, value in brought.items() if value},
        terminators=record.terminators,
        appeared=record.origin_time if record.origin.repository else 0,
    )
    return [*listed(record, before), placed(record), put_workspace(record, known.as_json())]


# -- what is said


def _own(record: WorkspaceRecord, parent: WorkspaceRecord | None) -> list[Key]:
    """The two objects that stand for it."""
    above = [Key(WORKSPACES, parent.cluster, "", paths.base(record.path))] if parent is not None else []
    return [Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster"), *above]


def _told(store: View, record: WorkspaceRecord, parent: WorkspaceRecord | None, at: str) -> list[ObjectChange]:
    """What both objects say by now. `at`: since when, where that is new."""
    programs = _terminators(store, record)
    waiting = {key for key in _waiting(store, record) if key.resource != LOGICAL_CLUSTERS}
    said = parting.said_of(store, waiting, record.errors, at, programs) if record.leaves else []
    # Once nothing is left in it, the LogicalCluster waits for whoever else holds it, and for nobody of ours.
    ours = CLUSTER_FINALIZER if waiting or programs else ""
    out: list[ObjectChange] = []
    for key, finalizer in zip(_own(record, parent), (ours, WORKSPACE_FINALIZER), strict=False):
        there = store.get(key)
        if there is not None:
            obj = _without(orjson.loads(there.value), CLUSTER_FINALIZER if key.resource == LOGICAL_CLUSTERS else "")
            new = parting.told(obj, finalizer, said) if record.leaves else parting.staying(obj, record.errors, at)
            out += _put(there, new)
    return out


def _without(obj: Object, finalizer: str) -> Object:
    metadata = {field: value for field, value in obj["metadata"].items() if field != "finalizers"}
    kept = [each for each in obj["metadata"].get("finalizers") or () if each != finalizer]
    return {**obj, "metadata": {**metadata, "finalizers": kept} if kept else metadata}


def _waiting(store: View, record: WorkspaceRecord) -> set[Key]:
    """What has finalizers in it."""
    return {each.key for each in store.indexed(indexes.FINALIZERS, indexes.waiting(record.cluster))}
