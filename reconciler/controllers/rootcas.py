"""The ConfigMap `kube-root-ca.crt` of every namespace: the CA of this server, for programs that run inside.

Made where it is missing, and put right where somebody changed it; one that git declares is git's.
"""

from __future__ import annotations

from typing import Any

import orjson

from apiserver.model import origins
from apiserver.model.identity import base36_sha224
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.objects import complete
from apiserver.storage.protocol import NEVER, Op, Put, Record, Store
from reconciler.controllers.everynamespace import EveryNamespace
from reconciler.controllers.served import Serves

DESCRIPTION = "The CA bundle by which programs in this cluster check the certificate of its API server."

Object = dict[str, Any]


class RootCAs(EveryNamespace):
    """`bundle`: the certificates, PEM."""

    name = "rootcas"

    def __init__(self, store: Store, serves: Serves, bundle: str) -> None:
        super().__init__(store, serves, "configmaps", "kube-root-ca.crt", repairs=True)
        self.version = f"2 {base36_sha224(bundle)}"
        self._data = {"ca.crt": bundle}

    def provide(self, key: Key, found: Record | None) -> Op | None:
        if found is None:
            metadata = {"annotations": {"kubernetes.io/description": DESCRIPTION}}
            made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self._data}
            return Put(key, codec.encode(complete(key, made, runtime=True)), NEVER)
        obj: Object = orjson.loads(found.value)
        if origins.file_of(obj) or obj.get("data") == self._data:
            return None
        return Put(key, codec.encode({**obj, "data": self._data}), found.revision, found.stamp)
