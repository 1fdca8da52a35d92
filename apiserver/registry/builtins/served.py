"""The kinds that are there without a CRD or binding: in every workspace, and in an embedded sync target. And those of
our own that a workspace gets from an export that ships.

The objects of these stand under one store name, without an identity, whoever binds them: loops scan them by it. So
nobody else's kind may be stored there, which is why `storage_of` is asked wherever an identity becomes a store name,
and why their names are nobody's to claim (claims.py).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from apiserver.model.keys import storage_name
from apiserver.model.paths import ROOT
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.builtins.groups import GROUPS
from apiserver.registry.custom import kinds_of_crd
from apiserver.registry.facts import load
from apiserver.registry.kindtable import KindTable
from apiserver.registry.schemas import kubernetes_source
from apiserver.registry.served import Scale, ServedKind

_SCALE = Scale(".spec.replicas", ".status.replicas", ".status.selector")


@cache
def workspace_builtins() -> KindTable:
    """What every workspace serves: the kinds of Kubernetes and of kcp that kcp's workspaces have."""
    return KindTable(_usual())


@cache
def root_builtins() -> KindTable:
    """What root serves: the same, and what is there once for the whole fleet."""
    return KindTable([*_usual(), *(k for k in _treeplane() if ENTRIES[k.qualified].in_root)])


@cache
def target_builtins() -> KindTable:
    """What an embedded sync target serves: every stable kind of Kubernetes."""
    return KindTable(_kubernetes())


@cache
def kubernetes_builtins() -> KindTable:
    """What a workspace serves whose type asks for all of Kubernetes: its every stable kind, and kcp's."""
    return KindTable([*_kubernetes(), *_usual()])


@cache
def exported_builtins() -> KindTable:
    """What exports that ship bring to the workspaces that bind them."""
    return KindTable(k for k in _treeplane() if ENTRIES[k.qualified].export)


@cache
def common_builtins() -> KindTable:
    """What is one kind with one store name wherever it is served: in every workspace, in root, or by an export that
    ships."""
    return KindTable([*root_builtins().all(), *exported_builtins().all()])


@cache
def identified_builtins() -> KindTable:
    """What goes by SHIPPED_IDENTITY: these, and kcp's kinds that every workspace has here without a binding."""
    return KindTable(k for k in common_builtins().all() if ENTRIES[k.qualified].export or _is_kcps(k.group))


def _is_kcps(group: str) -> bool:
    return group.endswith(".kcp.io")


SHIPPED_IDENTITY = "0" * 64
"""The identity hash of the exports that ship. No key is known of which it would be the hash."""


def storage_of(group: str, resource: str, identity: str) -> str:
    """The store name of what is bound, or claimed, with that identity hash."""
    shipped = identity == SHIPPED_IDENTITY and identified_builtins().preferred(group, resource) is not None
    return storage_name(group, resource, "" if shipped else identity)


KUBERNETES = "Kubernetes"
"""As `spec.builtins` of a WorkspaceType: all of Kubernetes' kinds."""


def builtins_of(name: str, path: str) -> KindTable:
    """The kinds that the workspace at `path` starts with, by the name that its WorkspaceRecord has for them ("": the
    usual)."""
    if path == ROOT:
        return root_builtins()
    return kubernetes_builtins() if name == KUBERNETES else workspace_builtins()


@cache
def kubernetes_kind(group: str, resource: str, version: str) -> ServedKind | None:
    """Kubernetes' own kind of that name, whether or not a workspace has it."""
    return target_builtins().by_resource(group, version, resource)


def _usual() -> list[ServedKind]:
    return [k for k in (*_kubernetes(), *_treeplane()) if ENTRIES[k.qualified].everywhere]


@cache
def _treeplane() -> tuple[ServedKind, ...]:
    kinds = (kind for crd in load.treeplane() for kind in kinds_of_crd(crd))
    return tuple(replace(kind, builtin=True, definition="", names=ENTRIES[kind.qualified].names) for kind in kinds)


@cache
def _kubernetes() -> tuple[ServedKind, ...]:
    facts = load.kubernetes()
    order = {group: at for at, group in enumerate(GROUPS)}
    listed = sorted(facts["resources"], key=lambda r: (order.get(r["group"], len(order)), r["group"]))
    return tuple(_served(r) for r in listed)


def _served(fact: dict[str, Any]) -> ServedKind:
    name = storage_name(fact["group"], fact["resource"])
    entry = ENTRIES[name]
    source = kubernetes_source(fact["schema"])
    subresources = frozenset(fact["subresources"])
    stored = "get" in fact["verbs"]
    return ServedKind(
        group=fact["group"],
        version=fact["version"],
        resource=fact["resource"],
        singular=fact["singular"],
        kind=fact["kind"],
        list_kind=f"{fact['kind']}List",
        short_names=tuple(fact["short_names"]),
        categories=tuple(fact["categories"]),
        namespaced=fact["namespaced"],
        verbs=frozenset(fact["verbs"]),
        subresources=subresources,
        storage=(entry.shares or name) if stored else "",
        source=source,
        columns=entry.printer.columns,
        custom=False,
        builtin=True,
        generation=entry.generation,
        storage_version=not entry.shares and fact["version"] not in entry.other_versions,
        scale=_SCALE if "scale" in subresources else None,
        selectable=entry.selectable,
        deprecated=bool(entry.deprecated),
        deprecation_warning=entry.deprecated,
        digest=f"{source.digest}/{name}/{fact['version']}",
        names=entry.names,
    )
