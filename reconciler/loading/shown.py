"""A store that shows what the status branch says, for a server that only observes: at each status commit what a
recovery from that commit would give.

Called by the observer (commands). The first commit is recovered from; for each one after it only the workspaces are
recovered that differ: those of which something else is recorded, whose content is another, or whose providers are.
They are recovered aside (overlay), and what differs is written, so that whoever watches sees changes and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

import orjson

from apiserver.model import paths
from apiserver.model.identity import logical_cluster_name
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.model.tables import Table, row_key
from apiserver.registry import codec, tree
from apiserver.registry.keptschemas import KEPT_SCHEMAS, kept_key
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, cluster_key, put_fleet
from apiserver.storage.paging import rows
from apiserver.storage.protocol import Delete, DeleteRow, Op, Put, PutRow, Store
from reconciler.layout.compare import touched
from reconciler.layout.fleet import read_fleet
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import feeds
from reconciler.loading.consumers import listing, taken
from reconciler.loading.firstload import Progress
from reconciler.loading.loader import Loaded, Loader
from reconciler.loading.overlay import Overlay
from reconciler.loading.shipped import is_root_open
from reconciler.loading.step import Carry
from reconciler.plan.computed import FLEET_FOLLOWED
from reconciler.plan.runtimestatus import overlaid
from reconciler.repository.difference import FileChange, difference
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import RecordedFleet

_FLEETS = frozenset(
    {
        Internal.WORKSPACE,
        Internal.INTENT,
        Internal.PROPOSED,
        Internal.ANSWER,
        Internal.AWAITED,
        KEPT_SCHEMAS,
        WORKSPACES,
    }
)
"""Resources whose objects do not belong to the workspace in whose logical cluster they stand, if they stand in one, or
are nobody's to recover. A Workspace belongs to the one that it is."""

_BY_PATH = (Table.WORKSPACES, Table.HELD, Table.LEAVING, Table.PINNED, Table.SOURCED, Table.PROVIDERS)
"""Tables whose rows have a workspace's path for a key."""
_BY_CLUSTER = (Table.KEPT_SECRETS, Table.RENDERINGS)
"""Those whose rows have its logical cluster."""

_FLEET_FOLLOWED = f'"{FLEET_FOLLOWED}"'.encode()

NewLoader = Callable[[Store], Loader]


class Shown:
    """Not thread-safe. `loader` makes one for a store. `holder` is who writes the status branch. `carry`: see step."""

    def __init__(self, store: Store, repo: Repository, loader: NewLoader, carry: Carry = lambda _: None) -> None:
        self._store = store
        self._repo = repo
        self._loader = loader
        self._carry = carry

    def begin(self, recorded: RecordedFleet, holder: str, progress: Progress = lambda _: None) -> Loaded:
        """Forgets what the store holds, and recovers. It is not loaded while that takes."""
        self._store.clear()
        self._note(FleetRecord(holder=holder))
        loaded = self._loader(self._store).begin(recorded.source, recorded, progress)
        fleet = tree.fleet(self._store)
        if fleet.loaded:
            self._note(replace(fleet, holder=holder, shown=recorded.commit))
        return loaded

    def follow(self, recorded: RecordedFleet, holder: str, also: Collection[str] = ()) -> list[str]:
        """Brings the store from the status commit that it shows to another one; the paths of the workspaces that were
        looked at. `also`: workspaces that differ for another reason (their Secrets changed)."""
        fleet = tree.fleet(self._store)
        before = RecordedFleet(self._repo, fleet.shown.id)
        now, was = self._tree(recorded), self._tree(before)
        affected = {*also, *self._touched(now, was), *self._recorded_otherwise(before, recorded, now, was)}
        after = self._fleet(fleet, recorded, holder)
        gone = self._schemas(before, recorded)
        moved = self._moved(affected, recorded, now)
        self._carry({old: new for new, old in moved.items()})
        while True:
            aside = self._recovered(after, recorded, affected)
            more = self._concerned(aside) - affected
            if not more:
                break
            affected |= more
        self._list(affected, aside)
        # Parents before children, and what goes before what it stood in.
        going = {path for path in affected if tree.workspace_at(aside, path) is None}
        staying = sorted(affected - going - moved.keys(), key=paths.depth)
        # Who moved is where he is before he is no longer where he was.
        for path in (*sorted(moved, key=paths.depth), *sorted(going, key=paths.depth, reverse=True), *staying):
            ops = self._ops(path, aside)
            if ops:
                self._store.write(*ops).result()
        if gone:
            self._store.write(*gone).result()
        self._note(after)
        return sorted(affected)

    def _moved(self, affected: Iterable[str], recorded: RecordedFleet, now: WorkspaceTree) -> dict[str, str]:
        """The workspaces that are elsewhere here: by path where they are."""
        moved: dict[str, str] = {}
        for path in affected:
            place = now.find(path)
            known = recorded.summary(format.directory_of(path, place.directory if place is not None else ""))
            if known is not None:
                first = known.first or path
                cluster = logical_cluster_name(recorded.facts().id, first, known.origin)
                here = tree.workspace_of(self._store, cluster)
                if here is not None and here.path != path:
                    moved[path] = here.path
        return moved

    def _list(self, paths: Iterable[str], aside: Overlay) -> None:
        """Before anything else, so that no provider changes behind a consumer's back."""
        ops = [op for path in sorted(paths) for op in listing(self._store, path, taken(aside, path))]
        if ops:
            self._store.write(*ops).result()

    # -- what differs

    def _touched(self, now: WorkspaceTree, was: WorkspaceTree) -> set[str]:
        if now.tree_id == was.tree_id and now.claims == was.claims:
            return set()
        found = touched(now, was)
        fed = feeds.touched(self._store, [was], now, found.stirred)
        opened = {paths.ROOT} if is_root_open(now) != is_root_open(was) else set()
        return found.changed | found.appeared | found.removed | opened | fed

    def _recorded_otherwise(
        self, before: RecordedFleet, after: RecordedFleet, now: WorkspaceTree, was: WorkspaceTree
    ) -> Iterator[str]:
        """Workspaces whose directories on the status branch differ."""
        found = {_directory(change) for change in difference(self._repo, before.tree, after.tree)}
        claims, repo = after.facts().claims, self._repo
        coming = [WorkspaceTree(repo, repo.commit(c.id).tree, claims) for c in after.facts().arriving if repo.has(c.id)]
        for directory in found - {""}:
            place = format.directory_in_git(directory)
            for each in (now, was, *coming):
                workspace = each.at(joined(each.folder, place))
                if workspace is not None:
                    yield workspace.path
            # What ships has no directory, nor has what a commit removed that is not followed.
            yield paths.ROOT if directory.count("/") == 1 else ":".join(directory.split("/")[1:])

    def _recovered(self, fleet: FleetRecord, recorded: RecordedFleet, affected: Collection[str]) -> Overlay:
        hidden = _Hidden(self._store, affected)
        aside = Overlay(self._store, hidden)
        here = self._tree(recorded)
        there = [path for path in affected if self._is_there(path, here, recorded)]
        self._loader(aside).recover(fleet, recorded, there, affected)
        return aside

    def _is_there(self, path: str, here: WorkspaceTree, recorded: RecordedFleet) -> bool:
        """Whether there is such a workspace: in the commit that is recorded, or in what is recorded of it."""
        record = tree.workspace_at(self._store, path)
        known = record.directory if record is not None else ""
        if here.find(path, known) is not None:
            return True
        return any(
            recorded.summary(format.directory_of(path, each)) is not None for each in {"", known, format.apart(path)}
        )

    def _concerned(self, aside: Overlay) -> set[str]:
        """The workspaces that were written to, which may be more than were to be recovered."""
        clusters = {key.cluster for key in aside.written if key.resource not in _FLEETS}
        found = (tree.workspace_of(aside, cluster) for cluster in clusters)
        return {record.path for record in found if record is not None}

    # -- what is written

    def _ops(self, path: str, aside: Overlay) -> list[Op]:
        """What makes a workspace here what it is there: its objects, its rows, and last where it is."""
        ours = (tree.workspace_at(self._store, path), tree.workspace_at(aside, path))
        records = [record for record in ours if record is not None]
        ops = [op for key in sorted(self._objects(records, aside)) for op in self._object(key, aside)]
        for at in sorted(self._rows(records, aside)):
            value = aside.get_row(*at)
            if value != self._store.get_row(*at):
                ops.append(PutRow(*at, value) if value is not None else DeleteRow(*at))
        for cluster in sorted({record.cluster for record in records}):
            ops += self._object(cluster_key(cluster), aside)
        return ops

    def _object(self, key: Key, aside: Overlay) -> list[Op]:
        here, there = self._store.get(key), aside.get(key)
        if there is None:
            return [Delete(key)] if here is not None else []
        if here is None:
            return [Put(key, there.value, stamp=there.stamp)]
        value = there.value if key.resource != LOGICAL_CLUSTERS else _with_own_word(there.value, here.value)
        return [Put(key, value, stamp=there.stamp)] if here.value != value else []

    def _objects(self, records: Iterable[WorkspaceRecord], aside: Overlay) -> set[Key]:
        """The keys of all objects of a workspace, here or there."""
        found: set[Key] = set()
        for record in records:
            for store in (self._store, aside):
                for resource in store.resources(record.cluster):
                    if resource not in _FLEETS:
                        found |= {r.key for r in store.scan(resource, record.cluster, count=False).records}
            own = _own_object(self._store, record) or _own_object(aside, record)
            found |= {own} if own is not None else set()
        return found

    def _rows(self, records: Iterable[WorkspaceRecord], aside: Overlay) -> set[tuple[Table, str]]:
        """All rows of a workspace, here or there."""
        found: set[tuple[Table, str]] = set()
        for record in records:
            found |= {(table, record.path) for table in _BY_PATH}
            found |= {(table, record.cluster) for table in _BY_CLUSTER}
            for store in (self._store, aside):
                ports = rows(store, Table.NODE_PORTS, row_key(record.cluster, ""))
                found |= {(Table.NODE_PORTS, row.key) for row in ports}
        return found

    def _schemas(self, before: RecordedFleet, after: RecordedFleet) -> list[Op]:
        """Brings the schemas that consumers are still served with; the operations that take the others away, later."""
        old, new = ({kept_key(*each): each[1] for each in recorded.schemas()} for recorded in (before, after))
        for key, schema in new.items():
            if schema != old.get(key):
                self._store.write(Put(key, codec.encode(schema))).result()
        return [Delete(key) for key in old.keys() - new.keys()]

    # -- the fleet

    def _fleet(self, fleet: FleetRecord, recorded: RecordedFleet, holder: str) -> FleetRecord:
        facts, commit = recorded.facts(), recorded.source
        writes = read_fleet(self._repo, self._repo.commit(commit.id).tree).writes
        fleet = replace(fleet, commit=commit, writes=writes, holder=holder, shown=recorded.commit)
        fleet = replace(fleet, claims=facts.claims, kept=facts.kept, arriving=facts.arriving)
        return replace(fleet, admitted=facts.admitted, verified=facts.verified, grafts=facts.grafts)

    def _note(self, fleet: FleetRecord) -> None:
        if fleet != tree.fleet(self._store):
            self._store.write(put_fleet(fleet)).result()

    def _tree(self, recorded: RecordedFleet) -> WorkspaceTree:
        facts = recorded.facts()
        fleet = FleetRecord(commit=recorded.source, claims=facts.claims, grafts=facts.grafts)
        return self._loader(self._store).tree_at(fleet)


class _Hidden:
    """Which keys belong to some workspaces: all in their logical clusters but the objects that stand for workspaces
    below them, and what stands for them elsewhere."""

    def __init__(self, store: Store, affected: Iterable[str]) -> None:
        self._paths = frozenset(affected)
        self._clusters: set[str] = set()
        self._keys: set[Key] = set()
        for path in self._paths:
            record = tree.workspace_at(store, path)
            if record is not None:
                self._clusters.add(record.cluster)
                own = _own_object(store, record)
                self._keys |= {cluster_key(record.cluster)} | ({own} if own is not None else set())

    def key(self, key: Key) -> bool:
        if key in self._keys:
            return True
        return key.cluster in self._clusters and key.resource not in _FLEETS

    def row(self, table: Table, row: str) -> bool:
        if table in _BY_PATH:
            return row in self._paths
        return table in (*_BY_CLUSTER, Table.NODE_PORTS) and row.partition("\0")[0] in self._clusters


def _with_own_word(there: bytes, here: bytes) -> bytes:
    """A LogicalCluster: how the fleet is followed is said by each server of itself."""
    if _FLEET_FOLLOWED not in here:
        return there
    obj, own = orjson.loads(there), orjson.loads(here)["status"]["conditions"]
    said = [each for each in own if each["type"] == FLEET_FOLLOWED]
    return codec.encode({**obj, "status": overlaid(obj["status"], {"conditions": said})})


def _own_object(store: Store, record: WorkspaceRecord) -> Key | None:
    """The Workspace that a workspace has in its parent."""
    parent = tree.workspace_at(store, record.parent) if record.parent else None
    return Key(WORKSPACES, parent.cluster, "", paths.base(record.path)) if parent is not None else None


def _directory(change: FileChange) -> str:
    """The workspace's directory on the branch that a file belongs to; "" for the fleet's own."""
    if change.path == format.FLEET or change.path.startswith(f"{format.SCHEMAS}/"):
        return ""
    return format.workspace_of(change.path)
