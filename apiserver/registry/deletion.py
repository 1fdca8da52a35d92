"""Deleting objects through the API: preconditions, propagation, grace periods, finalizers.

Called by the endpoints (`delete`) and by the reconciler's loops (`operation`). An object that has to wait is marked
(deletionTimestamp) and stays until its last finalizer is taken away, which rest_replace notices. Who takes them
away is another matter: `orphan` and `foregroundDeletion` are garbage collection's, a namespace's `kubernetes` and a
definition's cleanup are their controllers'. Nothing here looks at any object but the one to delete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from apiserver.model.errors import StatusError, conflict, forbidden, not_found
from apiserver.model.keys import Key
from apiserver.model.storagenames import CRDS
from apiserver.registry import codec, keptschemas
from apiserver.registry.conversion import convert
from apiserver.registry.marking import decided, is_namespace
from apiserver.registry.rest_options import Collection, DeleteOptions, Object, Outcome
from apiserver.registry.served import ServedKind
from apiserver.registry.sinks import Write, Written
from apiserver.storage.protocol import Conflict, Op, Record

_ATTEMPTS = 20
_PROTECTED = frozenset({"default", "kube-system", "kube-public"})
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
        at.admit("delete", name, live)
        check_preconditions(kind, live, options)
        try:
            return _delete(at, record, live, options)
        except Conflict:
            continue
    raise conflict(kind.resource, kind.group, name)


def delete_many(at: Collection, keys: Sequence[Key], options: DeleteOptions) -> list[Object]:
    """Several at once, as each of them was answered; what went meanwhile is left out. Raises StatusError as `delete`
    does: then some are deleted. All that was begun is waited for in any case."""
    pending: list[tuple[Key, Outcome, Callable[[], Written] | None]] = []
    failed: StatusError | None = None
    try:
        for record in at.store.get_many(keys):
            if record is None:
                continue
            live = codec.decode(record.value, record.revision)
            at.admit("delete", record.key.name, live)
            check_preconditions(at.kind, live, options)
            outcome, write = _planned(at, record, live, options)
            pending.append((record.key, outcome, at.begin(write) if write is not None else None))
    except StatusError as error:
        failed = error
    found = []
    for key, outcome, wait in pending:
        try:
            found += _ended(at, key, outcome, wait, options)
        except StatusError as error:
            failed = failed or error
    if failed is not None:
        raise failed
    return found


def _ended(
    at: Collection, key: Key, outcome: Outcome, wait: Callable[[], Written] | None, options: DeleteOptions
) -> list[Object]:
    try:
        if wait is not None:
            _told(outcome, wait())
    except Conflict:
        return _again(at, key, options)
    return [outcome.obj]


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
    write = _marking(record, live, decided(kind, live, options))
    return write.op() if write is not None else None


def _marking(record: Record, live: Object, marked: Object | None) -> Write | None:
    """The write of what `decided` said; None where the object waits already."""
    if marked is None:
        return Write(record.key, record, None)
    if marked == live:
        return None
    return Write(record.key, record, codec.encode(marked), aside=True, stamp=record.stamp)


def _delete(at: Collection, record: Record, live: Object, options: DeleteOptions) -> Outcome:
    outcome, write = _planned(at, record, live, options)
    if write is not None:
        _told(outcome, at.begin(write)())
    return outcome


def _planned(at: Collection, record: Record, live: Object, options: DeleteOptions) -> tuple[Outcome, Write | None]:
    """What is answered and what is written. `live` is as it is stored: in whichever version, metadata are the same."""
    marked = decided(at.kind, live, options)
    write = _marking(record, live, marked)
    if marked is None and write is not None:
        write = write._replace(also=keptschemas.keeping(at.store, [record]))
    if options.dry_run and write is not None:
        at.check(write)
    shown = convert(live if marked is None else marked, at.kind)
    outcome = Outcome(shown, removed=marked is None, warnings=warnings(at.kind, options))
    return outcome, None if options.dry_run else write


def _told(outcome: Outcome, written: Written) -> None:
    if not outcome.removed:
        outcome.obj["metadata"]["resourceVersion"] = str(written.revision)


def check_preconditions(kind: ServedKind, live: Object, options: DeleteOptions) -> None:
    """Raises StatusError 403 for a protected namespace, 409."""
    metadata = live["metadata"]
    if is_namespace(kind) and metadata["name"] in _PROTECTED:
        raise forbidden(kind.resource, kind.group, metadata["name"], "this namespace may not be deleted")
    for what, field, asked in (("UID", "uid", options.uid), ("ResourceVersion", "resourceVersion", options.revision)):
        found = metadata.get(field, "")
        if asked and asked != found:
            raise _mismatch(kind, metadata["name"], what, asked, found)


def _mismatch(kind: ServedKind, name: str, what: str, asked: str, found: str) -> StatusError:
    if is_namespace(kind) or kind.qualified == CRDS:
        why = f"Precondition failed: {what} in precondition: {asked}, {what} in object meta: {found}"
        return conflict(kind.resource, kind.group, name, why)
    happened = "deleted and then recreated" if what == "UID" else "modified"
    why = (
        f"the {what} in the precondition ({asked}) does not match the {what} in record ({found}). "
        f"The object might have been {happened}"
    )
    return conflict(kind.kind, kind.group, name, why)
