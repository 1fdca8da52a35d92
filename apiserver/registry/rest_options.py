"""What a write is asked with, and what it answers. Shared by the write path (rest), deletion.py and their callers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from apiserver.registry.kindtable import KindTable
from apiserver.registry.room import Room
from apiserver.registry.served import ServedKind
from apiserver.registry.sinks import Sink, StoreSink, Write, Written
from apiserver.storage.protocol import Store

Object = dict[str, Any]

STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"
BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
ORPHAN_FINALIZER, FOREGROUND_FINALIZER = "orphan", "foregroundDeletion"

Admit = Callable[[str, str, Object | None], None]
"""Called with verb, the object's name and the live object (None: it would be created), before anything is checked in
depth. Raises StatusError to refuse the write."""


def admit_all(verb: str, name: str, live: Object | None) -> None:
    """The Admit that refuses nothing."""


Complete = Callable[[Object], None]
"""Called with a new object before anything of it is checked; fills in, in place, what depends on other objects. Raises
StatusError to refuse it."""


def complete_nothing(new: Object) -> None:
    """The Complete of kinds that need none."""


Vet = Callable[[Object, Object | None], None]
"""Called with the object as it would be stored and the live one (None: it would be created), for dry runs too. Raises
StatusError to refuse the write."""


def vet_nothing(new: Object, live: Object | None) -> None:
    """The Vet that refuses nothing."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """`manager`: the field manager. `validation`: what unknown fields are: STRICT an error, WARN a warning, IGNORE
    nothing. `force`: an apply takes fields from other managers. `repeated`: what stands twice in the body, in words; it
    is treated as unknown fields are."""

    manager: str = "unknown"
    dry_run: bool = False
    validation: str = WARN
    force: bool = False
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """`uid`, `revision`: preconditions, "" for none. `policy`: what becomes of dependents, BACKGROUND, FOREGROUND,
    ORPHAN or "" for the kind's own. `grace`: seconds, None for the object's own. `cascading`: the request said
    orphanDependents: false, which is answered with 202 while the object is still there."""

    dry_run: bool = False
    uid: str = ""
    revision: str = ""
    policy: str = ""
    grace: int | None = None
    cascading: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """The object after the write, in the version of the request. `removed`: it is gone; `created`: it is new."""

    obj: Object
    created: bool = False
    removed: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Collection:
    """One kind in one logical cluster: what a write is done to.

    `kinds`: all that is served there (storage versions, contents of namespaces). `marks`: annotations that every object
    carries and no client removes. `origin`: annotations of an object created through the API. `sink`: where writes go,
    None: to the store. `room`: asked for something new, how many objects may be
    there, None for any number.
    """

    store: Store
    kind: ServedKind
    kinds: KindTable
    cluster: str
    marks: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)
    admit: Admit = admit_all
    complete: Complete = complete_nothing
    vet: Vet = vet_nothing
    sink: Sink | None = None
    room: Callable[[], Room | None] = lambda: None

    def begin(self, write: Write) -> Callable[[], Written]:
        """As Sink.begin."""
        return (self.sink or StoreSink(self.store)).begin(write)

    def check(self, write: Write) -> None:
        """As Sink.check."""
        (self.sink or StoreSink(self.store)).check(write)

    @property
    def storage_kind(self) -> ServedKind:
        """The version in which objects are kept."""
        if self.kind.storage_version:
            return self.kind
        return self.kinds.of_storage(self.kind.storage) or self.kind
