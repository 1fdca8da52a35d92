"""What is wrong with the fleet as a whole: kept in the store, and told as a condition of root's LogicalCluster.

`tell` is called by the reconciler's process wherever such a thing begins or ends; /readyz reads what is kept. To tell
the same again writes nothing.
"""

from __future__ import annotations

import threading
from enum import StrEnum
from typing import Any

from apiserver.model import clock, conditions
from apiserver.model.keys import Key
from apiserver.model.paths import ROOT
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import ABSENT, RowConflict, Store
from reconciler.plan.computed import FLEET_FOLLOWED

Object = dict[str, Any]

_FOLLOWED = "the branch is followed, and what happens is recorded on the status branch"
_lock = threading.Lock()


class Trouble(StrEnum):
    """The first of them is the condition's reason."""

    OBSERVING = "Observing"
    """Another server holds the repository."""
    HELD = "Held"
    """A commit is held as a whole."""
    UNREADABLE = "Unreadable"
    """The head of the branch is seen, and cannot be loaded: something of it is missing or damaged."""
    REMOTE_AWAY = "RemoteAway"
    """The source does not answer."""
    STATUS_BRANCH_DIVERGED = "StatusBranchDiverged"
    """Two branches of the source hold a status, and neither goes on from the other."""
    STATUS_BRANCH_REFUSED = "StatusBranchRefused"
    """The status branch's repository does not take what is recorded, or does not answer."""
    NOT_RECORDED = "NotRecorded"
    """What happens cannot be written down here: there is no room in the mirror, say."""


_ORDER = {kind.value: number for number, kind in enumerate(Trouble)}


def tell(store: Store, kind: Trouble, text: str = "") -> None:
    """What is wrong, with the whole command that goes on where there is one; "" once it is not any more. From every
    thread of every process."""
    with _lock:
        while True:
            row = tree.troubles_row(store)
            before = tree.told(row)
            after = {name: told for name, told in before.items() if name != kind} | ({kind.value: text} if text else {})
            try:
                if after != before:
                    store.write(tree.put_troubles(after, ABSENT if row is None else row)).result()
                break
            except RowConflict:  # another process told something else
                continue
        _state(store)


def show(store: Store) -> None:
    """Bring the condition up to what is kept: once root is loaded, which may be later than the first trouble."""
    with _lock:
        _state(store)


def _state(store: Store) -> None:
    root = tree.workspace_at(store, ROOT)
    if root is not None:
        key = Key(LOGICAL_CLUSTERS, root.cluster, "", "cluster")
        Objects(store).update(key, lambda obj: _with_condition(obj, tree.troubles(store)))


def _with_condition(obj: Object, troubles: dict[str, str]) -> Object:
    status = obj.get("status") or {}
    told = status.get("conditions")
    before = conditions.get(told, FLEET_FOLLOWED)
    # One that was never in trouble has been followed since it began; a recovered one as well.
    at = obj["metadata"]["creationTimestamp"] if before is None and not troubles else clock.now()
    found = conditions.merged(told, [_condition(troubles, at)])
    return {**obj, "status": {**status, "conditions": found}}


def _condition(troubles: dict[str, str], at: str) -> Object:
    if not troubles:
        return conditions.condition(FLEET_FOLLOWED, True, "Followed", _FOLLOWED, at=at)
    known = sorted(troubles, key=lambda kind: _ORDER.get(kind, len(_ORDER)))
    text = "; ".join(troubles[kind] for kind in known)
    return conditions.condition(FLEET_FOLLOWED, False, known[0], text, at=at)
