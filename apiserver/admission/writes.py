"""Which writes a workspace takes through the API, and what the others are told.

A workspace's objects are declared in git; with `writes: ReadOnly` a request may store runtime state only: Events,
Leases and statuses, and what a commit took away may be let go of by whoever holds it with a finalizer. With `writes:
Store` every write is done and makes runtime objects, but for the objects that git declares: those stay git's, since the
next commit would put them back. With `writes: Commit` a write becomes a commit (committing.py), with `writes: Propose`
one of a branch that waits for review (proposing.py). Dry runs are told the same; reviews are no writes. Whoever may not
write learns that from the authorizer, before this names a file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.model import marks, origins
from apiserver.model.errors import StatusError, forbidden
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.builtins.entry import Runtime
from apiserver.registry.rest_options import Admit
from apiserver.registry.served import ServedKind
from apiserver.registry.tree import WorkspaceRecord

Object = dict[str, Any]

RUNTIME_KINDS = having(lambda kind: kind.runtime is Runtime.ALWAYS)
"""By store name: kinds whose objects are runtime state, so that git need not know them."""

SERVERS_STATUS = having(lambda kind: kind.servers_status)
"""By store name: kinds whose status the server alone writes. Nothing would put right what a client wrote there."""

ADMINISTERED_STATUS = having(lambda kind: kind.administered_status)
"""By store name: those of them of which an administrator may say something else, until the server says it again."""

FROM_COMMITS = having(lambda kind: kind.from_commits)
"""By store name: kinds that come into effect with a commit alone. One that was only stored would do nothing, or what it
did would be gone with the store."""


def is_runtime(kind: ServedKind) -> bool:
    return kind.storage in RUNTIME_KINDS


def read_only(kind: ServedKind, record: WorkspaceRecord) -> Admit:
    """The Admit of a workspace whose writes are ReadOnly."""

    def admit(verb: str, name: str, live: Object | None) -> None:  # noqa: ARG001
        if not is_runtime(kind) and not _is_removed(live):
            raise refusal(kind, record, name, live)

    return admit


def stored(kind: ServedKind, record: WorkspaceRecord) -> Admit:
    """The Admit of a workspace whose writes are Store. Of one that was made through the API the LogicalCluster is
    nobody else's to say: who may write it may hold it with a finalizer, and who may delete that of a home, the home."""

    def admit(verb: str, name: str, live: Object | None) -> None:
        held = verb != "delete" or record.is_home
        if record.stored and kind.storage == LOGICAL_CLUSTERS and live is not None and held:
            return
        gits = kind.storage in FROM_COMMITS or (live is not None and (_is_gits(live) or _ships(kind, live)))
        if gits and not is_runtime(kind):
            raise refusal(kind, record, name, live, "this object is")

    return admit


def committed(kind: ServedKind, record: WorkspaceRecord) -> Admit:
    """The Admit of a workspace whose writes are Commit or Propose: what no commit of one object can bring about is
    refused."""

    def admit(verb: str, name: str, live: Object | None) -> None:  # noqa: ARG001
        annotations = (live["metadata"].get("annotations") or {}) if live is not None else {}
        ships = annotations.get(marks.ORIGIN) == marks.SYSTEM or (live is not None and _ships(kind, live))
        if ships or kind.storage in FROM_COMMITS:
            raise refusal(kind, record, name, live, "this object is")

    return admit


def _is_removed(live: Object | None) -> bool:
    """Whether git has taken the object away already, and it waits for whoever takes its finalizers away."""
    return live is not None and (live["metadata"].get("annotations") or {}).get(marks.ORIGIN) == marks.REMOVED


def _ships(kind: ServedKind, live: Object) -> bool:
    """Whether it is a Workspace that no directory stands behind, and nobody made."""
    annotations = live["metadata"].get("annotations") or {}
    return kind.storage == WORKSPACES and not origins.path_in(annotations) and marks.ORIGIN not in annotations


def _is_gits(live: Object) -> bool:
    """Whether a file declares it, or Treeplane ships it."""
    annotations = live["metadata"].get("annotations") or {}
    return bool(origins.path_in(annotations)) or annotations.get(marks.ORIGIN) == marks.SYSTEM


COMMIT, PROPOSE = "Commit", "Propose"
IN_GIT = frozenset({COMMIT, PROPOSE})
"""Modes in which what a request makes is git's."""

POLICIES: dict[str, Callable[[ServedKind, WorkspaceRecord], Admit]] = {
    "ReadOnly": read_only,
    "Store": stored,
    COMMIT: committed,
    PROPOSE: committed,
}
"""By the mode of a workspace: its type's `spec.writes`, else that of treeplane.yaml."""


def refusal(
    kind: ServedKind, record: WorkspaceRecord, name: str, live: Object | None, what: str = "this fleet is"
) -> StatusError:
    """403 that names the file to edit, or the directory for what does not exist yet."""
    why = f"{what} changed in git, not here: {_advice(kind, record, name, live)}"
    return forbidden(kind.resource, kind.group, name, why)


def check_status(kind: ServedKind, name: str, *, administers: bool) -> None:
    """Of a write of a status. `administers`: by who administers everything. Raises StatusError 403."""
    if kind.storage in SERVERS_STATUS and not (administers and kind.storage in ADMINISTERED_STATUS):
        raise forbidden(kind.resource, kind.group, name, "its status is computed by the server")


def _advice(kind: ServedKind, record: WorkspaceRecord, name: str, live: Object | None) -> str:
    directory = record.directory or "the workspace's directory"
    if live is None and kind.storage == WORKSPACES:
        return f"commit {directory}/{name}/workspace.yaml, which may be empty, and push (treeplane ws create writes it)"
    if live is None:
        return f"add a manifest to {directory}, commit and push"
    annotations = live["metadata"].get("annotations") or {}
    path = origins.path_in(annotations)
    if path:
        return f"edit {path}, commit and push"
    match annotations.get(marks.ORIGIN):
        case marks.SYSTEM:
            return "this object ships with Treeplane and cannot be changed"
        case marks.RUNTIME:
            return f"no file declares this object, a controller made it; to keep one, add a manifest to {directory}"
        case _:
            return f"no file declares this object, Treeplane made it; to set it yourself, add a manifest to {directory}"
