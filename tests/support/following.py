"""Controllers over a store's log, with a feed of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.storage.protocol import Store
from reconciler.controllers.controller import Controller
from reconciler.controllers.feed import Feed
from reconciler.controllers.manager import CAREFUL, Manager


class Following:
    """`start` and `stop` it; or have it `settle`, which does all there is to do in this thread."""

    def __init__(self, store: Store, make: Callable[[Feed], Manager]) -> None:
        self.feed = Feed(store)
        self.manager = make(self.feed)
        self.settle = self.manager.settle

    @classmethod
    def of(cls, store: Store, *controllers: Controller[Any]) -> Following:
        return cls(store, lambda feed: Manager("test", controllers, feed, CAREFUL))

    def start(self) -> None:
        self.manager.start()
        self.feed.start()

    def stop(self) -> None:
        self.feed.stop()
        self.manager.stop()

    @property
    def idle(self) -> bool:
        return self.manager.idle
