"""`writes: Commit`: which of a workspace's writes become commits, and how they are asked for.

Called by the endpoints, which give the write path this Sink. What is runtime state goes to the store as ever: objects
of runtime kinds, what controllers and ServiceAccounts create, what stands in a namespace that git does not know,
statuses, marks of a deletion. Everything else is put down as an intent, and is done when the reconciler has committed
it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Any, Literal

import orjson

from apiserver.model import marks, origins
from apiserver.model.errors import StatusError
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.builtins.entry import Runtime
from apiserver.registry.commits import WAIT, Commits
from apiserver.registry.intents import Intent
from apiserver.registry.sinks import StoreSink, Write, Written
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.waiter import Waiter
from apiserver.storage.protocol import Store

Object = dict[str, Any]
Way = Literal["git", "turn", "store"]
"""What a write needs: a commit; no commit, and that none of the same object is under way, since the object that is
stored then was made before this write; or neither."""

SECRETS = "secrets"
KEPT_FROM_GIT = (
    "this Secret is kept in keys/secrets/ of the server and not in git: back that directory up, "
    "since nothing else can restore it"
)
"""What whoever writes a Secret is told."""

OWN_RUNTIME_KINDS = having(lambda kind: kind.runtime is not Runtime.NO)
"""By store name: kinds whose objects never pass through git."""

_SERVICE_ACCOUNT = "system:serviceaccount:"
_NOT_GITS = frozenset(
    {"managedFields", "generation", "resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"}
)
_NOT_IN_WORKSPACE_YAML = _NOT_GITS | {"finalizers", "ownerReferences"}


class CommitSink:
    """Of one request. `author` is the user's name; once `waiter` has left, what was not begun is withdrawn."""

    __slots__ = ("_author", "_commits", "_record", "_store", "waiter")

    def __init__(self, store: Store, commits: Commits, record: WorkspaceRecord, author: str) -> None:
        self._store, self._commits, self._record, self._author = store, commits, record, author
        self.waiter = Waiter()

    def begin(self, write: Write) -> Callable[[], Written]:
        """As Sink.begin. Raises StatusError 503 while the workspace is held back: its branch cannot be built on.
        What does not fit any more by the time of its commit is refused with that."""
        way = self._way(write)
        if way == "store":
            return StoreSink(self._store).begin(write)
        if way == "turn":
            return self._commits.begin_in_turn(write, self.waiter)
        self._check_held()
        if write.room is not None:
            write.room.look(self._store)
        base = write.live.revision if write.live is not None else 0
        intent = Intent(write.key, self._author, write.value, base, write.sent, write.also, time.time() + WAIT)
        return self._commits.begin(intent, self.waiter)

    def check(self, write: Write) -> None:
        """As Sink.check. What the commit itself would be refused for is not known before it is made."""
        if self._way(write) == "git":
            self._check_held()
        if write.room is not None:
            write.room.look(self._store)

    def _check_held(self) -> None:
        if self._record.errors:
            raise _held(self._record)

    def _way(self, write: Write) -> Way:
        if write.key.resource in OWN_RUNTIME_KINDS:
            return "store"
        if write.live is None:
            directory = write.key.resource == WORKSPACES  # whoever makes one
            return "git" if directory or not self._created_at_runtime(write) else "store"
        live = orjson.loads(write.live.value)
        annotations = live["metadata"].get("annotations") or {}
        if annotations.get(marks.ORIGIN) in (marks.RUNTIME, marks.REMOVED):
            return "store"
        if write.value is None:
            return "git" if origins.path_in(annotations) else "store"
        if write.aside or live["metadata"].get("deletionTimestamp"):
            return "store"
        runtime = _NOT_IN_WORKSPACE_YAML if write.key.resource == WORKSPACES else _NOT_GITS
        return "git" if _said(live, runtime) != _said(orjson.loads(write.value), runtime) else "turn"

    def _created_at_runtime(self, write: Write) -> bool:
        """Whether a new object is runtime state for who makes it, for what it belongs to, or for where it stands."""
        if self._author.startswith(_SERVICE_ACCOUNT):
            return True
        owners = ((write.sent or {}).get("metadata") or {}).get("ownerReferences") or ()
        if any(isinstance(o, dict) and o.get("controller") for o in owners):
            return True
        if not write.key.namespace:
            return False
        namespace = self._store.get(Key("namespaces", write.key.cluster, "", write.key.namespace))
        if namespace is None:
            return False
        annotations = orjson.loads(namespace.value)["metadata"].get("annotations") or {}
        return annotations.get(marks.ORIGIN) == marks.RUNTIME


def _said(obj: Object, runtime: Collection[str]) -> Object:
    """What a manifest could say of the object. `runtime`: what it could not, of its metadata."""
    metadata = {k: v for k, v in obj["metadata"].items() if k not in runtime}
    return {**{k: v for k, v in obj.items() if k != "status"}, "metadata": metadata}


def _held(record: WorkspaceRecord) -> StatusError:
    errors = "; ".join(record.errors)
    message = f"workspace {record.path} is held back and takes no writes until a commit mends it: {errors}"
    return StatusError(503, "ServiceUnavailable", message)
