"""A store that shows what the status branch says, for a server that only observes: at each status commit what a
recovery from that commit would give.

Called by the observer (commands). The first commit is recovered from; for each one after it only the workspaces are
recovered that differ: those of which something else is recorded, whose content is another, or whose providers are.
They are recovered aside (overlay), and what differs is written, so that whoever watches sees changes and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from apiserver.model import paths
from apiserver.model.keys import Internal, Key
from apiserver.registry import codec, tree
from apiserver.registry.catalog import KEPT_SCHEMAS
from apiserver.registry.tree import FLEET_KEY, FleetRecord, WorkspaceRecord, cluster_key, summary_key, workspace_key
from apiserver.storage.protocol import Delete, Note, Op, Put, Store
from reconciler.layout.compare import touched
from reconciler.layout.fleet import read_fleet
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.loader import Loaded, Loader, Progress
from reconciler.loading.overlay import Overlay
from reconciler.loading.world import CONSUMERS
from reconciler.plan.computed import WORKSPACES
from reconciler.repository.difference import FileChange, difference
from reconciler.repository.objects import Repository
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import RecordedFleet

_FLEETS = frozenset(
    {FLEET_KEY.resource, Internal.WORKSPACE, Internal.INTENT, Internal.ANSWER, CONSUMERS, KEPT_SCHEMAS, WORKSPACES}
)
"""Resources whose objects do not belong to the workspace in whose logical cluster they stand, if they stand in one, or
are nobody's to recover. A Workspace belongs to the one that it is."""

NewLoader = Callable[[Store], Loader]


class Shown:
    """Not thread-safe. `loader` makes one for a store. `holder` is who writes the status branch."""

    def __init__(self, store: Store, repo: Repository, loader: NewLoader) -> None:
        self._store = store
        self._repo = repo
        self._loader = loader

    def begin(self, recorded: RecordedFleet, holder: str, progress: Progress = lambda _: None) -> Loaded:
        """Forgets what the store holds, and recovers. It is not loaded while that takes."""
        self._store.clear()
        self._note(FleetRecord(holder=holder))
        loaded = self._loader(self._store).load(recorded.source, recorded, progress)
        fleet = tree.fleet(self._store)
        if fleet.loaded:
            self._note(replace(fleet, holder=holder, shown=recorded.commit))
        return loaded

    def follow(self, recorded: RecordedFleet, holder: str, also: Collection[str] = ()) -> list[str]:
        """Brings the store from the status commit that it shows to another one; the paths of the workspaces that were
        looked at. `also`: workspaces that differ for another reason (their Secrets changed)."""
        fleet = tree.fleet(self._store)
        before = RecordedFleet(self._repo, fleet.shown)
        now, was = self._tree(recorded), self._tree(before)
        affected = {*also, *self._touched(now, was), *self._recorded_otherwise(before, recorded, now, was)}
        after = self._fleet(fleet, recorded, holder)
        gone = self._schemas(before, recorded)
        while True:
            aside = self._recovered(after, recorded, affected)
            more = self._concerned(aside) - affected
            if not more:
                break
            affected |= more
        bound = [Put(key, value) for key, value in aside.written.items() if key.resource == CONSUMERS and value]
        if bound:
            self._store.write(*bound).result()
        # Parents before children, and what goes before what it stood in.
        going = {path for path in affected if tree.workspace_at(aside, path) is None}
        staying = sorted(affected - going, key=_depth)
        for path in (*sorted(going, key=_depth, reverse=True), *staying):
            ops = self._ops(path, aside)
            if ops:
                self._store.write(*ops).result()
        if gone:
            self._store.write(*gone).result()
        self._note(after)
        return sorted(affected)

    # -- what differs

    def _touched(self, now: WorkspaceTree, was: WorkspaceTree) -> set[str]:
        if now.tree_id == was.tree_id and now.claims == was.claims:
            return set()
        found = touched(now, was)
        return found.changed | found.appeared | found.removed

    def _recorded_otherwise(
        self, before: RecordedFleet, after: RecordedFleet, now: WorkspaceTree, was: WorkspaceTree
    ) -> Iterator[str]:
        """Workspaces whose directories on the status branch differ."""
        found = {_directory(change) for change in difference(self._repo, before.tree, after.tree)}
        for directory in found - {""}:
            place = format.directory_in_git(directory)
            for each in (now, was):
                workspace = each.at(place)
                if workspace is not None:
                    yield workspace.path
            # What ships has no directory, nor has what a commit removed that is not followed.
            yield paths.ROOT if directory.count("/") == 1 else ":".join(directory.split("/")[1:])

    def _recovered(self, fleet: FleetRecord, recorded: RecordedFleet, affected: Collection[str]) -> Overlay:
        hidden = _Hidden(self._store, affected)
        aside = Overlay(self._store, hidden)
        here = self._tree(recorded)
        self._loader(aside).recover(fleet, recorded, [p for p in affected if self._is_there(p, here, recorded)])
        return aside

    def _is_there(self, path: str, here: WorkspaceTree, recorded: RecordedFleet) -> bool:
        """Whether there is such a workspace: in the commit that is recorded, or in what is recorded of it."""
        record = tree.workspace_at(self._store, path)
        known = record.directory if record is not None else ""
        if here.find(path, known) is not None:
            return True
        return any(recorded.summary(format.directory_of(path, each)) is not None for each in {"", known})

    def _concerned(self, aside: Overlay) -> set[str]:
        """The workspaces that were written to, which may be more than were to be recovered."""
        clusters = {key.cluster for key in aside.written if key.resource not in _FLEETS}
        found = (tree.workspace_of(aside, cluster) for cluster in clusters)
        return {record.path for record in found if record is not None}

    # -- what is written

    def _ops(self, path: str, aside: Overlay) -> list[Op]:
        """What makes a workspace here what it is there."""
        ops: list[Op] = []
        last: list[Op] = []
        for key in self._keys(path, aside):
            here, there = self._store.get(key), aside.get(key)
            if there is None:
                if here is not None:
                    (last if key.resource.startswith("~") else ops).append(Delete(key))
            elif here is None or here.value != there.value:
                if not key.resource.startswith("~"):
                    ops.append(Put(key, there.value, stamp=there.stamp))
                else:
                    last.append(Put(key, there.value) if here is None else Note(key, there.value))
        return [*ops, *last]

    def _keys(self, path: str, aside: Overlay) -> Iterator[Key]:
        """Every key of a workspace, here or there: objects, then its records."""
        records = [r for r in (tree.workspace_at(self._store, path), tree.workspace_at(aside, path)) if r is not None]
        objects: set[Key] = set()
        for record in records:
            for store in (self._store, aside):
                for resource in store.resources(record.cluster):
                    if resource not in _FLEETS and resource != Internal.SUMMARY:
                        objects |= {r.key for r in store.scan(resource, record.cluster, count=False).records}
            own = _own_object(self._store, record) or _own_object(aside, record)
            objects |= {own} if own is not None else set()
        yield from sorted(objects)
        for record in records:
            yield from (summary_key(record.cluster), cluster_key(record.cluster))
        yield workspace_key(path)

    def _schemas(self, before: RecordedFleet, after: RecordedFleet) -> list[Op]:
        """Brings the schemas that consumers are still served with; the operations that take the others away, later."""
        old = {(cluster, schema["metadata"]["name"]): schema for cluster, schema in before.schemas()}
        new = {(cluster, schema["metadata"]["name"]): schema for cluster, schema in after.schemas()}
        for (cluster, name), schema in new.items():
            if schema != old.get((cluster, name)):
                self._store.write(Put(Key(KEPT_SCHEMAS, cluster, "", name), codec.encode(schema))).result()
        return [Delete(Key(KEPT_SCHEMAS, cluster, "", name)) for cluster, name in old.keys() - new.keys()]

    # -- the fleet

    def _fleet(self, fleet: FleetRecord, recorded: RecordedFleet, holder: str) -> FleetRecord:
        facts, commit = recorded.facts(), recorded.source
        writes = read_fleet(self._repo, self._repo.commit(commit).tree).writes
        fleet = replace(fleet, commit=commit, writes=writes, holder=holder, shown=recorded.commit)
        return replace(fleet, claims=facts.claims, kept=facts.kept)

    def _note(self, fleet: FleetRecord) -> None:
        if fleet != tree.fleet(self._store):
            self._store.write(Note(FLEET_KEY, fleet.encode())).result()

    def _tree(self, recorded: RecordedFleet) -> WorkspaceTree:
        return WorkspaceTree(self._repo, self._repo.commit(recorded.source).tree, recorded.facts().claims)


def _depth(path: str) -> tuple[int, str]:
    return path.count(":"), path


class _Hidden:
    """Which keys belong to some workspaces: all in their logical clusters but the objects that stand for workspaces
    below them, and what stands for them elsewhere."""

    def __init__(self, store: Store, affected: Iterable[str]) -> None:
        self._clusters: set[str] = set()
        self._keys: set[Key] = set()
        for path in affected:
            record = tree.workspace_at(store, path)
            if record is not None:
                self._clusters.add(record.cluster)
                own = _own_object(store, record)
                self._keys |= {workspace_key(path), cluster_key(record.cluster)} | ({own} if own is not None else set())

    def __call__(self, key: Key) -> bool:
        if key in self._keys:
            return True
        return key.cluster in self._clusters and key.resource not in _FLEETS


def _own_object(store: Store, record: WorkspaceRecord) -> Key | None:
    """The Workspace that a workspace has in its parent."""
    parent = tree.workspace_at(store, record.parent) if record.parent else None
    return Key(WORKSPACES, parent.cluster, "", paths.base(record.path)) if parent is not None else None


def _directory(change: FileChange) -> str:
    """The workspace's directory on the branch that a file belongs to; "" for the fleet's own."""
    if change.path == format.FLEET or change.path.startswith(f"{format.SCHEMAS}/"):
        return ""
    return format.workspace_of(change.path)
