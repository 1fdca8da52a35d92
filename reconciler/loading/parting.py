"""What a workspace says of itself that leaves, or whose place a commit wants: what it waits for, and what is held.

Called by departure, which writes it into the Workspace and the LogicalCluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

import orjson

from apiserver.model import conditions
from apiserver.model.conditions import Condition, condition
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry.lifecycles import TERMINATOR, with_status
from apiserver.storage.protocol import View
from reconciler.loading.effects import ended
from reconciler.plan.computed import COMMIT_APPLIED

Object = dict[str, Any]

CONTENT_DELETED = "WorkspaceContentDeleted"
"""kcp's condition: False as long as something is left."""
_MOST = 1000
"""Objects that are counted to say what is waited for."""


def told(obj: Object, finalizer: str, said: Iterable[Condition]) -> Object:
    """A Workspace or LogicalCluster that says so. Its end began when the conditions' time was, if it did not before."""
    new = list(said)
    obj = ended(obj, new[0]["lastTransitionTime"], finalizer)
    status = obj.get("status") or {}
    phase = TERMINATOR.phase if TERMINATOR.left(obj) else "Deleting"
    status = {**status, "phase": phase, "conditions": conditions.merged(status.get("conditions"), new)}
    return with_status(obj, status)


def staying(obj: Object, errors: Iterable[str], at: str) -> Object:
    """The same of one that was made through the API and stays: what a commit has in its place is held, if there is
    anything."""
    status = obj.get("status") or {}
    there = [c for c in status.get("conditions") or () if c["type"] != COMMIT_APPLIED]
    wrong = list(errors)
    before = conditions.get(status.get("conditions"), COMMIT_APPLIED)
    told = conditions.merged([before] if before is not None else [], [_applied(wrong, at)]) if wrong else []
    return {**obj, "status": {**status, "conditions": [*told, *there]}}


def said_of(
    store: View, waiting: Iterable[Key], errors: Iterable[str], at: str, programs: Collection[str] = ()
) -> list[Condition]:
    """`waiting`: the objects with finalizers. `errors`: why what a commit has in its place is held. `at`: RFC 3339.
    `programs`: the terminators that act before anything ends."""
    if programs:
        text = f"waiting for the terminators {', '.join(programs)}: nothing is deleted before they are done"
        return [_applied(list(errors), at), condition(CONTENT_DELETED, False, "TerminatorExists", text, at=at)]
    return [_applied(list(errors), at), _left(store, waiting, at)]


def _applied(errors: list[str], at: str) -> Condition:
    """As of any workspace: whether what the newest commit says of it is so."""
    if errors:
        return condition(COMMIT_APPLIED, False, "ContentInvalid", "held back: " + "; ".join(errors), at=at)
    return condition(COMMIT_APPLIED, True, "Removed", "a commit took it away", at=at)


def _left(store: View, waiting: Iterable[Key], at: str) -> Condition:
    keys = sorted(key for key in waiting if key.resource != LOGICAL_CLUSTERS)
    if not keys:
        return condition(CONTENT_DELETED, True, "ContentDeleted", "nothing is left in the workspace", at=at)
    kinds = Counter(key.resource.partition(":")[0] for key in keys)
    found: Counter[str] = Counter()
    for each in store.get_many(keys[:_MOST]):
        if each is not None:
            found.update(orjson.loads(each.value)["metadata"].get("finalizers") or ())
    what = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(kinds.items()))
    who = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(found.items()))
    text = f"Some resources are remaining: {what}; Some content in the workspace has finalizers remaining: {who}"
    return condition(CONTENT_DELETED, False, "SomeFinalizersRemain", text, at=at)
