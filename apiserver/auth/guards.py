"""What a write needs beyond the right to make it, by kind: nobody grants, signs or takes more than they may."""

from __future__ import annotations

from dataclasses import dataclass

from apiserver.auth import binding, escalation, reserving, signers
from apiserver.auth.escalation import Rights
from apiserver.auth.user import User
from apiserver.registry.rest_options import Object, Vet, vet_nothing
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Store


@dataclass(frozen=True, slots=True)
class RequestWriter:
    """Who writes, and where: in the logical cluster `cluster` of `store`, `path` "" where that is no workspace's.
    `user`: as they are seen there; `bearer`: as they came."""

    rights: Rights
    store: Store
    user: User
    bearer: User
    cluster: str
    path: str = ""


def guard(writer: RequestWriter, kind: ServedKind, subresource: str) -> Vet:
    """The Vet for writes of `kind`, or of a subresource of it."""
    granted = _granted(writer, kind, subresource)
    if not writer.path:
        return granted
    reserved = reserving.guard(writer.user, kind)

    def vet(new: Object, live: Object | None) -> None:
        reserved(new, live)
        granted(new, live)

    return vet


def _granted(writer: RequestWriter, kind: ServedKind, subresource: str) -> Vet:
    if not kind.builtin:
        return vet_nothing
    if kind.storage == signers.REQUESTS:
        return signers.guard(writer.rights, writer.cluster, writer.user, kind, subresource)
    taker = binding.Taker(writer.rights, writer.store, writer.bearer, writer.cluster, writer.path)
    taking = binding.guard(taker, kind) if writer.path else None
    return taking or escalation.guard(writer.rights, writer.cluster, writer.user, kind)
