"""Deleting objects through the API: preconditions, propagation, grace periods, finalizers.

Called by the endpoints (`delete`) and by the reconciler's loops (`operation`). An object that has to wait is marked
(deletionTimestamp) and stays until its last finalizer is taken away, which rest.py's updates notice. Who takes them
away is another matter: `orphan` and `foregroundDeletion` are garbage collection's, a namespace's `kubernetes` and a
definition's cleanup are their controllers'. Nothing here looks at any object but the one to delete.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from datetime import timedelta

from apiserver.model import clock
from apiserver.model.errors import StatusError, conflict, forbidden, not_found
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.conversion import convert
from apiserver.registry.rest import CRDS
from apiserver.registry.rest_checks import finished
from apiserver.registry.rest_options import (
    BACKGROUND,
    FOREGROUND,
    FOREGROUND_FINALIZER,
    ORPHAN,
    ORPHAN_FINALIZER,
    Collection,
    DeleteOptions,
    Object,
    Outcome,
)
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Conflict, Delete, Op, Put, Record

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer of a definition that is being deleted: its instances go first."""

_ATTEMPTS = 20
_PROTECTED = frozenset({"default", "kube-system", "kube-public"})
_NO_DEPENDENTS = frozenset({"events", "events.events.k8s.io"})
"""Kinds whose deletion takes no propagation policy."""
_ORPHANING = frozenset({"replicationcontrollers", "jobs.batch"})
"""Kinds whose dependents stay unless the request says otherwise."""
_JOB_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
    "or set propagationPolicy=Orphan to suppress this warning"
)


def delete(at: Collection, namespace: str, name: str, options: DeleteOptions) -> Outcome:
    """Raises StatusError: 403, 404, 409 for a precondition that does not hold."""
    kind = at.kind
    key = Key(kind.storage, at.cluster, namespace if kind.namespaced else "", name)
    for _ in range(_ATTEMPTS):
        record = at.store.get(key)
        if record is None:
            raise not_found(kind.resource, kind.group, name)
        live = codec.decode(record.value, record.revision)
        if not options.dry_run:
            at.admit("delete", name, live)
        _check(kind, live, options)
        try:
            return _delete(at, record, live, options)
        except Conflict:
            continue
    raise conflict(kind.resource, kind.group, name)


def delete_many(at: Collection, keys: Sequence[Key], options: DeleteOptions) -> list[Object]:
    """Several at once, as each of them was answered; what went meanwhile is left out. Raises StatusError as `delete`
    does: then some are deleted."""
    pending: list[tuple[Key, Outcome, Future[list[int]] | None]] = []
    for record in at.store.get_many(keys):
        if record is None:
            continue
        live = codec.decode(record.value, record.revision)
        if not options.dry_run:
            at.admit("delete", record.key.name, live)
        _check(at.kind, live, options)
        outcome, op = _planned(at, record, live, options)
        pending.append((record.key, outcome, at.store.write(op) if op is not None else None))
    found = []
    for key, outcome, future in pending:
        try:
            if future is not None:
                _written(outcome, future.result())
            found.append(outcome.obj)
        except Conflict:
            found += _again(at, key, options)
    return found


def _again(at: Collection, key: Key, options: DeleteOptions) -> list[Object]:
    try:
        return [delete(at, key.namespace, key.name, options).obj]
    except StatusError as error:
        if error.reason != "NotFound":
            raise
        return []


def warnings(kind: ServedKind, options: DeleteOptions) -> tuple[str, ...]:
    """What whoever deletes objects of this kind is told."""
    return (_JOB_WARNING,) if kind.qualified == "jobs.batch" and not options.policy else ()


def operation(kind: ServedKind, record: Record, options: DeleteOptions) -> Op | None:
    """What deleting the object comes to in the store: it goes, it is marked, or (None) it waits already.

    For the reconciler's loops: no admission, no preconditions but the revision of `record`. `kind` may be of any
    version.
    """
    live = codec.decode(record.value, record.revision)
    marked = decided(kind, live, options)
    if marked is None:
        return Delete(record.key, record.revision)
    if marked == live:
        return None
    return Put(record.key, codec.encode(marked), record.revision, record.stamp)


def decided(kind: ServedKind, live: Object, options: DeleteOptions) -> Object | None:
    """The object as it is while it waits to go (`live` itself if nothing changes), or None: it goes at once."""
    if not live["metadata"].get("deletionTimestamp"):
        if _is_namespace(kind):
            return _terminating_namespace(kind, live, options)
        if kind.qualified == CRDS:
            return _terminating_definition(live)
    elif _is_namespace(kind) and (live.get("spec") or {}).get("finalizers"):
        return live
    if kind.qualified == "pods":
        graceful = _graceful(live, options)
        if graceful is live:
            return live
        if graceful is not None:
            marked = _with_finalizers(kind, graceful, options)
            return None if finished(marked) else marked
    marked = _with_finalizers(kind, live, options)
    if not marked["metadata"].get("finalizers"):
        return None
    return _marked(kind, marked)


def _delete(at: Collection, record: Record, live: Object, options: DeleteOptions) -> Outcome:
    outcome, op = _planned(at, record, live, options)
    if op is not None:
        _written(outcome, at.store.write(op).result())
    return outcome


def _planned(at: Collection, record: Record, live: Object, options: DeleteOptions) -> tuple[Outcome, Op | None]:
    """What is answered and what is written. `live` is as it is stored: in whichever version, metadata are the same."""
    told = warnings(at.kind, options)
    marked = decided(at.kind, live, options)
    op: Op | None = None
    if marked is None:
        op = Delete(record.key, record.revision)
    elif marked != live:
        op = Put(record.key, codec.encode(marked), record.revision, record.stamp)
    shown = convert(live if marked is None else marked, at.kind)
    return Outcome(shown, removed=marked is None, warnings=told), None if options.dry_run else op


def _written(outcome: Outcome, revisions: list[int]) -> None:
    if not outcome.removed:
        outcome.obj["metadata"]["resourceVersion"] = str(revisions[0])


def _check(kind: ServedKind, live: Object, options: DeleteOptions) -> None:
    metadata = live["metadata"]
    if _is_namespace(kind) and metadata["name"] in _PROTECTED:
        raise forbidden(kind.resource, kind.group, metadata["name"], "this namespace may not be deleted")
    for what, field, asked in (("UID", "uid", options.uid), ("ResourceVersion", "resourceVersion", options.revision)):
        found = metadata.get(field, "")
        if asked and asked != found:
            raise _mismatch(kind, metadata["name"], what, asked, found)


def _mismatch(kind: ServedKind, name: str, what: str, asked: str, found: str) -> StatusError:
    if _is_namespace(kind) or kind.qualified == CRDS:
        why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}"
        return conflict(kind.resource, kind.group, name, why)
    happened = "deleted and then recreated" if what == "UID" else "modified"
    why = (
        f"the {what} in the precondition ({asked}) does not match the {what} in record ({found}). "
        f"The object might have been {happened}"
    )
    return conflict(kind.kind, kind.group, name, why)


def _is_namespace(kind: ServedKind) -> bool:
    return kind.resource == "namespaces" and not kind.group


# -- finalizers


def _with_finalizers(kind: ServedKind, live: Object, options: DeleteOptions) -> Object:
    """With the finalizer that the propagation policy asks for, and without the other one."""
    if kind.qualified in _NO_DEPENDENTS:
        return live
    found = list(live["metadata"].get("finalizers") or ())
    policy = options.policy or _standing_policy(kind, found)
    kept = [f for f in found if f not in (ORPHAN_FINALIZER, FOREGROUND_FINALIZER)]
    added = {ORPHAN: [ORPHAN_FINALIZER], FOREGROUND: [FOREGROUND_FINALIZER]}.get(policy, [])
    if set(found) == {*kept, *added}:
        return live
    metadata = {k: v for k, v in live["metadata"].items() if k != "finalizers"}
    if kept or added:
        metadata["finalizers"] = kept + added
    return {**live, "metadata": metadata}


def _standing_policy(kind: ServedKind, finalizers: list[str]) -> str:
    """Of a request that names none: what an earlier one left as a finalizer, else the kind's."""
    for finalizer in finalizers:
        if finalizer == ORPHAN_FINALIZER:
            return ORPHAN
        if finalizer == FOREGROUND_FINALIZER:
            return FOREGROUND
    return ORPHAN if kind.qualified in _ORPHANING else BACKGROUND


def _marked(kind: ServedKind, live: Object) -> Object:
    """As it is while its finalizers are waited for. Setting deletionTimestamp counts for the generation."""
    metadata = dict(live["metadata"])
    now = clock.now()
    if not metadata.get("deletionTimestamp"):
        _count(kind, metadata)
    if not metadata.get("deletionTimestamp") or metadata["deletionTimestamp"] > now:
        metadata["deletionTimestamp"] = now
    metadata["deletionGracePeriodSeconds"] = 0
    return {**live, "metadata": metadata}


def _count(kind: ServedKind, metadata: Object) -> None:
    if kind.generation:
        metadata["generation"] = int(metadata.get("generation") or 0) + 1


def _terminating_namespace(kind: ServedKind, live: Object, options: DeleteOptions) -> Object:
    """It takes its content along; who sees to that is the controller behind spec.finalizers."""
    marked = _with_finalizers(kind, live, options)
    metadata = {**marked["metadata"], "deletionTimestamp": clock.now()}
    return {**marked, "metadata": metadata, "status": {**(live.get("status") or {}), "phase": "Terminating"}}


def _terminating_definition(live: Object) -> Object:
    metadata = dict(live["metadata"])
    metadata["deletionTimestamp"] = clock.now()
    finalizers = list(metadata.get("finalizers") or ())
    metadata["finalizers"] = finalizers if CLEANUP in finalizers else [*finalizers, CLEANUP]
    told = terminating(
        True,
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    )
    return with_terminating({**live, "metadata": metadata}, told)


def terminating(holds: bool, reason: str, message: str) -> Object:
    """The condition Terminating of a CustomResourceDefinition."""
    at = clock.now()
    status = "True" if holds else "False"
    return {"type": "Terminating", "status": status, "lastTransitionTime": at, "reason": reason, "message": message}


def with_terminating(definition: Object, told: Object) -> Object:
    """The definition with that condition, in its place among the others."""
    status = definition.get("status") or {}
    found = list(status.get("conditions") or ())
    at = next((i for i, c in enumerate(found) if c.get("type") == told["type"]), None)
    if at is None:
        found.append(told)
    else:
        if found[at].get("status") == told["status"]:
            told = {**told, "lastTransitionTime": found[at].get("lastTransitionTime", told["lastTransitionTime"])}
        found[at] = told
    return {**definition, "status": {**status, "conditions": found}}


# -- grace periods, which pods alone have


def _graceful(pod: Object, options: DeleteOptions) -> Object | None:
    """The pod with its deletion time and grace period; `pod` itself where an earlier request stands; None where its
    time is over already."""
    metadata = pod["metadata"]
    asked = None if options.grace is None else (options.grace if options.grace >= 0 else 1)
    if metadata.get("deletionTimestamp"):
        standing = metadata.get("deletionGracePeriodSeconds")
        if not standing:
            return None
        if asked is None or asked >= standing:
            return pod
        return _shortened(pod, standing, asked)
    period = asked if asked is not None else int((pod.get("spec") or {}).get("terminationGracePeriodSeconds") or 0)
    phase = (pod.get("status") or {}).get("phase")
    if not (pod.get("spec") or {}).get("nodeName") or phase in ("Failed", "Succeeded"):
        period = 0
    due = clock.rfc3339(clock.parse(clock.now()) + timedelta(seconds=period))
    made = {**metadata, "deletionTimestamp": due, "deletionGracePeriodSeconds": max(0, period)}
    made["generation"] = int(metadata.get("generation") or 0) + 1
    return {**pod, "metadata": made}


def _shortened(pod: Object, standing: int, asked: int) -> Object:
    metadata = pod["metadata"]
    due = clock.parse(metadata["deletionTimestamp"]) + timedelta(seconds=asked - standing)
    now = clock.parse(clock.now())
    if due < now:
        due, asked = now, min(asked, 1)
    made = {**metadata, "deletionTimestamp": clock.rfc3339(due), "deletionGracePeriodSeconds": asked}
    return {**pod, "metadata": made}
