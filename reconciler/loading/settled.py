"""What workspaces provide, as it is stored and whoever made it: for loops, which judge no commit."""

from __future__ import annotations

from apiserver.storage.protocol import Store
from reconciler.loading.offers import Offers
from reconciler.loading.world import World


class _Settled:
    """The turns of a world in which nothing is being judged."""

    def settled(self, path: str) -> bool:  # noqa: ARG002
        return True

    def offers(self, path: str) -> Offers:
        raise LookupError(path)


class SettledWorld(World):
    """Made anew for each look: what is read of the store is remembered."""

    builds_on_files = False

    def __init__(self, store: Store) -> None:
        super().__init__(store, _Settled())
