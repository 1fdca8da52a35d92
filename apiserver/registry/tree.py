"""The tree of workspaces as records in the store: which exist, under which logical cluster, and how far each is loaded.

Written by the reconciler in the transaction that loads a workspace; read by every API request. Kept in tables of the
store rather than in a process, since a million of them would not fit and a point read costs microseconds. What others
follow of a workspace (that it came, went or moved, and whether it is served) is one object beside its row: `placed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import orjson

from apiserver.model import commits, paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.keys import Internal, Key
from apiserver.model.paths import ROOT
from apiserver.model.tables import Table, row_key
from apiserver.registry import looks, shards, workspacerow
from apiserver.registry.workspacerow import Known, expanded, shortened
from apiserver.storage.paging import rows
from apiserver.storage.protocol import NEVER, Absent, Check, Delete, DeleteRow, Op, Put, PutRow, Row, View

USUAL_TYPE = "root:universal"
_SMALL = 4096
"""Bytes of a record that is remembered decoded. A larger one lists what is wrong with a workspace and seldom stays."""


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """One workspace.

    `cluster`: its logical cluster name. `parent`: the parent's path ("" for root), which its own path says. `type`: its
    WorkspaceType as `<path>:<name>`. `served`: whether it had a good commit; until then it answers 503 with `errors`.
    `commit`: the commit that last changed its own content. `head`: the commit at which it was last judged good, so the
    base of the next difference. `origin`, `origin_time`: the commit in which it appeared, and that commit's committer
    time (seconds since 1970). `errors`: why a newer commit is held back (`path:line: what`), [] if none is.
    `directory`: its directory in the repository, "" for what ships with Treeplane. `judged`: of one that is held, the
    last commit that was judged, NONE of all others. `leaves`: it was taken away, and something in it waits for
    finalizers; `directory` is where it stood then. `shard`: the Shard that it is on; one that is not served yet may be
    on none. `labels`: those that its type gives its Workspace. `initializers`, `terminators`: names of the programs
    that its type had act on it when it appeared. `stored`: it was made through the API, so no commit and no file of the
    status branch knows of it, and its commits are NONE. `mounts`: it is a mount, served where an object
    of the parent says. `pin`: what has its own content served as an earlier commit has it: that `commit`, the `file`
    that says so, and, where these are said, `until` and `reason`; {} for most. `due`: when the pin is over by which it
    was judged last, in seconds since 1970; 0: never, or there is none. `locked`: Secrets that stay as they are, since
    nobody here can read what git says of them, and why. `source`: what has its own content served from another
    repository: that `repository`, `branch`, `path` and `secret` (see layout/sourceref), and the `commit` there; {} for
    most. `follows`: the same of the source by which it was judged last, without a commit: another one while it is
    held, or has nothing of it yet; with what it is `pinned` to there; {} where there is none. It says `grafted`,
    too: up to which commit the workspaces follow that are below it there. Of one of these both say `of`: the logical
    cluster of the workspace above whose source it is.
    """

    path: str
    cluster: str
    parent: str
    type: str = USUAL_TYPE
    served: bool = True
    commit: CommitRef = NONE
    head: CommitRef = NONE
    origin: CommitRef = NONE
    origin_time: int = 0
    directory: str = ""
    errors: list[str] = field(default_factory=list)
    writes: str = ""
    builtins: str = ""
    judged: CommitRef = NONE
    leaves: bool = False
    shard: str = shards.USUAL
    labels: dict[str, str] = field(default_factory=dict)
    initializers: list[str] = field(default_factory=list)
    terminators: list[str] = field(default_factory=list)
    stored: bool = False
    mounts: bool = False
    pin: dict[str, str] = field(default_factory=dict)
    due: int = 0
    locked: list[str] = field(default_factory=list)
    source: dict[str, str] = field(default_factory=dict)
    follows: dict[str, str] = field(default_factory=dict)

    @property
    def elsewhere(self) -> Mapping[str, str]:
        """What has its own content served from elsewhere than its directory: a source or a pin, {} for most."""
        return self.source or self.pin

    @property
    def is_home(self) -> bool:
        """Whether it stands in no other workspace, and was made for a user."""
        return self.stored and not self.parent

    @property
    def past(self) -> CommitRef:
        """The last commit that it went through, as far as that changed anything."""
        return self.judged or self.head

    def encode(self, summary: Mapping[str, Any]) -> bytes:
        """Its row, with what the status branch's summary of the workspace says: of both what follows from the rest, or
        is usual, is left out."""
        further: dict[str, Any] = {}
        if self.head != self.commit:
            further["head"] = str(self.head)
        if self.origin != self.commit:
            further["origin"] = str(self.origin)
        if self.judged:
            further["judged"] = str(self.judged)
        for name, usual in _USUAL:
            value = getattr(self, name)
            if value != usual:
                further[name] = value
        said = dict(summary)
        for name, usual in _following(self).items():
            value = said.pop(name, "")
            if value != usual:
                said[name] = value
        known = self.commit, self.origin_time, self.cluster, self.directory, _json(further), _json(said)
        return workspacerow.encode(self.path, Known(*known))

    @staticmethod
    def decode(path: str, row: bytes) -> WorkspaceRecord:
        return _decoded(path, row) if len(row) < _SMALL else _record(path, workspacerow.decode(path, row))


@lru_cache(64)  # a parent is asked for with each of its children
def _decoded(path: str, row: bytes) -> WorkspaceRecord:
    return _record(path, workspacerow.decode(path, row))


def _record(path: str, known: Known) -> WorkspaceRecord:
    commit, origin_time, cluster, directory, further, _ = known
    found = _read(further)
    for name in ("head", "origin", "judged"):
        if name in found:
            found[name] = commits.parse(found[name])
    found = {"head": commit, "origin": commit, **found}
    return WorkspaceRecord(
        path, cluster, paths.parent(path) or "", commit=commit, origin_time=origin_time, directory=directory, **found
    )


def _json(found: dict[str, Any]) -> bytes:
    return orjson.dumps(found) if found else b""


def _read(text: bytes) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads(text) if text else {}
    return found


def _following(record: WorkspaceRecord) -> dict[str, str]:
    """What a summary says that follows from the record mostly; "" for what is not said then."""
    return {"origin": str(record.origin), "commit": "" if record.commit == record.origin else str(record.commit)}


_USUALLY_NONE: Final[Mapping[str, Any]] = {
    "errors": [],
    "labels": {},
    "initializers": [],
    "terminators": [],
    "pin": {},
    "locked": [],
    "source": {},
    "follows": {},
}
_USUAL: Final = tuple(
    (each.name, _USUALLY_NONE.get(each.name, each.default))
    for each in fields(WorkspaceRecord)
    if each.name not in ("path", "cluster", "parent", "commit", "head", "origin", "judged", "origin_time", "directory")
)
"""What a record says beside its place, origin and commits, as most of them say it."""


@dataclass(frozen=True, slots=True)
class FleetRecord:
    """What is served. `loaded`: the first load is complete (until then unknown workspaces answer 503, never 404).

    `url`: where clients reach the server. `claims`: directories that lost their workspace.yaml but hold manifests
    still, with the workspaces they belong to. `kept`: workspaces that stay, with all below them, although a commit took
    their directories away, and the commit that was served before. `lost`: the status commit of a recovery that could
    not bring back every workspace, NONE if there is none. `ships`: digests of what ships with Treeplane and of what a
    cluster of Kubernetes' kinds starts with, as all such workspaces have it. `holder`: who writes the
    status branch where that is another server, and this one only shows what it says; "" if it is this one. `shown`: the
    status commit that is shown then. `arriving`: the commits that are on their way into the store, in the order in
    which they were taken, () between two: some workspaces are at one of them already, as their `head` says. `admitted`:
    of these, where somebody was asked about, what was found of whoever stands for them (loading/owners), by commit.
    `verified`: heads that were served and left again, and whose signatures were good. `grafts`: of workspaces whose
    content comes from another repository that has workspaces below it, by logical cluster: the `directory` of the
    workspace, the source as in WorkspaceRecord.source, and the `commit` there which says what workspaces there are.
    `regrafting`: those that a step leads to which is under way, or was cut off.
    """

    fleet: str = ""
    loaded: bool = False
    commit: CommitRef = NONE
    branch: str = ""
    done: int = 0
    total: int = 0
    error: str = ""
    writes: str = "ReadOnly"
    url: str = ""
    claims: dict[str, str] = field(default_factory=dict)
    kept: dict[str, CommitRef] = field(default_factory=dict)
    ships: str = ""
    lost: CommitRef = NONE
    holder: str = ""
    shown: CommitRef = NONE
    arriving: tuple[CommitRef, ...] = ()
    admitted: dict[str, dict[str, Any]] = field(default_factory=dict)
    verified: tuple[CommitRef, ...] = ()
    grafts: dict[str, dict[str, str]] = field(default_factory=dict)
    regrafting: dict[str, dict[str, str]] = field(default_factory=dict)

    def encode(self) -> bytes:
        return orjson.dumps(self, default=str)

    @staticmethod
    def decode(value: bytes) -> FleetRecord:
        found = orjson.loads(value)
        for name in ("commit", "lost", "shown"):
            found[name] = commits.parse(found[name])
        for name in ("arriving", "verified"):
            found[name] = tuple(map(commits.parse, found.get(name) or ()))
        found["kept"] = {path: commits.parse(commit) for path, commit in found["kept"].items()}
        return FleetRecord(**found)


_RECORD, _TROUBLES = "record", "troubles"
"""Rows of the fleet's table: its record, and beside it, since another thread writes that, what is wrong."""


_STORED = "\0"
"""Instead of a directory: there is none, and no path has this in it."""


def placed(record: WorkspaceRecord) -> Put:
    """Writes the object that stands for the workspace where it is followed: it comes and goes with the workspace, and
    is written again where it moved, where it is served from now on or is not any more, and for news of it that no other
    object tells."""
    short = shortened(record.path, record.directory) if not record.stored else _STORED
    return Put(cluster_key(record.cluster), f"{record.path}\n{short}".encode())


def path_of(value: bytes) -> str:
    """The workspace's path, of what `placed` wrote."""
    return value.partition(b"\n")[0].decode()


def places_left(value: bytes | None, previous: bytes | None) -> set[str]:
    """Where a workspace was and is, of what `placed` wrote before and now, where it went or moved; else nothing."""
    if previous is None:
        return set()
    was = path_of(previous)
    now = path_of(value) if value is not None else ""
    return {was, now} - {""} if now != was else set()


def directory_of(value: bytes) -> str:
    """Its directory in the repository, of what `placed` wrote."""
    path, _, short = value.decode().partition("\n")
    return expanded(path, short) if short != _STORED else ""


def is_stored(value: bytes) -> bool:
    """Whether it is one that no commit knows of (WorkspaceRecord.stored), of what `placed` wrote."""
    return value.endswith(f"\n{_STORED}".encode())


def cluster_key(cluster: str) -> Key:
    """Where `placed` writes: from logical cluster name to path."""
    return Key(Internal.WORKSPACE, cluster, "", "")


def check_there(store: View, cluster: str) -> Check:
    """Fails a write where the workspace moves, leaves or goes from now on: whoever makes something in it goes by what
    he reads behind this. In a store of one cluster, where none is, it holds."""
    there = store.get(cluster_key(cluster))
    return Check(cluster_key(cluster), there.revision if there is not None else NEVER)


def target_place(record: WorkspaceRecord, name: str) -> str:
    """What the directory of an embedded sync target's store is called. A workspace that was made through the API leaves
    its path to others, who shall not find what ran there: its name is nobody else's ever."""
    return f"{record.cluster if record.stored else record.path}:{name}"


def is_left(store: View, place: str) -> bool:
    """Whether such a directory is of a workspace that was made through the API, and is gone."""
    cluster = place.rpartition(":")[0]
    return bool(cluster) and ":" not in cluster and cluster != ROOT and workspace_of(store, cluster) is None


def put_workspace(record: WorkspaceRecord, summary: Mapping[str, Any] = MappingProxyType({})) -> PutRow:
    """Writes the row of a workspace. `summary`: what the status branch's says. Goes together with `listed`."""
    return PutRow(Table.WORKSPACES, record.path, record.encode(summary))


def listed(record: WorkspaceRecord, before: WorkspaceRecord | None) -> list[Op]:
    """Keeps the lists of those that are held back, of those that leave, of pins that end and of sources; `before` is
    what is stored. Nothing to do for most of them."""
    out: list[Op] = []
    if bool(record.errors) != (before is not None and bool(before.errors)):
        out.append(PutRow(Table.HELD, record.path, b"") if record.errors else DeleteRow(Table.HELD, record.path))
    if record.leaves and not (before is not None and before.leaves):
        out.append(PutRow(Table.LEAVING, record.path, b""))
    if record.due != (before.due if before is not None else 0):
        due = PutRow(Table.PINNED, record.path, b"%d" % record.due)
        out.append(due if record.due else DeleteRow(Table.PINNED, record.path))
    if _is_sourced(record) != (before is not None and _is_sourced(before)):
        out.append(
            PutRow(Table.SOURCED, record.path, b"") if _is_sourced(record) else DeleteRow(Table.SOURCED, record.path)
        )
    return out


def relisted(before: WorkspaceRecord, after: WorkspaceRecord) -> list[Op]:
    """Has one that moves stand under its new path in those lists that one may stand in which moves."""
    if not _is_sourced(before):
        return []
    return [DeleteRow(Table.SOURCED, before.path), PutRow(Table.SOURCED, after.path, b"")]


def _is_sourced(record: WorkspaceRecord) -> bool:
    return bool(record.source or record.follows)


def typed(record: WorkspaceRecord) -> PutRow:
    """Lists a workspace that was made through the API under its type."""
    return PutRow(Table.TYPED, row_key(record.type, record.path), b"")


def untyped(record: WorkspaceRecord) -> DeleteRow:
    """Takes it from that list."""
    return DeleteRow(Table.TYPED, row_key(record.type, record.path))


def types_in_use(store: View) -> Iterator[str]:
    """Types of which `typed` lists a workspace, as records name them. A look for each of them."""
    after: str | None = None
    while found := store.scan_rows(Table.TYPED, after=after, limit=1):
        named = found[0].key.partition("\0")[0]
        yield named
        after = f"{row_key(named)}\1"


def of_type(store: View, named: str) -> Iterator[str]:
    """Paths of the workspaces that `typed` lists under a type."""
    yield from (row.key.partition("\0")[2] for row in rows(store, Table.TYPED, row_key(named, "")))


def forgotten(record: WorkspaceRecord) -> list[Op]:
    """The operations that take away what the store holds of a workspace beside its objects; the object that stands for
    it comes last."""
    listed = (Table.HELD, record.errors), (Table.LEAVING, record.leaves), (Table.PINNED, record.due)
    lists = [DeleteRow(table, record.path) for table, is_there in listed if is_there]
    if _is_sourced(record):
        lists += [DeleteRow(Table.SOURCED, record.path), looks.forgotten(record.cluster)]
    lists += [untyped(record)] if record.stored else []
    kept = ((table, record.cluster) for table in (Table.KEPT_SECRETS, Table.AGE_KEYS, Table.RENDERINGS))
    gone = (DeleteRow(table, row) for table, row in (*kept, (Table.WORKSPACES, record.path)))
    return [*lists, *gone, Delete(cluster_key(record.cluster))]


def workspace_row(store: View, name: str) -> Row | None:
    """The row of the workspace with this path or logical cluster name."""
    found = store.get_row(Table.WORKSPACES, name) if ":" in name or name == ROOT else None
    if found is not None:
        return Row(name, found)
    place = store.get(cluster_key(name))
    return _row_of(store, place.value) if place is not None else None


def declared_row(store: View, cluster: str) -> Row | None:
    """As `workspace_row`, by logical cluster name; None for one that no commit knows of, which is seen without it."""
    place = store.get(cluster_key(cluster))
    return _row_of(store, place.value) if place is not None and not is_stored(place.value) else None


def _row_of(store: View, value: bytes) -> Row | None:
    """`value`: of what `placed` wrote."""
    path = path_of(value)
    found = store.get_row(Table.WORKSPACES, path) if path else None
    return Row(path, found) if found is not None else None


def workspace_at(store: View, path: str) -> WorkspaceRecord | None:
    found = store.get_row(Table.WORKSPACES, path)
    return WorkspaceRecord.decode(path, found) if found is not None else None


def workspace_named(store: View, name: str) -> WorkspaceRecord | None:
    """By path or by logical cluster name."""
    row = workspace_row(store, name)
    return WorkspaceRecord.decode(*row) if row is not None else None


def path_named(store: View, name: str) -> str:
    """The path of the workspace with this path or logical cluster name; "" where there is none."""
    row = workspace_row(store, name)
    return row.key if row is not None else ""


def workspace_of(store: View, cluster: str) -> WorkspaceRecord | None:
    """By logical cluster name."""
    place = store.get(cluster_key(cluster))
    return workspace_at(store, path_of(place.value)) if place is not None else None


def lineage(store: View, cluster: str) -> Iterator[str]:
    """The logical cluster names of a workspace and of each that it is in, from the inside out."""
    yield cluster
    place = store.get(cluster_key(cluster))
    path = paths.parent(path_of(place.value)) if place is not None else None
    while path is not None:
        above = workspace_at(store, path)
        if above is not None:
            yield above.cluster
        path = paths.parent(path)


def summary(store: View, path: str) -> dict[str, Any]:
    """What the status branch's summary of the workspace at `path` says; nothing of one that is not there."""
    found = store.get_row(Table.WORKSPACES, path)
    return summary_in(Row(path, found)) if found is not None else {}


def summary_in(row: Row) -> dict[str, Any]:
    """The same, of its row."""
    return record_and_summary(row)[1].read()


class SummaryText(NamedTuple):
    """What a summary says, before it is read: workspaces that came together say the same. `origin`, `commit`: see
    `_following`; `further`: what does not follow."""

    origin: str
    commit: str
    further: bytes

    def read(self) -> dict[str, Any]:
        usual = {"origin": self.origin, "commit": self.commit}
        return {name: value for name, value in {**usual, **_read(self.further)}.items() if value or name not in usual}


def record_and_summary(row: Row) -> tuple[WorkspaceRecord, SummaryText]:
    """Both of what a workspace's row says, decoded once."""
    known = workspacerow.decode(row.key, row.value)
    record = _record(row.key, known)
    return record, SummaryText(**_following(record), further=known.summary)


def held(store: View) -> dict[str, list[str]]:
    """Workspaces whose newest content is held back: path → errors. Reads these alone."""
    found = (workspace_at(store, row.key) for row in rows(store, Table.HELD))
    return {record.path: record.errors for record in found if record is not None}


def count_held(store: View) -> int:
    """How many these are."""
    return sum(1 for _ in rows(store, Table.HELD))


def leaving(store: View) -> dict[str, WorkspaceRecord]:
    """Workspaces that a commit took away and that wait, by path. Reads these alone."""
    found = (workspace_at(store, row.key) for row in rows(store, Table.LEAVING))
    return {record.path: record for record in found if record is not None}


def pins_ending(store: View) -> dict[str, int]:
    """When pins are over, by the path of the workspace. Reads the rows of those alone that ever are."""
    return {row.key: int(row.value) for row in rows(store, Table.PINNED)}


def sourced(store: View) -> list[WorkspaceRecord]:
    """Workspaces that have a source, or are to have one. Reads these alone."""
    found = (workspace_at(store, row.key) for row in rows(store, Table.SOURCED))
    return [record for record in found if record is not None]


def stored(store: View) -> list[WorkspaceRecord]:
    """Workspaces that were made through the API, parents before their children. Reads all records."""
    found = (WorkspaceRecord.decode(*row) for row in rows(store, Table.WORKSPACES))
    return sorted((record for record in found if record.stored), key=lambda record: record.path.count(":"))


def below(store: View, path: str) -> Iterator[str]:
    """Paths of the workspaces below the one at `path`, of any depth. Reads theirs alone."""
    yield from (row.key for row in rows(store, Table.WORKSPACES, f"{path}:"))


def count(store: View) -> int:
    """How many workspaces there are."""
    return store.count(Internal.WORKSPACE)


def put_fleet(record: FleetRecord) -> PutRow:
    return PutRow(Table.FLEET, _RECORD, record.encode())


def fleet_row(store: View) -> bytes | None:
    return store.get_row(Table.FLEET, _RECORD)


def fleet(store: View) -> FleetRecord:
    found = fleet_row(store)
    return FleetRecord.decode(found) if found is not None else FleetRecord()


def troubles(store: View) -> dict[str, str]:
    """What is wrong with the fleet as a whole: by kind, a sentence with what goes on. Reads go on meanwhile."""
    return told(troubles_row(store))


def troubles_row(store: View) -> bytes | None:
    return store.get_row(Table.FLEET, _TROUBLES)


def told(row: bytes | None) -> dict[str, str]:
    """What a row of troubles says."""
    return _troubles(row) if row is not None else {}


def put_troubles(found: dict[str, str], before: bytes | Absent | None = None) -> PutRow:
    """`before`: the row that they follow from, None: whatever stands there."""
    return PutRow(Table.FLEET, _TROUBLES, orjson.dumps(found, option=orjson.OPT_SORT_KEYS), before)


@lru_cache(4)
def _troubles(value: bytes) -> dict[str, str]:
    found: dict[str, str] = orjson.loads(value)
    return found
