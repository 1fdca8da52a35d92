"""Which Shard a workspace is on, and what objects say of it.

A Shard is an object of root, which a commit brings into effect; a workspace chooses one by its labels when it appears
and stays there. All of them are this server, so a Shard that says no address has that of the server. Called by the
loader, and by the views of the API for the addresses. Pure functions on objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from apiserver.model import marks
from apiserver.model.identity import base36_sha224
from apiserver.model.selectors import from_object

Object = dict[str, Any]

USUAL = "root"
"""The Shard that ships: a workspace that may be there and elsewhere is there."""
NONE = ""
"""Instead of a Shard's name: no Shard takes the workspace."""

_UNSCHEDULABLE = "experimental.core.kcp.io/unschedulable"
_HASH_LENGTH = 8


def selector_of(workspace: Object | None) -> Object | None:
    """What a Workspace says of the Shard that it is to be on; None: any will do."""
    location = ((workspace or {}).get("spec") or {}).get("location") or {}
    found: Object | None = location.get("selector")
    return found


def chosen(selector: Object | None, shards: Iterable[Object]) -> str:
    """The name of the Shard that a new workspace is on, NONE where there is none: of those that match and take any, the
    usual one or else the first. So it follows from the commit."""
    wanted = from_object(selector) if selector is not None else None
    names = [
        str(shard["metadata"]["name"])
        for shard in shards
        if _takes_any(shard) and (wanted is None or wanted.matches(shard["metadata"].get("labels")))
    ]
    return USUAL if USUAL in names else min(names, default=NONE)


def unmatched(selector: Object | None) -> str:
    """Why a workspace is on none."""
    if selector is None:
        return "no Shard takes a workspace: all of them are unschedulable"
    text = orjson.dumps(selector, option=orjson.OPT_SORT_KEYS).decode()
    return f"no Shard that takes workspaces matches spec.location.selector {text}"


def cluster_annotations(shard: str) -> dict[str, str]:
    """What the LogicalCluster of a workspace on that Shard says of it."""
    return {marks.SHARD: shard} if shard != NONE else {}


def workspace_annotations(shard: str, cluster: str) -> dict[str, str]:
    """The same of its Workspace, with kcp's internal ones."""
    if shard == NONE:
        return {}
    return {
        marks.SHARD: shard,
        marks.SHARD_HASH: base36_sha224(shard, _HASH_LENGTH),
        marks.LOGICAL_CLUSTER: cluster,
    }


def with_addresses(shard: Object, url: str) -> Object:
    """A Shard as clients read it. `url`: where clients reach the server."""
    spec: Mapping[str, str] = shard.get("spec") or {}
    base = spec.get("baseURL") or url
    return {**shard, "spec": {"baseURL": base, "externalURL": base, "virtualWorkspaceURL": base, **spec}}


def _takes_any(shard: Object) -> bool:
    """Whether new workspaces may go there. One that a commit took away is there only for its finalizers."""
    said = shard["metadata"].get("annotations") or {}
    return _UNSCHEDULABLE not in said and said.get(marks.ORIGIN) != marks.REMOVED
