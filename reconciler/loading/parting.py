"""What a workspace that leaves says of itself: what it waits for, and what a commit has in its place.

Called by departure, which writes it into the Workspace and the LogicalCluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import orjson

from apiserver.model import conditions
from apiserver.model.conditions import Condition, condition
from apiserver.model.keys import Key
from apiserver.storage.protocol import View
from reconciler.loading.effects import ended
from reconciler.plan.computed import LOGICAL_CLUSTERS

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
    there = conditions.merged(status.get("conditions"), new)
    return {**obj, "status": {**status, "phase": "Deleting", "conditions": there}}


def said_of(store: View, waiting: Iterable[Key], errors: Iterable[str], at: str) -> list[Condition]:
    """`waiting`: the objects with finalizers. `errors`: why what a commit has in its place is held. `at`: RFC 3339."""
    return [_applied(list(errors), at), _left(store, waiting, at)]


def _applied(errors: list[str], at: str) -> Condition:
    """As of any workspace: whether what the newest commit says of it is so."""
    if errors:
        return condition("CommitApplied", False, "ContentInvalid", "held back: " + "; ".join(errors), at=at)
    return condition("CommitApplied", True, "Removed", "a commit took it away", at=at)


def _left(store: View, waiting: Iterable[Key], at: str) -> Condition:
    keys = sorted(key for key in waiting if key.resource != LOGICAL_CLUSTERS)
    kinds = Counter(key.resource.partition(":")[0] for key in keys)
    found: Counter[str] = Counter()
    for each in store.get_many(keys[:_MOST]):
        if each is not None:
            found.update(orjson.loads(each.value)["metadata"].get("finalizers") or ())
    what = ", ".join(f"{name} has {count} resource instances" for name, count in sorted(kinds.items()))
    who = ", ".join(f"{name} in {count} resource instances" for name, count in sorted(found.items()))
    text = f"Some resources are remaining: {what}; Some content in the workspace has finalizers remaining: {who}"
    return condition(CONTENT_DELETED, False, "SomeFinalizersRemain", text, at=at)
