"""What the system sets is the system's to say: reserved labels and annotations, and groups of kinds.

Called by the write path through guards.py, for dry runs too; for commits loading/render. Who administers everything may
write labels and annotations all the same.
"""

from __future__ import annotations

from apiserver.auth.user import KCP_ADMIN, MASTERS, User
from apiserver.model import reserved
from apiserver.model.errors import forbidden
from apiserver.model.storagenames import CRDS
from apiserver.registry.behaviours.definitions import reserved_in
from apiserver.registry.rest_options import Object, Vet, vet_nothing
from apiserver.registry.served import ServedKind

_PRIVILEGED = frozenset({MASTERS, KCP_ADMIN})


def is_privileged(user: User) -> bool:
    return not _PRIVILEGED.isdisjoint(user.groups)


def guard(user: User, kind: ServedKind) -> Vet:
    """The Vet for writes of a user. Raises StatusError 403, in kcp's words. What is reserved of definitions is so for
    everybody, as in kcp."""
    privileged, defines = is_privileged(user), kind.builtin and kind.storage == CRDS
    if privileged and not defines:
        return vet_nothing

    def vet(new: Object, live: Object | None) -> None:
        metadata = new["metadata"]
        before = live["metadata"] if live is not None else {}
        why = [] if privileged else [mark.changed for mark in reserved.changes(metadata, before)]
        if defines:
            why += [cause.message for cause in reserved_in(new, live or {})]
        if why:
            raise forbidden(kind.resource, kind.group, metadata.get("name", ""), ", ".join(why))

    return vet
