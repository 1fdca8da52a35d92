"""A kind as a workspace serves it, and the columns in which kubectl shows it. Plain data, read by everyone above."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from apiserver.model.kinds import GroupResource, GroupVersionKind
from apiserver.registry.names import Check, dns_subdomain
from apiserver.registry.schemas import SchemaSource
from apiserver.registry.webhookspec import Conversion
from apiserver.schema.structural import Schema

READ = frozenset({"get", "list", "watch"})
ALL_VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a Table. `type`: string, integer, number, boolean or date. `format`: `name` for the first column.
    `priority`: above 0 only with -o wide. `path`: JSONPath, "" where a printer computes the cell."""

    name: str
    type: str = "string"
    format: str = ""
    description: str = ""
    priority: int = 0
    path: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a kind keeps what its scale subresource shows: JSON paths (`.spec.replicas`). `selector` may be ""."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""


class Converts(Protocol):
    """A kind's webhook (webhookconversion.py)."""

    def convert(self, objects: Sequence[dict[str, Any]], kind: ServedKind) -> list[dict[str, Any]]: ...


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One version of one resource in one workspace.

    `storage`: Key.resource of its objects, with `:<identity>` for bound APIs; "" for reviews, which are answered and
    not stored. `custom`: a custom resource (items of lists carry apiVersion and kind, strategic merge is refused);
    False for Kubernetes' own, bound ones included. `builtin`: its schema is the program's and no definition's, so what
    the program knows of objects of that name holds of these. `generation`: metadata.generation is kept.
    `storage_version`: objects are stored in this version. `selectable`: fields besides metadata.name and
    metadata.namespace that field selectors may name. `digest`: of everything here, for caches. `conversion`: the
    webhook that converts between the versions, None if none does; `converter` calls it, where the kind is served.
    `definition`: the CustomResourceDefinition that brings it; "" for what is built in or bound. `ending`: its
    definition is being deleted, so nothing is made anew of it. `spelled`: the older name of its group under which a
    request knows it (oldgroups.py). `names`: the rule that its name follows.
    """

    group: str
    version: str
    resource: str
    singular: str
    kind: str
    list_kind: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    namespaced: bool
    verbs: frozenset[str]
    subresources: frozenset[str]
    storage: str
    source: SchemaSource
    columns: tuple[Column, ...]
    custom: bool
    generation: bool
    storage_version: bool = True
    deprecated: bool = False
    deprecation_warning: str = ""
    scale: Scale | None = None
    selectable: tuple[str, ...] = ()
    digest: str = ""
    conversion: Conversion | None = None
    converter: Converts | None = field(default=None, compare=False, repr=False)
    spelled: str = ""
    builtin: bool = False
    definition: str = ""
    names: Check = dns_subdomain
    ending: bool = False

    @property
    def schema(self) -> Schema:
        """Compiled when first used."""
        return self.source.compiled

    @property
    def of_cluster(self) -> bool:
        """Whether it is built in, so that a cluster's other parts are there beside it: no definition or binding brings
        it."""
        return self.builtin and not self.definition and ":" not in self.storage

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)

    @property
    def group_version_kind(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def api_version(self) -> str:
        """`apps/v1`, `v1`: as clients say it."""
        group = self.spelled or self.group
        return f"{group}/{self.version}" if group else self.version

    @property
    def own_version(self) -> str:
        """As `api_version`, under its own group's name: what is kept of it says this."""
        return f"{self.group}/{self.version}" if self.spelled else self.api_version

    @property
    def qualified(self) -> str:
        """`deployments.apps`, `configmaps`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource
