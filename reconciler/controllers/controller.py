"""What a controller is: the resources whose entries it asks for, the keys that it makes of one, and what it does with
a key.

Implemented all over controllers/, standin/ and syncing/; run by a Manager (manager.py), told by a Feed (feed.py). A
controller is level-triggered: an entry names a key, `reconcile` reads what is so now. Whatever it decides, it decides
from the store; what it notes for itself only spares it a look.

    class Locations(Controller[str]):
        name = "locations"
        resources = frozenset({LOCATIONS, SYNC_TARGETS})
        shown = frozenset({LOCATIONS})

        def keys_of(self, entry):                 # one work item a workspace
            yield entry.key.cluster

        def reconcile(self, key):              # its locations are counted together
            ...
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

from reconciler.controllers.workqueue import Queue

if TYPE_CHECKING:
    from reconciler.controllers.feed import Entry

K = TypeVar("K", bound=Hashable)

EVERYTHING = frozenset({"*"})
"""Every object that clients see (Treeplane's own records, `~…`, are not): for housekeeping that is about any object.
Who asks for that is asked for every entry there is: it looks at the key and at bytes before it has anything decoded."""
NO_RESOURCES: frozenset[str] = frozenset()


class Controller(Generic[K]):
    """`begin`, `keys_of` and `complete` are called by one thread at a time and only note down; `reconcile` may be at
    work in another meanwhile. What it raises is logged, and it is called again, ever later."""

    name: str
    """In logs, and of its threads."""
    resources: frozenset[str] = NO_RESOURCES
    """Storage names of what it is told of; `pods:*` is `pods` with whatever identity, or without one."""
    shown: frozenset[str] | None = None
    """Those of its resources whose objects it has to see at the start, too; None: of all."""
    queue: Queue[K]
    """Given by the manager that runs it."""

    def begin(self) -> None:
        """What there is is shown from here on, at the start or since the log does not reach back: forget what was
        noted of it."""

    def keys_of(self, entry: Entry) -> Iterable[K]:  # noqa: ARG002
        """What to look at because of an entry. The same may be told twice; what was told last is what is so."""
        return ()

    def complete(self) -> None:
        """All that there was at `begin` has been shown."""

    def reconcile(self, key: K) -> Future[list[int]] | None:
        """Look at the key as it is now. Raises the store's Conflict where another writer came first.

        A write that nothing waits for may be returned: many of them are then synced together, and the key is looked at
        again if its write fails.
        """
        raise NotImplementedError
