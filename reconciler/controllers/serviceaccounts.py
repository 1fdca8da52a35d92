"""The ServiceAccount `default` of every namespace, made where it is missing."""

from __future__ import annotations

from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.objects import complete
from apiserver.storage.protocol import NEVER, Op, Put, Record, Store
from reconciler.controllers.everynamespace import EveryNamespace
from reconciler.controllers.served import Serves


class ServiceAccounts(EveryNamespace):
    name = "serviceaccounts"
    version = "2"

    def __init__(self, store: Store, serves: Serves) -> None:
        super().__init__(store, serves, "serviceaccounts", "default")

    def provide(self, key: Key, found: Record | None) -> Op | None:
        made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}}
        return Put(key, codec.encode(complete(key, made, runtime=True)), NEVER) if found is None else None
