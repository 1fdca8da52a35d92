"""What a store is.

Called by the registry and by every loop of the reconciler; implemented by `lmdb` (embedded) and `memory` (tests). One
contract suite (tests/contract) runs over all implementations. It knows nothing of Kubernetes: values are bytes.

It has three parts. A *read view*: objects, rows of tables (model/tables.py) and entries of indexes (declared.py), all
of one moment. A *log*: what objects changed, in order, each with what it was before. A *writer*: transactions with
conditions, which others see whole or not at all.

Revisions. Every object changed takes one revision; a write of several takes a consecutive block, and `revision()` only
ever returns the end of a block, so a reader never sees half a transaction. Worked example, starting at revision 100:

    write(Put(a), Put(b), Delete(c))   → a is 101, b is 102, c's deletion is 103; revision() == 103
    changes(after=101)                 → [b at 102, c at 103]: a watcher that lost its connection in the middle goes on
    scan(at=100)                       → the world before: a and b absent (or as they were), c present

Rows have no revision. Worked example, the same store at 103, which holds the row t/x with the bytes b"1":

    write(PutRow(t, "x", b"2", b"1"))              → 0; revision() == 103, nobody is rung
    write(Put(a, expect=101), CheckRow(t, "x", b"1"))  → RowConflict: a is as it was
    write(Put(a, expect=101), PutRow(t, "x", b"3"))    → a is 104, and whoever sees that sees b"3"

The log reaches back as far as the slowest checkpoint, and some minutes, within bounds of its own: whoever wrote down
how far he is (`checkpoint`) goes on from there, and who is behind the bounds is told so (Compacted) and looks at all.

Reads are synchronous, local and quick; nothing that a read holds outlives the call, but for that of a view. A write
resolves once it would survive the machine, and once the reads of this process see it.

What may join. Every write is what one transaction of etcd can do: comparisons of a key's revision, of all those of a
range, or of a row's bytes, puts and deletes, of a range, too, and nothing that reads in between; what several
operations on one key come to is known to who sends them. Counts, marks and entries of indexes follow from the objects,
so each machine's replica keeps its own; `view` and all other reads are the replica's, and a write resolves when it has
arrived there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from enum import Enum
from typing import NamedTuple, Protocol

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.declared import Index, IndexEntry
from apiserver.storage.templates import Filled, fill, may_say

NEVER = 0
"""As `expect`: the key must not exist."""


class Absent(Enum):
    """As `expect` of a row: there must be none."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


class Record(NamedTuple):
    """One stored object: its value, the revision that wrote it, and the writer's stamp (see Put)."""

    key: Key
    revision: int
    value: bytes
    stamp: bytes


class Change:
    """One entry of the log. `value` None: deleted; `previous` None: created.

    `stamp` is that of `value`, or of `previous` if the object was deleted. What is kept as a template with parameters
    is made whole when somebody asks: most who read the log look at the key of what they pass by.
    """

    __slots__ = ("_previous", "_value", "key", "previous_revision", "revision", "stamp")

    def __init__(
        self,
        revision: int,
        key: Key,
        value: bytes | Filled | None,
        previous: bytes | Filled | None,
        previous_revision: int,
        stamp: bytes,
    ) -> None:
        self.revision, self.key, self._value, self._previous = revision, key, value, previous
        self.previous_revision, self.stamp = previous_revision, stamp

    @property
    def value(self) -> bytes | None:
        found = self._value
        if isinstance(found, Filled):
            found = self._value = fill(found.template, self.key, found.parameters)
        return found

    @property
    def previous(self) -> bytes | None:
        found = self._previous
        if isinstance(found, Filled):
            found = self._previous = fill(found.template, self.key, found.parameters)
        return found

    @property
    def deletes(self) -> bool:
        """What the object says is not made for that."""
        return self._value is None

    def since(self, first: Change) -> Change:
        """What this one and an earlier one of the same object come to."""
        return Change(self.revision, self.key, self._value, first._previous, self.previous_revision, self.stamp)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Change) and self._said() == other._said()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Change{self._said()}"

    def _said(self) -> tuple[object, ...]:
        return (self.revision, self.key, self.value, self.previous, self.previous_revision, self.stamp)


class Put(NamedTuple):
    """Write `value`. `expect`: None unconditionally, NEVER only if absent, else only if that is the key's revision.

    `stamp` (at most 254 bytes) stands beside the value: storage version and schema hash. `like`: the same value in
    another form, for one that says what many say; a store keeps whichever it likes, and always shows `value`. Where
    `whole` is empty, `like` alone says the value, which is made when it is asked for.
    """

    key: Key
    whole: bytes
    expect: int | None = None
    stamp: bytes = b""
    like: Filled | None = None

    @property
    def value(self) -> bytes:
        return self.whole or (
            fill(self.like.template, self.key, self.like.parameters) if self.like is not None else b""
        )

    def may_say(self, text: bytes) -> bool:
        """Whether the value may contain these bytes (see templates.may_say); costs less than to look."""
        if self.whole or self.like is None:
            return text in self.whole
        return may_say(self.like, self.key, text)


class Delete(NamedTuple):
    """Remove the key; absent and `expect` None: nothing happens and no revision is taken."""

    key: Key
    expect: int | None = None


Swept = Callable[[str], bool]
"""Of which resources somebody wants to hear what a DeleteAll took."""


class DeleteAll(NamedTuple):
    """Remove all that a workspace has but Treeplane's own (`~…`), in the order of ReadView.keys. Fails the whole
    transaction with Conflict where any of it was written after the revision `since`, so what was read at that revision
    is what goes. Its revision is that of the last object that went, 0 where there was none.

    Raises ValueError where the same call writes such an object of that workspace, too.
    """

    cluster: str
    since: int


class Check(NamedTuple):
    """Write nothing, but fail the whole transaction unless the key's revision is `expect` (NEVER: absent)."""

    key: Key
    expect: int


class PutRow(NamedTuple):
    """Write a row of a table. `expect`: None unconditionally, ABSENT only if there is none, else only if these bytes
    stand there. The value may be empty, the key too; what may be one is limits.py's."""

    table: Table
    row: str
    value: bytes
    expect: bytes | Absent | None = None


class DeleteRow(NamedTuple):
    """Remove a row; absent and `expect` None: nothing happens."""

    table: Table
    row: str
    expect: bytes | None = None


class CheckRow(NamedTuple):
    """Write nothing, but fail the whole transaction unless the row holds `expect`: so who holds a role shows that it
    does so still."""

    table: Table
    row: str
    expect: bytes | Absent


class CheckNumber(NamedTuple):
    """Write nothing, but fail the whole transaction (with TooMany) where it leaves a workspace more objects than
    `most`, counted as by ReadView.number."""

    cluster: str
    most: int
    besides: frozenset[str] = frozenset()


class AlikeObjects(NamedTuple):
    """One object of each of those that a PutAlike creates. `cluster`, `name`: None where each has its own. `values`: of
    each what goes into `template`, or where that is empty the value itself."""

    resource: str
    cluster: str | None
    namespace: str
    name: str | None
    template: bytes
    values: Sequence[bytes]


class PutAlike(NamedTuple):
    """Create what many have that are alike, each the objects of `columns` and a row of `table`: `clusters`, `names` and
    `rows` (keys and bytes) are those of each, in their order. It stands for the Puts with NEVER and the PutRows without
    condition that alike.py makes of it; its revision is that of the last of them."""

    clusters: Sequence[str]
    names: Sequence[str]
    columns: tuple[AlikeObjects, ...]
    table: Table
    rows: Sequence[tuple[str, bytes]]


RowOp = PutRow | DeleteRow | CheckRow
SingleOp = Put | Delete | DeleteAll | Check | RowOp | CheckNumber
Op = SingleOp | PutAlike
_OF_OBJECTS = (Put, Delete)


def check_apart(ops: Sequence[SingleOp]) -> None:
    """Raises ValueError where one call writes an object of a workspace of which it removes all."""
    clusters = [op.cluster for op in ops if isinstance(op, DeleteAll)]
    if not clusters:
        return
    written = {op.key.cluster for op in ops if isinstance(op, _OF_OBJECTS) and not op.key.resource.startswith("~")}
    if len({*clusters}) < len(clusters) or not written.isdisjoint(clusters):
        raise ValueError(f"one call removes all of {', '.join(sorted(clusters))} and writes to it")


def checkpoint(name: str, revision: int) -> PutRow:
    """Writes down that whoever is called so is past a revision: he goes on with `changes(after=revision)`, which the
    log keeps for him as long as it does not grow out of its bounds for that."""
    return PutRow(Table.CHECKPOINTS, name, b"%d" % revision)


def checkpoint_of(value: bytes) -> int:
    """The revision that a row of checkpoints says."""
    return int(value)


class Row(NamedTuple):
    """One row of a table. Its key may have several parts (model/tables.py)."""

    key: str
    value: bytes


class Page(NamedTuple):
    """A part of a scan. `revision`: the snapshot it was read at; `more`: the last key returned if there is more."""

    records: list[Record]
    revision: int
    more: Key | None
    remaining: int


class Conflict(Exception):
    """A precondition failed; nothing of the transaction was written. `revision` 0: the key is absent."""

    def __init__(self, key: Key, expected: int, revision: int) -> None:
        super().__init__(f"{key} is at revision {revision}, not {expected}")
        self.key, self.expected, self.revision = key, expected, revision


class RowConflict(Conflict):
    """The precondition was a row's; `key` names it as an object of its table would be."""

    def __init__(self, table: Table, row: str) -> None:
        super().__init__(Key(table, "", "", row), NEVER, NEVER)
        self.args = (f"row {row!r} of {table} is not what it was taken for",)
        self.table, self.row = table, row


class TooMany(Exception):
    """A workspace would have more objects than it may: nothing of the transaction was written. `number`: as many as it
    has without it."""

    def __init__(self, cluster: str, number: int, most: int) -> None:
        super().__init__(f"{cluster} has {number} objects, and may have {most}")
        self.cluster, self.number, self.most = cluster, number, most


class RoleLost(Exception):
    """Who wrote has his role no more: the row that he writes under is another's. Nothing of the transaction was
    written, and nothing that he writes will ever be. No Conflict, since to look again and write again is no remedy."""

    def __init__(self, role: str) -> None:
        super().__init__(f"the role {role} is another process's by now")
        self.role = role


class NoSpace(Exception):
    """The disk, or what the store may take of it, is full: nothing of the transaction was written. Reads go on, and so
    do writes once there is room."""


class Compacted(Exception):
    """The log no longer reaches back to the revision asked for. `oldest`: the oldest that `changes(after=…)` takes."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"too old resource version: {asked} ({oldest})")
        self.asked, self.oldest = asked, oldest


class ReadView(Protocol):
    """What a store holds: each question is answered from one moment."""

    def revision(self) -> int:
        """The end of the last committed block, of whichever process."""

    def marked(self, cluster: str | None = None) -> int:
        """The revision of the last change to a marked resource (CRDs, RBAC, bindings, …; see Declared), in one
        workspace or in any. 0: there was none; or the workspace has no objects any more."""

    def get(self, key: Key) -> Record | None: ...

    def get_many(self, keys: Sequence[Key]) -> list[Record | None]:
        """All from one snapshot, in the order asked for."""

    def scan(
        self,
        resource: str,
        cluster: str | None = None,
        namespace: str | None = None,
        *,
        after: Key | None = None,
        limit: int | None = None,
        at: int | None = None,
        count: bool = True,
    ) -> Page:
        """Objects in key order; `cluster` None: of all workspaces; `namespace` None: of all namespaces.

        `after`: only keys behind this one. `at`: as of that revision (Compacted if the log does not reach back; a
        revision of the future raises ValueError). `Page.remaining` counts what is behind the page (0 if none, or
        if `count` is False). That is known where the list begins, of a workspace or of all; elsewhere it costs a tenth
        of reading it.
        """

    def get_row(self, table: Table, row: str) -> bytes | None: ...

    def get_rows(self, table: Table, rows: Sequence[str]) -> list[bytes | None]:
        """All from one snapshot, in the order asked for."""

    def scan_rows(
        self, table: Table, prefix: str = "", *, after: str | None = None, limit: int | None = None
    ) -> list[Row]:
        """Rows whose key begins with `prefix`, in the order of their keys' bytes. `after`: only those behind this
        one; so the last row of a full page is where the next one goes on."""

    def indexed(
        self,
        index: Index,
        begin: str = "",
        *,
        whole: bool = False,
        after: IndexEntry | None = None,
        limit: int | None = None,
    ) -> list[IndexEntry]:
        """Objects under the terms that begin with `begin` (`whole`: under that term alone), in the order of terms, then
        of keys: an object as often as it has terms. It costs what it finds. `after`: only entries behind this one.
        Raises LookupError for an index that was not declared when the store was opened."""

    def tally(self, index: Index, term: str) -> int:
        """How many objects have a term; costs the same however many. Raises LookupError as `indexed`, and for an index
        that is not counted."""

    def resources(self, cluster: str | None = None) -> list[str]:
        """The resources that were ever written to, sorted: what there is to scan, without asking who defines it. With
        `cluster`: those that it has objects of."""

    def keys(self, cluster: str) -> list[Key]:
        """Of all objects that a workspace has, by resource. What they say is not read."""

    def count(self, resource: str, cluster: str | None = None, namespace: str | None = None) -> int:
        """Costs the same however many there are, but for those of one namespace."""

    def number(self, cluster: str, besides: frozenset[str] = frozenset()) -> int:
        """How many objects a workspace has, whatever their resource, but for those of `besides` (names without their
        identities) and of Treeplane's own. Costs the same however many there are."""


class Log(Protocol):
    """What changed, in the order of revisions, as far back as it reaches."""

    def oldest(self) -> int:
        """The smallest `after` that `changes` takes."""

    def changes(self, after: int, limit: int = 10_000, swept: Swept | None = None) -> list[Change]:
        """Log entries with a revision greater than `after`, oldest first, at most `limit` and never beyond a block that
        is not yet committed. `swept`: of what a DeleteAll took only objects of the resources for which it is true;
        None: all. Raises Compacted."""


class View(ReadView, Log, Protocol):
    """What there is to be read. A Store is one that moves on; `Store.view` gives one that stands still."""


class Writer(Protocol):
    """What changes a store: each call wholly or not at all, and none of them half seen."""

    def write(self, *ops: Op) -> Future[list[int]]:
        """All or nothing; resolves to the revision of each op once on disk: 0 for what changes no object (a Check, a
        Delete of nothing, whatever is done to rows). Fails with Conflict, or with TooMany.

        Whoever subscribes is rung where an object changed: a transaction of rows alone rings nobody, so how far one
        got with the log can be written down without moving the log.
        """

    def fill(self, *ops: Op) -> Future[list[int]]:
        """As `write`, but the log tells nothing of it: `oldest()` moves past it, so whoever was following begins anew
        (Compacted). For what fills a store that nobody can have followed yet, a first load, which would otherwise
        write every object twice. An implementation may log it all the same; nobody may count on either."""

    def compact(self, keep: int) -> None:
        """Forget log entries so that about the newest `keep` stay, whoever needs them."""

    def clear(self) -> None:
        """Forget every object, every row and all of the log, in one transaction of a revision of its own: whoever
        watches has to begin anew. Revisions go on, and who has which role (Table.ROLES) stays."""


class Store(View, Writer, Protocol):
    """See the module's head. Methods are safe from every thread."""

    def view(self) -> AbstractContextManager[View]:
        """All of the store as it is now, rows and indexes included, for one thread and until the end of the block:
        whatever is written meanwhile, by whichever process, is not seen, and waits for nothing. What a view shows
        cannot be overwritten while it is open, so the store grows by what is written beside it; whoever opens one says
        what bounds that."""

    def under(self, role: CheckRow, lost: Callable[[], None] = lambda: None) -> Store:
        """The same store, for who has a role: each of its writes, `compact` and `clear` included, fails with RoleLost
        unless the row holds what `role` expects, which is looked at first, in the write's own transaction. `lost` is
        called then, from any thread. To close it closes nothing."""

    def subscribe(self, ring: Callable[[], None]) -> Callable[[], None]:
        """Call `ring` (from any thread, at least once after each change of objects by whichever process); returns the
        undo."""

    def close(self) -> None: ...
