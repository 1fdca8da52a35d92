"""Whether a workspace's source is followed, and whether its status is written there: conditions of its Workspace and
its LogicalCluster, which no commit tells.

Called by whoever follows sources (commands/sourcing) and writes to them (commands/excerpting). To tell the same again
writes nothing, and nothing of it stands on the status branch: it is told anew by whoever meets it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from apiserver.model import clock, conditions, paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.plan import runtimestatus
from reconciler.plan.computed import SOURCE_FOLLOWED, SOURCE_STATUS_WRITTEN

Object = dict[str, Any]


def told(status: bool | None, reason: str, message: str) -> conditions.Condition:
    """Whether it is followed, as it is told. `status` None: it is not known yet."""
    return conditions.condition(SOURCE_FOLLOWED, status, reason, message)


def told_of_status(status: bool | None, reason: str, message: str) -> conditions.Condition:
    """The same of whether the workspace's status is written there."""
    return conditions.condition(SOURCE_STATUS_WRITTEN, status, reason, message)


def standing(store: Store, path: str) -> conditions.Condition | None:
    """What is told of whether it is followed."""
    found = (Objects(store).get(key) for key in _keys(store, path))
    said = (conditions.get((each.get("status") or {}).get("conditions"), SOURCE_FOLLOWED) for each in found if each)
    return next((each for each in said if each is not None), None)


def tell(store: Store, path: str, said: conditions.Condition) -> None:
    """Of the workspace at `path`, if it is there."""
    _each(store, path, lambda obj: _with(obj, said))


def take_back(store: Store, path: str, kind: str) -> None:
    """Nothing of that kind is told of the workspace any more."""
    _each(store, path, lambda obj: _without(obj, kind))


def _each(store: Store, path: str, change: Callable[[Object], Object]) -> None:
    for key in _keys(store, path):
        Objects(store).update(key, change)


def _keys(store: Store, path: str) -> Iterator[Key]:
    """Of the two objects, of a workspace that stays."""
    record = tree.workspace_at(store, path)
    parent = tree.workspace_at(store, record.parent) if record is not None and record.parent else None
    if record is None or record.leaves:
        return
    yield Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster")
    if parent is not None:
        yield Key(WORKSPACES, parent.cluster, "", paths.base(path))


def _with(obj: Object, said: conditions.Condition) -> Object:
    status = obj.get("status") or {}
    before = conditions.get(status.get("conditions"), said["type"])
    # One that was followed when it was seen first always was.
    at = obj["metadata"]["creationTimestamp"] if before is None and said["status"] == "True" else clock.now()
    found = conditions.merged(status.get("conditions"), [{**said, "lastTransitionTime": at}])
    return {**obj, "status": {**status, "conditions": found}}


def _without(obj: Object, kind: str) -> Object:
    return {**obj, "status": runtimestatus.without(obj.get("status") or {}, {kind})}
