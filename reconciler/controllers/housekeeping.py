"""What every store needs that holds Kubernetes objects: garbage collection, ends of namespaces, definitions and
bindings, expiry.

One manager for the main store; the stand-in of an embedded sync target runs the same controllers in one of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from apiserver.registry.kindtable import KindTable
from apiserver.storage.protocol import Store
from reconciler.controllers import disposal
from reconciler.controllers.bindinglife import BindingLife
from reconciler.controllers.controller import Controller
from reconciler.controllers.definitionlife import DefinitionLife
from reconciler.controllers.expiry import EventExpiry
from reconciler.controllers.feed import Feed
from reconciler.controllers.garbage import Garbage
from reconciler.controllers.history import History
from reconciler.controllers.manager import CAREFUL, Manager
from reconciler.controllers.namespacelife import NamespaceLife
from reconciler.controllers.settings import HousekeepingSettings


def controllers(
    store: Store,
    kinds: Callable[[str], KindTable],
    settings: HousekeepingSettings | None = None,
    leftover: Callable[[bytes], bool] = disposal.leftover,
) -> list[Controller[Any]]:
    """`leftover`: whether an object with that value goes with a namespace or a definition that is gone already."""
    settings = settings or HousekeepingSettings()
    return [
        Garbage(store, kinds),
        NamespaceLife(store, kinds, leftover, settings.lingers),
        DefinitionLife(store, kinds, leftover),
        BindingLife(store, kinds),
        EventExpiry(store, settings.events),
        *([History(store, settings.history)] if settings.history else []),
    ]


def housekeeping(
    feed: Feed,
    kinds: Callable[[str], KindTable],
    settings: HousekeepingSettings | None = None,
    busy: Callable[[], bool] = lambda: False,
) -> Manager:
    """Of a feed's store; start it once the store is complete. `kinds` of a logical cluster."""
    return Manager("housekeeping", controllers(feed.store, kinds, settings), feed, CAREFUL, busy)
