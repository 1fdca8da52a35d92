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
from typing import Generic, Protocol, TypeVar

from reconciler.controllers.entry import Entry

K = TypeVar("K", bound=Hashable)

EVERYTHING = frozenset({"*"})
"""Every object that clients see (Treeplane's own records, `~…`, are not): for housekeeping that is about any object.
Who asks for that is asked for every entry there is: it looks at the key and at bytes before it has anything decoded."""
NO_RESOURCES: frozenset[str] = frozenset()


class Queue(Protocol[K]):
    """A controller's keys, those too that no entry names. Safe from every thread."""

    def add(self, key: K) -> None: ...

    def add_after(self, key: K, seconds: float) -> None:
        """An appointment; an earlier one of the key stands, a later one is replaced. Of a controller that has a version
        what is not soon is on disk before the key at work counts as done."""

    def hold(self, key: K) -> None:
        """Nothing can be done for the key before something happens that no appointment tells: done for now. With a
        version, a restart looks at it again."""

    def pending(self) -> set[K]:
        """Keys that wait, are at work or come later, as far as memory holds them."""


class Controller(Generic[K]):
    """`begin`, `keys_of` and `complete` are called by one thread at a time and only note down; `reconcile` may be at
    work in another meanwhile. What it raises is logged, and it is called again, ever later."""

    name: str
    """In logs, of its threads and of its checkpoint: no other controller of a store has it."""
    version: str | None = None
    """Of `keys_of` and `reconcile`, and of what else they depend on that is in no log: changes with what they make of
    the same store. A start goes on where the same version was; another one sees everything. None: nothing is noted of
    how far it is, it sees everything at each start; its module says why."""
    resources: frozenset[str] = NO_RESOURCES
    """Storage names of what it is told of; `pods:*` is `pods` with whatever identity, or without one."""
    shown: frozenset[str] | None = None
    """Those of its resources whose objects it has to see at the start, too; None: of all."""
    beyond: frozenset[str] | None = None
    """Those of which it is told even where an object went with its workspace and all that was in it, since it looks at
    other workspaces then, or has noted something; None: all. Treeplane's own records (`~…`) are told in any case."""
    queue: Queue[K]
    """Given by the manager that runs it."""

    def begin(self) -> None:
        """A start, or the log does not reach back: forget what was noted, and look up what has to be. What there is is
        shown from here on, unless the controller goes on where it was."""

    def keys_of(self, entry: Entry) -> Iterable[K]:  # noqa: ARG002
        """What to look at because of an entry. The same may be told twice; what was told last is what is so."""
        return ()

    def complete(self) -> Iterable[K]:
        """All that there was at `begin` has been shown; not called where nothing had to be. What else to look at."""
        return ()

    def reconcile(self, key: K) -> Future[list[int]] | None:
        """Look at the key as it is now. Raises the store's Conflict where another writer came first.

        A write that nothing waits for may be returned: many of them are then synced together, and the key is looked at
        again if its write fails.
        """
        raise NotImplementedError

    def hand_over(self) -> None:
        """Writes that were returned are about to be waited for: whoever gathers them (together.py) writes them now."""
