"""Events about owner references that name an owner in another namespace: Kubernetes ignores those, and says so.

Called by garbage, for references that name nobody where they look.
"""

from __future__ import annotations

import contextlib
from typing import Any

import orjson

from apiserver.model import clock
from apiserver.model.identity import base36_sha224
from apiserver.model.keys import Key
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Conflict, Store
from reconciler.controllers.owners import Reference

Object = dict[str, Any]

REASON = "OwnerRefInvalidNamespace"
_NAMESPACES, _EVENTS = "namespaces", "events"


def stands_elsewhere(store: Store, resource: str, cluster: str, reference: Reference) -> bool:
    """Whether the object meant is in some namespace: one point read for each that the cluster has."""
    homes = [r.key.name for r in store.scan(_NAMESPACES, cluster).records]
    found = store.get_many([Key(resource, cluster, home, reference.name) for home in homes])
    return any(r is not None and orjson.loads(r.value)["metadata"].get("uid") == reference.uid for r in found)


def report(store: Store, key: Key, dependent: Object, reference: Reference) -> None:
    """Once for each dependent and reference."""
    metadata = dependent["metadata"]
    meant = (
        f"[{reference.api_version}/{reference.kind}, namespace: {key.namespace}, name: {reference.name}, "
        f"uid: {reference.uid}]"
    )
    digest = base36_sha224(f"{metadata.get('uid')}\0{reference.uid}")[:16]
    at = clock.now()
    event: Object = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {},
        "involvedObject": {
            "kind": dependent["kind"],
            "apiVersion": dependent["apiVersion"],
            **({"namespace": key.namespace} if key.namespace else {}),
            "name": key.name,
            "uid": metadata.get("uid", ""),
        },
        "type": "Warning",
        "reason": REASON,
        "message": f'ownerRef {meant} does not exist in namespace "{key.namespace}"',
        "source": {"component": "garbage-collector-controller"},
        "reportingComponent": "garbage-collector-controller",
        "reportingInstance": "",
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
    home = key.namespace or "default"
    with contextlib.suppress(Conflict):
        Objects(store).create(Key(_EVENTS, key.cluster, home, f"{key.name[:230]}.{digest}"), event, runtime=True)
