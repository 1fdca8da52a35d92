"""What workspaces provide, as it is stored and whoever made it: for loops, which judge no commit."""

from __future__ import annotations

from typing import Any

from apiserver.registry import tree
from apiserver.storage.protocol import Store
from reconciler.loading.offers import Offers
from reconciler.loading.world import FindSchema, World
from reconciler.plan.exports import Bound, Export


class _Settled:
    """The turns of a world in which nothing is being judged."""

    def settled(self, path: str) -> bool:  # noqa: ARG002
        return True

    def offers(self, path: str) -> Offers:
        raise LookupError(path)


class SettledWorld(World):
    """Made anew for each look: what is read of the store is remembered. What is made through the API may name a
    workspace by its logical cluster name, as in kcp; a manifest may not, since that name is another in every fleet."""

    builds_on_files = False

    def __init__(self, store: Store) -> None:
        super().__init__(store, _Settled())

    def find_type(self, path: str, name: str) -> dict[str, Any] | None:
        return super().find_type(self._path(path), name)

    def find_export(self, path: str, name: str) -> Export | None:
        return super().find_export(self._path(path), name)

    def former_export(self, path: str, name: str, bound: Bound, own: FindSchema | None = None) -> Export | None:
        return super().former_export(self._path(path), name, bound, own)

    def cluster_of(self, path: str) -> str:
        return super().cluster_of(self._path(path))

    def _path(self, named: str) -> str:
        return tree.path_named(self.store, named) or named
