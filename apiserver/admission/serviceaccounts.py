"""What a new Pod gets of its ServiceAccount: the name, pull secrets, and the token's volume in every container.

As Kubernetes does it when a Pod is created through the API. Called by the write path before the Pod is checked, so
nothing is sure about its shape.
"""

from __future__ import annotations

import random
from typing import Any

import orjson

from apiserver.admission.place import Place
from apiserver.model.errors import forbidden
from apiserver.model.keys import Key
from apiserver.storage.protocol import Store

Object = dict[str, Any]

PODS = "pods"
DEFAULT = "default"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3607
_VOLUME = "kube-api-access-"
_MIRROR = "kubernetes.io/config.mirror"
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


def complete(place: Place, pod: Object) -> None:
    """Completes a new Pod in place. Raises StatusError 403 for an account that does not exist."""
    spec, metadata = pod.get("spec"), pod.get("metadata")
    if not isinstance(spec, dict) or not isinstance(metadata, dict) or _is_mirror(metadata):
        return
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT
    if not isinstance(name, str):
        return
    account = _account(place.store, Key("serviceaccounts", place.cluster, place.namespace, name))
    if account is None:
        if name != DEFAULT:
            where = f"{place.namespace}/{name}"
            why = f'error looking up service account {where}: serviceaccount "{name}" not found'
            raise forbidden(PODS, "", str(metadata.get("name") or ""), why)
        account = {}  # a controller makes it in a moment, as it will be
    spec["serviceAccountName"] = name
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    if _mounts(spec, account):
        _add_token(spec)


def _is_mirror(metadata: Object) -> bool:
    annotations = metadata.get("annotations")
    return isinstance(annotations, dict) and _MIRROR in annotations


def _account(store: Store, key: Key) -> Object | None:
    found = store.get(key)
    return orjson.loads(found.value) if found else None


def _mounts(spec: Object, account: Object) -> bool:
    """The Pod's word counts before the account's."""
    for said in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if said is not None:
            return bool(said)
    return True


def _add_token(spec: Object) -> None:
    volumes = _list(spec, "volumes")
    there = [v["name"] for v in volumes if str(v.get("name", "")).startswith(_VOLUME)]
    name = there[0] if there else _VOLUME + "".join(random.choices(_SUFFIX, k=5))  # noqa: S311 (a name, no secret)
    added = False
    for container in (*_list(spec, "containers"), *_list(spec, "initContainers")):
        mounts = _list(container, "volumeMounts")
        if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
            continue
        container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
        added = True
    if added and not there:
        spec["volumes"] = [*volumes, {"name": name, "projected": {"defaultMode": 420, "sources": _sources()}}]


def _sources() -> list[Object]:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]


def _list(holder: Object, field: str) -> list[Object]:
    """The objects in a list; what is none is left for the checks to name."""
    found = holder.get(field)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
