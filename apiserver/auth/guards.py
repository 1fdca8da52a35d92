"""What a write needs beyond the right to make it, by kind: nobody grants or signs more than they may."""

from __future__ import annotations

from apiserver.auth import escalation, signers
from apiserver.auth.escalation import Rights
from apiserver.auth.user import User
from apiserver.registry.rest_options import Vet
from apiserver.registry.served import ServedKind


def guard(rights: Rights, cluster: str, user: User, kind: ServedKind, subresource: str) -> Vet:
    """The Vet for writes of `kind`, or of a subresource of it, by `user`."""
    if kind.storage == signers.REQUESTS:
        return signers.guard(rights, cluster, user, kind, subresource)
    return escalation.guard(rights, cluster, user, kind)
