"""`/clusters/system:admin`: what is in force in every workspace, as objects to read.

kcp keeps its bootstrap roles in a logical cluster of that name. Here they are part of the program (auth/bootstrap.py),
so they stand in a store of each process that nobody writes. Made by realms.py for the first who may see it.
"""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from apiserver.auth.bootstrap import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, RBAC_GROUP
from apiserver.auth.rbac import Authorizer
from apiserver.model import marks
from apiserver.model.keys import Key, storage_name
from apiserver.model.paths import SYSTEM_ADMIN
from apiserver.registry import codec, indexes
from apiserver.registry.catalog import Catalog
from apiserver.storage.declared import Declared
from apiserver.storage.memory import MemoryStore
from apiserver.storage.protocol import Put, Store

UNWRITABLE = (
    "what is in force in every workspace ships with the server and cannot be written: a ClusterRole of the same name "
    "in a workspace adds to it there"
)


def parts() -> tuple[Store, Catalog, Authorizer]:
    """What a realm is made of."""
    store = MemoryStore(declared=Declared(indexes.ALL))
    for plural, manifests in (("clusterroles", CLUSTER_ROLES.values()), ("clusterrolebindings", CLUSTER_ROLE_BINDINGS)):
        resource = storage_name(RBAC_GROUP, plural)
        store.write(*(_put(resource, manifest) for manifest in manifests)).result()
    return store, Catalog(store), Authorizer(store)


def _put(resource: str, manifest: dict[str, Any]) -> Put:
    """Under a uid that is the same in every process."""
    name = manifest["metadata"]["name"]
    uid = str(uuid5(NAMESPACE_URL, f"treeplane:{SYSTEM_ADMIN}:{resource}:{name}"))
    annotations = {marks.CLUSTER: SYSTEM_ADMIN, marks.ORIGIN: marks.SYSTEM}
    metadata = {**manifest["metadata"], "uid": uid, "annotations": annotations}
    return Put(Key(resource, SYSTEM_ADMIN, "", name), codec.encode({**manifest, "metadata": metadata}))
