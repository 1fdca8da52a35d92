"""What a sync target holds of ours, as it stands on the target itself: an ApplySet in each downstream namespace.

The parent is a ConfigMap that names the workspace, its Placements that placed the namespace here, the kinds among the
members and the commit last applied; members carry its id in a label. After any loss that is what pruning goes by. Pure;
see the ApplySet specification (KEP-3659).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apiserver.model import commits
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.kinds import GroupResource

Object = dict[str, Any]

PART_OF = "applyset.kubernetes.io/part-of"
ID = "applyset.kubernetes.io/id"
_TOOLING = "applyset.kubernetes.io/tooling"
_KINDS = "applyset.kubernetes.io/contains-group-kinds"
PARENT_NAME = "treeplane-inventory"
PARENT = GroupResource("", "configmaps")


@dataclass(frozen=True, slots=True)
class Inventory:
    """`kinds`: (group, kind) of the members, at least. `workspace`: path. `commit`: that what is here was applied from,
    or an earlier one. `placements`: by name, those that place the namespace here."""

    workspace: str
    commit: CommitRef = NONE
    kinds: frozenset[tuple[str, str]] = frozenset()
    placements: frozenset[str] = frozenset()


def applyset_id(namespace: str) -> str:
    """The id of the ApplySet whose parent is in this namespace of the target."""
    digest = hashlib.sha256(f"{PARENT_NAME}.{namespace}.ConfigMap.".encode()).digest()
    return f"applyset-{base64.urlsafe_b64encode(digest).decode().rstrip('=')}-v1"


def parent(namespace: str, inventory: Inventory, labels: dict[str, str]) -> Object:
    """The parent object to apply. `labels`: those of everything of ours on the target."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": PARENT_NAME,
            "namespace": namespace,
            "labels": {**labels, ID: applyset_id(namespace)},
            "annotations": {_TOOLING: "treeplane/v1", _KINDS: _printed(inventory.kinds)},
        },
        "data": {
            "workspace": inventory.workspace,
            "commit": str(inventory.commit),
            "placements": ",".join(sorted(inventory.placements)),
        },
    }


def read(live: Object) -> Inventory | None:
    """From a ConfigMap on the target; None if it is not a parent. What it says is the target's word: it is only ever
    used to find reasons for what is removed there."""
    metadata = live["metadata"]
    if metadata["name"] != PARENT_NAME or (metadata.get("labels") or {}).get(ID) != applyset_id(metadata["namespace"]):
        return None
    data = live.get("data") or {}
    kinds = (metadata.get("annotations") or {}).get(_KINDS, "")
    placements = frozenset(filter(None, str(data.get("placements", "")).split(",")))
    return Inventory(
        str(data.get("workspace", "")), _commit(str(data.get("commit", ""))), frozenset(_parsed(kinds)), placements
    )


def _commit(said: str) -> CommitRef:
    """What names no commit is no reason for anything."""
    try:
        return commits.parse(said)
    except ValueError:
        return NONE


def _printed(kinds: Iterable[tuple[str, str]]) -> str:
    return ",".join(sorted(f"{kind}.{group}" if group else kind for group, kind in kinds))


def _parsed(text: str) -> Iterable[tuple[str, str]]:
    for part in filter(None, text.split(",")):
        kind, _, group = part.partition(".")
        yield group, kind
