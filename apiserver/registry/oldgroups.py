"""The names that kcp's groups had before they ended in `.io`: manifests of those days say `scheduling.kcp.dev`.

A request may use them in its path and its body, and is answered in them; what is stored, owned and asked of RBAC has
the newer name. Clients that look a kind up by its group find the older ones in the aggregated discovery, as resources
without verbs: they are nothing to list or to watch, or everything would be there twice.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from apiserver.registry.kindtable import KindTable
from apiserver.registry.served import ServedKind

NEWER = {f"{name}.kcp.dev": f"{name}.kcp.io" for name in ("apis", "core", "scheduling", "tenancy", "workload")}
"""What each is called now."""


def newer(group: str, kinds: KindTable) -> str:
    """The group that is meant by an older name; "" for a name that is none, or is served for itself, or stands for
    nothing here."""
    found = NEWER.get(group, "")
    return found if found in kinds.groups() and group not in kinds.groups() else ""


@lru_cache(256)
def spelled(kind: ServedKind, group: str) -> ServedKind:
    """A kind as somebody asks for it who calls its group so: not the version in which it is stored."""
    return replace(kind, spelled=group, storage_version=False, digest=f"{kind.digest}/{group}")


def table(kinds: KindTable) -> KindTable:
    """What `kinds` has under older names, as kinds of those groups; for documents, not for requests."""
    meant = {newer(old, kinds) for old in NEWER} - {""}
    return _table(tuple(k for k in kinds.all() if k.group in meant))


@lru_cache(64)
def _table(kinds: tuple[ServedKind, ...]) -> KindTable:
    older = {new: old for old, new in NEWER.items()}
    return KindTable(replace(k, group=older[k.group], digest=f"{k.digest}/{older[k.group]}") for k in kinds)


def unlisted(kind: ServedKind) -> ServedKind:
    """As discovery names it: to be found, and nothing else."""
    nothing: frozenset[str] = frozenset()
    return replace(kind, verbs=nothing, subresources=nothing, short_names=(), categories=())
