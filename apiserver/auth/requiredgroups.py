"""kcp's required groups: of which groups one has to be to enter a workspace, whatever its RBAC says.

The annotation names them, `;` between alternatives and `,` between groups that all have to be there. What it says of a
workspace holds for all below it as well, where each may require more and none requires less. Asked by rbac.py; which
LogicalClusters say anything is an index, so that in a fleet where none does nobody pays for it.
"""

from __future__ import annotations

from functools import lru_cache

import orjson

from apiserver.auth.user import PRIVILEGED, SERVICE_ACCOUNT_PREFIX, User
from apiserver.auth.warrants import ABROAD
from apiserver.model.keys import Key
from apiserver.model.marks import REQUIRED_GROUPS
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry.indexes import REQUIRING
from apiserver.registry.tree import lineage
from apiserver.storage.protocol import View

Alternatives = tuple[frozenset[str], ...]


def belongs(user: User, identities: tuple[User, ...], requirements: list[str]) -> bool:
    """Whether `user` may enter where these are required, one by one. `identities`: as RBAC knows the user. A
    ServiceAccount may, and whoever has rights beyond a workspace."""
    if user.name.startswith(SERVICE_ACCOUNT_PREFIX) or ABROAD in user.extra:
        return True
    groups = frozenset(group for each in identities for group in each.groups)
    if not groups.isdisjoint(PRIVILEGED):
        return True
    return all(any(each <= groups for each in _read(text)) for text in requirements)


@lru_cache(1024)
def _read(text: str) -> Alternatives:
    """An alternative in which a group has no name is nobody's, as in kcp."""
    return tuple(frozenset(map(str.strip, each.split(","))) for each in text.split(";"))


def requirements(store: View, cluster: str) -> list[str]:
    """What the workspace with this logical cluster name, and each that it is in, requires. One look, into an index that
    is empty, where nobody requires anything."""
    if not store.indexed(REQUIRING, limit=1):
        return []
    return [said for each in lineage(store, cluster) for said in _required(store, each)]


def _required(store: View, cluster: str) -> list[str]:
    if not store.indexed(REQUIRING, cluster, whole=True, limit=1):
        return []
    at = store.get(Key(LOGICAL_CLUSTERS, cluster, "", "cluster"))
    said = orjson.loads(at.value)["metadata"]["annotations"].get(REQUIRED_GROUPS) if at is not None else None
    return [said] if said else []
