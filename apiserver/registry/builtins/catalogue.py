"""The entries of all built-in kinds, and how they are found.

Everybody who treats some kinds differently makes a table of them with `having` when imported: what is asked on the path
of a request is then one look into a set or a dict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apiserver.model.kinds import GroupResource
from apiserver.registry.behaviours.base import Behaviour
from apiserver.registry.builtins import (
    access,
    control,
    core,
    networking,
    own,
    resources,
    scaling,
    sharing,
    storage,
    workloads,
)
from apiserver.registry.builtins.entry import BuiltinKind, ToVersion
from apiserver.registry.printers.base import Printer
from apiserver.registry.served import ServedKind

# In the order in which the export `kubernetes` offers what is bound: another one would be another export.
_FAMILIES = (core, workloads, networking, scaling, access, control, resources, storage, own, sharing)

ENTRIES: Mapping[str, BuiltinKind] = {entry.qualified: entry for family in _FAMILIES for entry in family.KINDS}
"""By qualified resource (`deployments.apps`): the store name of what is stored, but for kinds that share another's."""

_OTHER = BuiltinKind("", "")


def behaviour_of(kind: ServedKind) -> Behaviour:
    """Of Kubernetes' kinds and our own; one that does nothing where Kubernetes does nothing. A custom resource is what
    its definition says, whatever its name."""
    return ENTRIES.get(kind.qualified, _OTHER).behaviour if kind.builtin else _OTHER.behaviour


def converter_of(kind: ServedKind) -> ToVersion | None:
    """What gives its objects in another version; None where those differ in name alone."""
    return ENTRIES.get(kind.qualified, _OTHER).converts if kind.builtin else None


def printer_of(qualified: str) -> Printer:
    """What shows one of Kubernetes' own kinds."""
    return ENTRIES.get(qualified, _OTHER).printer


def having(said: Callable[[BuiltinKind], object]) -> frozenset[str]:
    """The kinds of which that is so, by qualified resource."""
    return frozenset(name for name, entry in ENTRIES.items() if said(entry))


def kinds_having(said: Callable[[BuiltinKind], object]) -> frozenset[str]:
    """As `having`, by the kinds that manifests name, whatever group they say."""
    return frozenset(entry.kind for entry in ENTRIES.values() if said(entry))


def resources_having(said: Callable[[BuiltinKind], object]) -> frozenset[GroupResource]:
    """As `having`, by group and resource."""
    return frozenset(GroupResource(entry.group, entry.resource) for entry in ENTRIES.values() if said(entry))
