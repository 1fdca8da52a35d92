"""Where the write path puts an object once it is settled: into the store, or first into git.

The write path (rest) and deletion call a Sink with what shall be true of one object; admission chooses which one.
StoreSink writes at once; that of `writes: Commit` (admission/committing.py) asks for a commit and waits for it, and so
does that of `writes: Propose` (admission/proposing.py), for one that stores nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from apiserver.model.keys import Key
from apiserver.registry.room import Room
from apiserver.storage.protocol import NEVER, Check, Delete, Op, Put, Record, Store


class Write(NamedTuple):
    """One object as it shall be. `live`: as it is stored, None if it is to be created; `value`: its new bytes, None if
    it goes. `also`: operations that belong to its transaction. `sent`: a new object as the client sent it. `aside`:
    what changes is nothing that a manifest would say (status, marks of a deletion). `room`: how many objects its
    workspace may have, if it is to be created and that is said. `inside`: of a new object, that its workspace is there
    still; what becomes a commit needs none, since who makes it takes workspaces away, too."""

    key: Key
    live: Record | None
    value: bytes | None
    also: Sequence[Op] = ()
    sent: dict[str, Any] | None = None
    aside: bool = False
    room: Room | None = None
    stamp: bytes = b""
    inside: Check | None = None

    def op(self) -> Op:
        """The operation on the object itself, which holds only as long as nobody else writes it."""
        expect = self.live.revision if self.live is not None else NEVER
        if self.value is None:
            return Delete(self.key, expect)
        return Put(self.key, self.value, expect, self.stamp)

    def ops(self) -> list[Op]:
        """The whole transaction, the operation on the object first."""
        room = (self.room.check,) if self.room is not None else ()
        return [self.op(), *self.also, *room, *((self.inside,) if self.inside is not None else ())]


class Written(NamedTuple):
    """`value`: the object as it was stored; None where that is what the Write said, or nothing is left. `stored` False:
    all of it stays as it was, and what was asked for stands elsewhere, as `warnings` tell whoever asked."""

    revision: int
    value: bytes | None = None
    stored: bool = True
    warnings: tuple[str, ...] = ()


class Sink(Protocol):
    """See the module's head."""

    def begin(self, write: Write) -> Callable[[], Written]:
        """Starts a write; what is returned waits for its end. Waiting raises the store's Conflict where another writer
        came first (settle the object anew), TooMany, and StatusError where the write is refused. May be called many
        times before any of them is waited for."""

    def check(self, write: Write) -> None:
        """Of a dry run: raises StatusError for a write that `begin` would refuse, as far as that can be told without
        it."""


class StoreSink:
    """Writes to the store and nowhere else."""

    __slots__ = ("_store",)

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, write: Write) -> Callable[[], Written]:
        future = self._store.write(*write.ops())
        return lambda: Written(future.result()[0])

    def check(self, write: Write) -> None:
        """It takes what is settled, as long as there is room. Raises TooMany."""
        if write.room is not None:
            write.room.look(self._store)
