"""What every store needs that holds Kubernetes objects: garbage collection, ends of namespaces, definitions and
bindings, expiry.

One follower for the main store; the stand-in of an embedded sync target runs the same parts in a follower of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from apiserver.registry.kindtable import KindTable
from apiserver.storage.protocol import Store
from reconciler.controllers import disposal
from reconciler.controllers.bindinglife import BindingLife
from reconciler.controllers.definitionlife import DefinitionLife
from reconciler.controllers.expiry import EventExpiry
from reconciler.controllers.follower import Follower, Part
from reconciler.controllers.garbage import Garbage
from reconciler.controllers.history import History
from reconciler.controllers.namespacelife import NamespaceLife
from reconciler.controllers.settings import HousekeepingSettings


def parts(
    store: Store,
    kinds: Callable[[str], KindTable],
    settings: HousekeepingSettings | None = None,
    leftover: Callable[[bytes], bool] = disposal.leftover,
) -> tuple[Garbage, list[Part]]:
    """Garbage collection, whose index of owners others may read, and the other parts. `leftover`: whether an object
    with that value goes with a namespace or a definition that is gone already."""
    settings = settings or HousekeepingSettings()
    rest: list[Part] = [
        NamespaceLife(store, kinds, leftover, settings.lingers),
        DefinitionLife(store, kinds, leftover),
        BindingLife(store, kinds),
        EventExpiry(store, settings.events),
        *([History(store, settings.history)] if settings.history else []),
    ]
    return Garbage(store, kinds), rest


def housekeeping(
    store: Store, kinds: Callable[[str], KindTable], settings: HousekeepingSettings | None = None
) -> Follower:
    """The follower of a store; start it once the store is complete. `kinds` of a logical cluster."""
    garbage, rest = parts(store, kinds, settings)
    return Follower("housekeeping", store, [garbage, *rest])
