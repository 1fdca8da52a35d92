"""The ServiceAccount `default` of every namespace, made where it is missing."""

from __future__ import annotations

from apiserver.model.keys import Key
from apiserver.storage.protocol import Check, Store
from reconciler.controllers.everynamespace import EveryNamespace
from reconciler.controllers.served import Serves


class ServiceAccounts(EveryNamespace):
    name = "serviceaccounts"
    version = "1"

    def __init__(self, store: Store, serves: Serves) -> None:
        super().__init__(store, serves, "serviceaccounts", "default")

    def provide(self, key: Key, there: Check) -> None:
        if self.objects.get(key) is None:
            made = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}}
            self.objects.create(key, made, runtime=True, inside=there)
