"""The LMDB environment of a store: files, tables, the state row, interned resources.

Called by the reader (lmdb.py) and the writer (lmdb_writer.py). Knows nothing of threads or of what a revision means.

Tables: `state` (one row, and the format), `objects`, `log` (see lmdb_layout.py), `next` (revision of an object → the
revision that changed it next, for entries of the log), `resources` (name → id and id → name), `counts` (see
lmdb_counts.py) and `rows` (see lmdb_rows.py) and `templates` (see lmdb_templates.py).
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from apiserver.model.remembered import Remembered
from apiserver.storage import limits
from apiserver.storage import lmdb_soundness as soundness
from apiserver.storage.declared import Declared, Indexes
from apiserver.storage.lmdb_library import Part, Resized, Ruined, Transaction, open_files

log = logging.getLogger(__name__)

FORMAT: Final = b"6"
"""Counted up where what stands in the files means something else than before. A store of an older one is built anew, a
newer one is left alone, so whatever comes later keeps to this: the row `format` of the table `state` is a number."""
_ROW: Final = struct.Struct(">QQQQQ")
_STATE_KEY: Final = b"state"
FORMAT_KEY: Final = b"format"
STATE: Final = b"state"
"""The table that says how all others are kept."""
_MARKED_KEY: Final = b"marked"
_INDEXES_KEY: Final = b"indexes"
_BOOT_KEY: Final = b"boot"
"""The boot in which something was written without syncing."""
_TEMPLATES_KEY: Final = b"templates"
_TEMPLATES: Final = 8 << 20
"""Bytes of templates that a process remembers."""
_SEEN: Final = 64 << 10
"""Bytes of digests of those that it does not keep yet."""


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """`map_size`: bytes of address space, the limit of the file; nothing is taken before it is used.
    `readers`: read transactions at one moment, of all processes.
    `log_seconds`, `log_bytes`: the log keeps what is younger, and what checkpoints need, as long as it holds no more;
    a little more than that may stay.
    `group_operations`, `group_seconds`: what one LMDB transaction takes at most (one `write`, which is never split, may
    exceed it).
    `look_seconds`: how often a process looks for commits of others in case their doorbell was not heard.
    """

    map_size: int = 1 << 38
    readers: int = 2048
    log_seconds: float = 600.0
    log_bytes: int = 512 << 20
    group_operations: int = 2_000
    group_seconds: float = 0.015
    look_seconds: float = 0.1


class State(NamedTuple):
    """The row that every commit rewrites. `entries` and `size` (bytes) count the log's."""

    revision: int
    oldest: int
    marked: int
    entries: int
    size: int

    def encode(self) -> bytes:
        return _ROW.pack(*self)


class LmdbEnvironment:
    """Opens the files and creates what is missing; what an older Treeplane left there is dropped. Raises NewerStore,
    and changes nothing, where a newer one did.

    `with env.read() as txn:` to read; `with env.write() as txn:` to write, one at a time of all processes, committed at
    the end.
    """

    def __init__(
        self, directory: Path, declared: Declared, sync: bool, start: int | None, settings: StoreSettings
    ) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
        self._remember_nothing(directory, declared)
        self.lmdb = open_files(str(directory), map_size=settings.map_size, readers=settings.readers, sync=sync)
        try:
            soundness.check_pages(directory, self.lmdb)
            self.lmdb.reader_check()
            with self.lmdb.begin(write=True) as txn:
                self._open_tables(txn)
                self.marked = self._prepare(txn, declared.marked, start)
                self._check_boot(txn, sync)
        except BaseException:
            self.lmdb.close()
            raise

    def _remember_nothing(self, directory: Path, declared: Declared) -> None:
        """What this process knows of the files beside what stands in them."""
        self.directory = directory
        self.indexes = Indexes(declared.indexes)
        self._resizing = threading.Lock()
        self._looked = (-1, 0)
        self.hold: soundness.Hold | None = None
        """Says that the directory is in use."""
        self.ruined: Callable[[Path], object] = lambda _: None
        """Told, before anything else is, that this process cannot use the files any more."""
        self.templates: Remembered[bytes, bytes] = Remembered(_TEMPLATES)
        """By number, as far as they were read."""
        self.seen_templates: Remembered[bytes, bool] = Remembered(_SEEN)
        """Digests of those that came once."""
        self._ids: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}

    def _open_tables(self, txn: Transaction | None, *, create: bool = True) -> None:
        """`txn` None: one of its own for each, since a reader's keeps none of them open behind its end."""
        self.state_table = self.lmdb.open_db(STATE, txn=txn, create=create)
        self.objects = self.lmdb.open_db(b"objects", txn=txn, create=create)
        self.log = self.lmdb.open_db(b"log", txn=txn, create=create)
        self.next = self.lmdb.open_db(b"next", txn=txn, create=create)
        self._resources = self.lmdb.open_db(b"resources", txn=txn, create=create)
        self.counts = self.lmdb.open_db(b"counts", txn=txn, create=create)
        self.rows = self.lmdb.open_db(b"rows", txn=txn, create=create)
        self.templates_table = self.lmdb.open_db(b"templates", txn=txn, create=create)

    def _check_boot(self, txn: Transaction, sync: bool) -> None:
        """What was written without syncing is whole as long as the machine runs on. Raises Damaged."""
        before, now = txn.get(_BOOT_KEY, db=self.state_table), soundness.boot()
        if before is not None and before != now:
            raise soundness.Damaged("it was written without syncing, before the machine started last")
        if not sync and before is None:
            txn.put(_BOOT_KEY, now, db=self.state_table)
        elif sync and before is not None:
            txn.delete(_BOOT_KEY, db=self.state_table)  # this transaction is synced, and all before it with it

    def _prepare(self, txn: Transaction, marked: frozenset[str], start: int | None) -> frozenset[str]:
        """Set or advance the revision; returns the marked resources of all who ever opened the store."""
        found = self.format(txn)
        refuse_newer(self.directory, found)
        if found != FORMAT:
            if found is not None or any(txn.stat(table)["entries"] for table in self.contents()):
                self._drop(txn, found)
            txn.put(FORMAT_KEY, FORMAT, db=self.state_table)
            first = max(start or 0, int(time.time() * 1_000_000))
            self.put_state(txn, State(first, first, 0, 0, 0))
        else:
            state = self.state(txn)
            if start is not None and start > state.revision:
                self.put_state(txn, state._replace(revision=start))
        before = frozenset((txn.get(_MARKED_KEY, db=self.state_table) or b"").decode().split("\n")) - {""}
        if marked - before:
            txn.put(_MARKED_KEY, "\n".join(sorted(before | marked)).encode(), db=self.state_table)
        return before | marked

    def _drop(self, txn: Transaction, found: bytes | None) -> None:
        """What an older version left goes: it can be rebuilt, as what a lost directory had."""
        log.warning("%s holds a store of format %s, this is %s: it is built anew", self.directory, found, FORMAT)
        for table in (*self.contents(), self.state_table, self._resources):
            txn.drop(table, delete=False)

    def contents(self) -> tuple[Part, ...]:
        """The tables that hold what was written."""
        return (self.objects, self.log, self.next, self.counts, self.rows, self.templates_table)

    def next_template(self, txn: Transaction) -> bytes:
        """A number that no template had, whatever was cleared since."""
        last = int.from_bytes(txn.get(_TEMPLATES_KEY, db=self.state_table) or b"", "big")
        number = (last + 1).to_bytes(4, "big")
        txn.put(_TEMPLATES_KEY, number, db=self.state_table)
        return number

    def built(self, txn: Transaction) -> dict[str, int]:
        """The indexes that are whole, with their versions."""
        rows = (txn.get(_INDEXES_KEY, db=self.state_table) or b"").decode().splitlines()
        return {name: int(version) for name, _, version in (row.rpartition(" ") for row in rows)}

    def format(self, txn: Transaction) -> bytes | None:
        """What the store is kept in; None where that is not said."""
        return txn.get(FORMAT_KEY, db=self.state_table)

    def boot(self, txn: Transaction) -> bytes | None:
        """The start of the machine after which something was written without syncing; None where nothing was."""
        return txn.get(_BOOT_KEY, db=self.state_table)

    def put_built(self, txn: Transaction, built: dict[str, int]) -> None:
        text = "\n".join(f"{name} {version}" for name, version in sorted(built.items()))
        txn.put(_INDEXES_KEY, text.encode(), db=self.state_table)

    def read(self) -> Transaction:
        try:
            return self.lmdb.begin(db=self.objects)
        except Resized:
            self.resize()
            return self.lmdb.begin(db=self.objects)
        except Ruined:
            self.ruined(self.directory)
            raise

    def write(self) -> Transaction:
        try:
            return self.lmdb.begin(db=self.objects, write=True)
        except Resized:
            self.resize()
            return self.lmdb.begin(db=self.objects, write=True)
        except Ruined:
            self.ruined(self.directory)
            raise

    def resize(self) -> None:
        """Another process opened the store with a larger map: take its size."""
        with self._resizing:
            self.lmdb.set_mapsize(0)

    def state(self, txn: Transaction) -> State:
        row = txn.get(_STATE_KEY, db=self.state_table)
        if row is None or len(row) != _ROW.size:
            raise soundness.Damaged("its state cannot be read")
        return State(*_ROW.unpack(row))

    def put_state(self, txn: Transaction, state: State) -> None:
        txn.put(_STATE_KEY, state.encode(), db=self.state_table)

    def resource_id(self, txn: Transaction, name: str) -> bytes | None:
        """The 4-byte id of a resource that was ever written to, in a read transaction."""
        found = self._ids.get(name)
        if found is None:
            found = txn.get(_name_key(name), db=self._resources)
            if found is not None:
                self.remember({name: found})
        return found

    def resource_name(self, txn: Transaction, number: bytes) -> str:
        name = self._names.get(number)
        if name is None:
            row = txn.get(b"#" + number, db=self._resources)
            assert row is not None, f"resource id {number!r} has no name"
            name = row.decode()
            self.remember({name: number})
        return name

    def resource_names(self, txn: Transaction) -> list[str]:
        """Of all resources that were ever written to, sorted."""
        with txn.cursor(db=self._resources) as cursor:
            rows = cursor.iternext(values=False) if cursor.set_range(b"=") else iter(())
            return [row[1:].decode() for row in rows if row.startswith(b"=")]

    def intern(self, txn: Transaction, name: str, pending: dict[str, bytes]) -> bytes:
        """The id, allocated in this write transaction if it is new; then also put into `pending`: the caller hands that
        to `remember` once the transaction is committed."""
        found = self._ids.get(name) or pending.get(name) or txn.get(_name_key(name), db=self._resources)
        if found is None:
            found = (txn.stat(self._resources)["entries"] // 2 + 1).to_bytes(4, "big")
            txn.put(_name_key(name), found, db=self._resources)
            txn.put(b"#" + found, name.encode(), db=self._resources)
            pending[name] = found
        return found

    def remember(self, committed: dict[str, bytes]) -> None:
        for name, number in committed.items():
            self._ids[name] = number
            self._names[number] = name

    def news(self) -> int:
        """The revision, of whichever process; costs a transaction only where there was one since the last look."""
        last = self.lmdb.info()["last_txnid"]
        if last != self._looked[0]:
            with self.read() as txn:
                self._looked = last, self.state(txn).revision
        return self._looked[1]

    def close(self) -> None:
        self.lmdb.close()
        if self.hold is not None:
            self.hold.end()


def refuse_newer(directory: Path, found: bytes | None) -> None:
    """Raises NewerStore where what a store is kept in (None: not said) is of a later Treeplane than this one."""
    if found is not None and found.isdigit() and int(found) > int(FORMAT):
        raise soundness.NewerStore(
            f"{directory} holds a store of format {int(found)}, which a newer Treeplane wrote; this one knows formats "
            f"up to {int(FORMAT)}. Nothing in it was changed. Start the newer Treeplane again; to go back to this one, "
            f"move {directory} away: what git and the status branch know is loaded again"
        )


def _name_key(name: str) -> bytes:
    return b"=" + limits.check_resource(name)
