"""How the syncer reaches a sync target: a kubeconfig from a Secret, or one made for an embedded target."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Any, NamedTuple

import yaml

from apiserver.auth.kubeconfig import syncer_kubeconfig
from apiserver.auth.pki import Keys
from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.proxyprotocol import LOCAL
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers.targets import Kubeconfig, Missing

Object = dict[str, Any]


def is_embedded(target: Object) -> bool:
    return "embedded" in ((target.get("spec") or {}).get("connection") or {})


class SecretPlace(NamedTuple):
    """Where a SyncTarget's kubeconfig stands: a Secret of its own workspace, and the key in it."""

    namespace: str
    name: str
    field: str


def place_of(reference: Object) -> SecretPlace:
    """`reference`: a SyncTarget's `kubeconfigSecretRef`."""
    return SecretPlace(reference.get("namespace", "default"), reference["name"], reference.get("key", "kubeconfig"))


class Kubeconfigs:
    """Answers for stored SyncTargets. `url`: where this process reaches the server. `trusted`: workspaces whose targets
    may be at any address, those of this machine and its network included. `among_proxies`: the server takes connections
    from this machine for a proxy's."""

    def __init__(
        self, store: Store, keys: Keys, url: str, trusted: Collection[str] = (), *, among_proxies: bool = False
    ) -> None:
        self._store = store
        self._objects = Objects(store)
        self._keys = keys
        self._url = url
        self._trusted = frozenset(trusted)
        self._first = LOCAL if among_proxies else b""

    def __call__(self, target: Object) -> Kubeconfig | Missing:
        cluster = target["metadata"]["annotations"][marks.CLUSTER]
        if is_embedded(target):
            record = tree.workspace_of(self._store, cluster)
            if record is None:
                return Missing("its workspace is not loaded")
            url = f"{self._url}/targets/{record.path}:{target['metadata']['name']}"
            config = yaml.safe_dump(syncer_kubeconfig(url, self._keys)).encode()
            return Kubeconfig(config, anywhere=True, embedded=True, first=self._first)
        reference = ((target.get("spec") or {}).get("connection") or {}).get("kubeconfigSecretRef")
        if not reference:
            return Missing("spec.connection names neither embedded nor kubeconfigSecretRef: set one of them")
        return self._from_secret(cluster, reference)

    def _from_secret(self, cluster: str, reference: Object) -> Kubeconfig | Missing:
        namespace, name, field = place_of(reference)
        record = tree.workspace_of(self._store, cluster)
        where = record.path if record else cluster
        secret = self._objects.get(Key("secrets", cluster, namespace, name))
        if secret is None:
            return Missing(f"there is no Secret {namespace}/{name}: put it into keys/secrets/{where}/")
        data = (secret.get("data") or {}).get(field)
        if not data:
            return Missing(f"the Secret {namespace}/{name} has no key {field}")
        try:
            content = base64.b64decode(data, validate=True)
        except ValueError:
            return Missing(f"the key {field} of Secret {namespace}/{name} is not base64")
        remedy = (
            f"an administrator lifts this check for all targets of {where} with `treeplane up --trust-targets {where}`"
        )
        return Kubeconfig(content, anywhere=where in self._trusted, remedy=remedy)
