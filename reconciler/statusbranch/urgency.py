"""What of a change of the store the status branch has to have at once: all that nobody could find out again.

Called by the writer for each entry of the log. An object's status can be observed again, with three exceptions: how a
Job ended (its Pods are gone then, and perhaps the Job), where a Placement runs, what runtime decided of a workspace.
Everything else that leaves a residue (identities, finalizers, deletions under way, field owners, allocations,
decisions) is known to the store alone.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from enum import IntEnum
from typing import Any

import orjson

from apiserver.model import marks
from apiserver.model.keys import Internal
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import tree
from apiserver.registry.keptschemas import KEPT_SCHEMAS
from apiserver.storage.protocol import Change
from reconciler.plan import residue, runtimestatus
from reconciler.plan.jobs import JOBS, ended

Object = dict[str, Any]

PLACEMENTS = "placements.scheduling.kcp.io"
_RUNTIME = marks.as_stored(marks.RUNTIME)
_ORIGIN, _FILE = f'"{marks.ORIGIN}"'.encode(), f'"{marks.SOURCE_PATH}"'.encode()
_WHOLE = frozenset({Internal.WORKSPACE, KEPT_SCHEMAS, WORKSPACES})
"""Whatever changes of these is no status: a Workspace's tells what its summary says."""


class Urgency(IntEnum):
    NOTHING = 0
    """No file follows from it."""
    STATUS = 1
    URGENT = 2


def of(change: Change, without: Container[str] = ()) -> Urgency:
    """What a change asks for. Where it cannot be told cheaply, more rather than less. `without`: logical clusters of
    which nothing is recorded."""
    key = change.key
    if key.cluster in without and key.resource not in _WHOLE:
        return Urgency.NOTHING  # before what it says is read
    values = (change.value, change.previous)
    if key.resource in _WHOLE:
        stored = tree.is_stored if key.resource == Internal.WORKSPACE else _is_runtime
        return Urgency.NOTHING if all(v is None or stored(v) for v in values) else Urgency.URGENT
    if not residue.may_leave(key) or all(v is None or residue.is_runtime(v) for v in values):
        return Urgency.NOTHING
    if change.value is None or change.previous is None:
        return Urgency.URGENT
    now, before = orjson.loads(change.value), orjson.loads(change.previous)
    if _lasting(now) != _lasting(before) or _decided(key.resource, now) != _decided(key.resource, before):
        return Urgency.URGENT
    return Urgency.STATUS if now.get("status") != before.get("status") else Urgency.NOTHING


def of_workspaces_end(resource: str) -> bool:
    """What it takes to tell whether the end of a workspace asks for something, of all that went with it: beside the
    object that stands for it, workspaces in it and schemas that it kept."""
    return resource in _WHOLE


def unrecorded(changes: Iterable[Change]) -> frozenset[str]:
    """The logical clusters that come or go among some changes and that no commit knows of: of what is in them there is
    no file."""
    placed = [change for change in changes if change.key.resource == Internal.WORKSPACE]
    known = {c.key.cluster for c in placed for v in (c.value, c.previous) if v is not None and not tree.is_stored(v)}
    return frozenset(change.key.cluster for change in placed) - known


def _is_runtime(value: bytes) -> bool:
    """As residue.is_runtime, at a glance where that will do: thousands of Workspaces come and go at once. Where the one
    origin that is said is this one, and no file, it is the object's own."""
    if _RUNTIME in value and _FILE not in value and value.count(_ORIGIN) == 1:
        return True
    return residue.is_runtime(value)


def _lasting(obj: Object) -> Object:
    """Without its status, who owns that, and the number of its revision."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in ("resourceVersion", "managedFields")}
    owners = [e for e in obj["metadata"].get("managedFields") or () if e.get("subresource") != "status"]
    return {**obj, "metadata": metadata, "status": owners}


def _decided(resource: str, obj: Object) -> object:
    """What of a status nobody could observe again."""
    status = obj.get("status") or {}
    name = resource.partition(":")[0]
    if name == str(JOBS) and ended(obj):
        return status
    if name in runtimestatus.RESOURCES:
        return runtimestatus.lasting(obj)
    return status.get("selectedLocation") if name == PLACEMENTS else None
