"""The kinds of a workspace as a table: found by resource or by kind, ordered as discovery lists them.

Tables are immutable and shared: all workspaces without kinds of their own have the same one, and so have all that
bind the same export.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from threading import Lock

from apiserver.model.kinds import GroupResource
from apiserver.registry.served import ServedKind

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_KEEP = 512


def version_order(version: str) -> tuple[int, int, int, str]:
    """Sorts versions best first: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), version)


class KindTable:
    """Of kinds with the same (group, resource) and version the first counts; so does the first resource of a group and
    kind, which keeps a kind from being two things."""

    __slots__ = ("_groups", "_kinds", "_of_kind", "_of_resource", "_preferred", "digest")

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._of_resource: dict[tuple[str, str, str], ServedKind] = {}
        self._of_kind: dict[tuple[str, str, str], ServedKind] = {}
        self._preferred: dict[tuple[str, str], ServedKind] = {}
        owners: dict[GroupResource, str] = {}
        versions: dict[str, set[str]] = {}
        for kind in kinds:
            if owners.setdefault(kind.group_resource, kind.storage) != kind.storage:
                continue
            key = (kind.group, kind.version, kind.resource)
            if key in self._of_resource or (kind.group, kind.version, kind.kind) in self._of_kind:
                continue
            self._of_resource[key] = kind
            self._of_kind[kind.group, kind.version, kind.kind] = kind
            versions.setdefault(kind.group, set()).add(kind.version)
            if kind.storage_version:
                self._preferred[kind.group, kind.resource] = kind
        for kind in self._of_resource.values():
            self._preferred.setdefault((kind.group, kind.resource), kind)
        self._kinds = tuple(self._of_resource.values())
        self._groups = {group: sorted(found, key=version_order) for group, found in versions.items()}
        text = "\n".join(map(_told, self._kinds))
        self.digest = hashlib.sha256(text.encode()).hexdigest()

    def by_resource(self, group: str, version: str, resource: str) -> ServedKind | None:
        return self._of_resource.get((group, version, resource))

    def by_kind(self, group: str, version: str, kind: str) -> ServedKind | None:
        return self._of_kind.get((group, version, kind))

    def preferred(self, group: str, resource: str) -> ServedKind | None:
        """The storage version of a resource; if that is not served, its first."""
        return self._preferred.get((group, resource))

    def all(self) -> Sequence[ServedKind]:
        return self._kinds

    def groups(self) -> dict[str, list[str]]:
        """Groups in the order of discovery, each with its versions, the preferred first."""
        return self._groups

    def of_storage(self, storage: str) -> ServedKind | None:
        """The kind in whose version objects under this store name are kept."""
        return next((k for k in self._preferred.values() if k.storage == storage), None)


def _told(kind: ServedKind) -> str:
    """What tells a kind from others in a table."""
    return f"{kind.digest} {kind.storage}{' ending' if kind.ending else ''}"


_overlays: OrderedDict[tuple[str, ...], KindTable] = OrderedDict()
_lock = Lock()


def overlay(base: KindTable, kinds: Iterable[ServedKind]) -> KindTable:
    """`base` with more kinds, which neither replace one of the base nor add a version to it; of several of one (group,
    resource) the first in `kinds` counts. Equal content gives the same table."""
    owners: dict[GroupResource, str] = {}
    others = (k for k in kinds if base.preferred(k.group, k.resource) is None)
    kept = [k for k in others if owners.setdefault(k.group_resource, k.storage) == k.storage]
    if not kept:
        return base
    added = sorted(kept, key=lambda k: (k.group, version_order(k.version)))
    key = (base.digest, *map(_told, added))
    with _lock:
        found = _overlays.get(key)
        if found is None:
            found = _overlays[key] = KindTable([*base.all(), *added])
            if len(_overlays) > _KEEP:
                _overlays.popitem(last=False)
        else:
            _overlays.move_to_end(key)
        return found
