"""The other versions of a kind that is more than renamed between them, for those who own fields in them."""

from __future__ import annotations

from apiserver.registry.builtins.catalogue import converter_of
from apiserver.registry.conversion import convert
from apiserver.registry.kindtable import KindTable
from apiserver.registry.served import ServedKind
from apiserver.schema.versions import Other, Others, alike


def others(kinds: KindTable, kind: ServedKind) -> Others:
    """Of `kind`, the version of a request, among `kinds`. Converting raises StatusError."""
    if kind.conversion is None and converter_of(kind) is None:
        return alike

    def find(api_version: str) -> Other | None:
        group, _, version = api_version.rpartition("/")
        other = kinds.by_resource(group, version, kind.resource)
        if other is None or other.version == kind.version:
            return None
        return Other(other.schema.root, lambda obj: convert(obj, other), lambda obj: convert(obj, kind))

    return find
