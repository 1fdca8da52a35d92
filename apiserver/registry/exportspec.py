"""What an APIExport says that it offers. Data, read from its `spec` as it is stored (v1alpha2).

The one reader of that field: the apiserver and the reconciler ask here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from apiserver.model.kinds import GroupResource

Object = dict[str, Any]


class Offered(NamedTuple):
    """A resource that is offered, and the name of the APIResourceSchema of the same workspace that it is served by."""

    resource: GroupResource
    schema: str


def offered(export: Object) -> list[Offered]:
    """Of an APIExport that is valid, in the order in which it says them."""
    return [
        Offered(GroupResource(each["group"], each["name"]), each["schema"])
        for each in (export.get("spec") or {}).get("resources") or ()
    ]


def offered_schemas(export: Object) -> list[str]:
    """Their schemas' names."""
    return [each.schema for each in offered(export)]


def schema_names(schema: str) -> GroupResource:
    """The group and resource in the name of an APIResourceSchema (`v1.widgets.example.io`, `v1-36.services.core`);
    empty ones where it names none."""
    resource, _, group = schema.partition(".")[2].partition(".")
    return GroupResource("" if group == "core" else group, resource)
