"""What holds state: a namespace with such an object does not move by itself. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.model.counts import some_of
from apiserver.model.kinds import GroupResource
from apiserver.registry.builtins.catalogue import ENTRIES

STATEFUL: dict[GroupResource, str] = {
    GroupResource(kind.group, kind.resource): kind.kind for kind in ENTRIES.values() if kind.stateful
}
"""Resources whose objects hold state, with their kinds. A Deployment that writes to its node's disk is not known of."""

_SHOWN = 3


def is_stateful(storage: str) -> bool:
    """Whether a storage resource (`statefulsets.apps:<identity>`) is one of these."""
    resource, _, group = storage.partition(":")[0].partition(".")
    return GroupResource(group, resource) in STATEFUL


def named(found: Sequence[str]) -> str:
    """Objects in words: `PersistentVolumeClaim web/data, StatefulSet web/db and 3 more`."""
    return some_of(found, _SHOWN)
