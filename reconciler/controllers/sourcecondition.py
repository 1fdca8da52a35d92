"""Whether a workspace's source is followed: a condition of its Workspace and its LogicalCluster, which no commit tells.

`tell` is called by whoever follows sources (commands/sourcing). To tell the same again writes nothing, and nothing of
it stands on the status branch: it is told anew by whoever meets it.
"""

from __future__ import annotations

from typing import Any

from apiserver.model import clock, conditions, paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.plan.computed import SOURCE_FOLLOWED

Object = dict[str, Any]


def told(status: bool | None, reason: str, message: str) -> conditions.Condition:
    """As it is told. `status` None: it is not known yet."""
    return conditions.condition(SOURCE_FOLLOWED, status, reason, message)


def tell(store: Store, path: str, said: conditions.Condition) -> None:
    """Of the workspace at `path`, if it is there."""
    record = tree.workspace_at(store, path)
    parent = tree.workspace_at(store, record.parent) if record is not None and record.parent else None
    if record is None or record.leaves:
        return
    keys = [Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster")]
    keys += [Key(WORKSPACES, parent.cluster, "", paths.base(path))] if parent is not None else []
    for key in keys:
        Objects(store).update(key, lambda obj: _with(obj, said))


def _with(obj: Object, said: conditions.Condition) -> Object:
    status = obj.get("status") or {}
    before = conditions.get(status.get("conditions"), SOURCE_FOLLOWED)
    # One that was followed when it was seen first always was.
    at = obj["metadata"]["creationTimestamp"] if before is None and said["status"] == "True" else clock.now()
    found = conditions.merged(status.get("conditions"), [{**said, "lastTransitionTime": at}])
    return {**obj, "status": {**status, "conditions": found}}
