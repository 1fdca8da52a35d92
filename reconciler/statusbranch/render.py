"""Which files of the status branch follow from the store: after some changes, or from scratch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import orjson

from apiserver.model import commits, paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.registry.keptschemas import KEPT_SCHEMAS
from apiserver.registry.tree import FleetRecord, SummaryText, WorkspaceRecord
from apiserver.storage.paging import pages, rows
from apiserver.storage.protocol import Change, Row, View
from reconciler.plan import residue
from reconciler.plan.residue import IdentitySource
from reconciler.statusbranch import format
from reconciler.statusbranch.folders import Folders
from reconciler.statusbranch.names import Names

T = TypeVar("T")

Object = dict[str, Any]
Files = dict[str, bytes | None]
"""Path → content, or None: remove."""

_SUMMARY = f"/{format.SUMMARY}"
_KEPT = 1024
"""Summaries: those of workspaces that came together say the same."""
_PLACES = 8_192
"""Workspaces that are not looked up again. Changes of one stand together in the log."""
_PAGE = 1_000


class Rendering:
    """Files for one status commit, in pieces: nothing that is kept follows how many there are."""

    def __init__(self, store: View, *, sparing: bool = False) -> None:
        """`sparing`: what came with a commit that is on its way, and of which nothing else is known, is left out."""
        self._sparing = sparing
        self._came: set[str] = set()
        """Folders of such workspaces in the piece at hand."""
        self._moved: set[str] = set()
        """Logical clusters whose files were rendered as of a view, and not as of the log: an object whose coming the
        log has not told yet may have one."""
        self.recorded = 0
        """The revision up to which the branch has all, also where the log is read from an earlier one: what came before
        it may have a file."""
        self.ahead = Names()
        """The logical clusters of workspaces that are past the fleet's commit already, of those rendered in a view."""
        self._again: set[Key] = set()
        """What the stretch at hand tells of and was recorded already."""
        self.gone: dict[str, str] = {}
        """The paths of workspaces that went, by their folders; of many the last."""
        self._places: dict[str, _Place | None] = {}
        self._parents: dict[str, str] = {}
        """The logical clusters of workspaces that others are in, by path."""
        self._texts: dict[tuple[SummaryText, CommitRef], bytes] = {}
        self.over(store)

    def over(self, view: View) -> FleetRecord:
        """Go on with another view: with later entries of the log, and workspaces as they are by now."""
        fleet = tree.fleet(view)
        self._store, self._fleet, self._arriving = view, fleet.fleet, frozenset(fleet.arriving)
        self._places.clear()
        self._parents.clear()
        self.ahead.clear()
        return fleet

    def changed(self, changes: Iterable[Change]) -> Files:
        """The files that a stretch of the log concerns; the newest change of a key wins."""
        files: Files = {}
        clusters: set[str] = set()
        changes = list(changes)
        self._again = {change.key for change in changes if change.revision <= self.recorded}
        for change in _newest(changes):
            key = change.key
            if key.resource == Internal.WORKSPACE:
                self._removed(change, files)
            elif key.resource == KEPT_SCHEMAS:
                files[format.schema_path(key)] = _whole(change.value) if change.value is not None else None
            elif key.resource == WORKSPACES:
                self._workspace(change, clusters, files)
            elif self._place(key.cluster) is not None and _may_say(change):  # in this order: most is not even read
                self._object(key, change.value, files, change.previous)
            if key.cluster:
                clusters.add(key.cluster)
        for cluster in clusters:
            self._summary_of(cluster, files)
        return self._done(files)

    def _summary_of(self, cluster: str, files: Files) -> None:
        """Summaries stand in rows beside the objects that changed, so no change of the log is theirs."""
        place = self._place(cluster)
        if place is not None:
            files[f"{place.directory}/{format.SUMMARY}"] = self._summary(cluster, place)

    def summaries(self, clusters: Iterable[str]) -> Iterator[Files]:
        """The summaries of some workspaces, as far as they are there still."""
        names = iter(clusters)
        while piece := list(islice(names, _PAGE)):
            files: Files = {}
            for cluster in piece:
                self._summary_of(cluster, files)
            yield self._done(files)

    def _done(self, files: Files) -> Files:
        """A piece, without the workspaces that came with a commit which is on its way where nothing but their summaries
        is known of them: a recovery makes them of that commit, as they are. What else is said of one comes with its
        summary, so a piece tells."""
        came, self._came = self._came, set()
        if came:
            came -= {format.owner_of(path) for path in files if not path.endswith(_SUMMARY)}
            return {path: data for path, data in files.items() if format.owner_of(path) not in came}
        return files

    def _summary(self, cluster: str, place: _Place) -> bytes:
        if self._sparing and place.came:
            self._came.add(place.directory)
        at = self._where(place) if self._arriving else NONE
        if at:
            self.ahead.add(cluster)
        made = self._texts.get((place.said, at))
        if made is None:
            said = place.said.read()
            if at:
                said["at"] = str(at)
            else:
                said.pop("step", None)  # it is over
            made = format.dump(said)
            if len(self._texts) < _KEPT:
                self._texts[place.said, at] = made
        return made

    def _where(self, place: _Place) -> CommitRef:
        """The commit at which a workspace is that is past the fleet's, or is held; NONE if it is not. One that never
        had a good commit has none to stay at: what stands for it says what the last commit does."""
        said = place.said.read() if place.held else {}
        stays = place.held and said.get("served") != ""
        at = commits.parse(said.get("held") or "") if stays else place.past
        return at if at in self._arriving else NONE

    def everything(self) -> Iterator[Files]:
        """All files that the branch should hold, and nothing that is to be removed."""
        for files in self._all(None):
            yield self._done({path: data for path, data in files.items() if data is not None})
        for page in pages(self._store, KEPT_SCHEMAS):
            yield {format.schema_path(record.key): _whole(record.value) for record in page}

    def lost(self) -> frozenset[str]:
        """Directories of workspaces that were served before a recovery and could not be brought back: what the branch
        holds of them is not explained by the store, and stays."""
        records = (tree.workspace_at(self._store, path) for path in tree.held(self._store))
        unserved = [record for record in records if record is not None and not record.served]
        return frozenset(
            format.directory_of(record.path, record.directory)
            for record in unserved
            if tree.summary(self._store, record.path).get("served") != ""
        )

    def _all(self, cluster: str | None) -> Iterator[Files]:
        """All files of one workspace, or of the fleet (`cluster` None)."""
        found = iter(self._workspaces(cluster))
        while piece := list(islice(found, _PAGE)):
            files: Files = {}
            for row in piece:
                workspace, said = tree.record_and_summary(row)
                if workspace.stored:
                    continue
                place = self._place_of(workspace, said)
                _keep(self._places, workspace.cluster, place)
                files[f"{place.directory}/{format.SUMMARY}"] = self._summary(workspace.cluster, place)
                self._workspace_of(place, files)
            yield files
        for resource in self._resources(cluster):
            for page in pages(self._store, resource, cluster):
                files = {}
                for record in page:
                    if not residue.is_runtime(record.value):
                        self._object(record.key, record.value, files)
                        if self._sparing:
                            self._summary_of(record.key.cluster, files)
                yield files

    def _workspaces(self, cluster: str | None) -> Iterable[Row]:
        if cluster is None:
            return rows(self._store, Table.WORKSPACES)
        found = tree.workspace_row(self._store, cluster)
        return [found] if found is not None else []

    def _resources(self, cluster: str | None) -> Iterator[str]:
        """The store's names of resources whose objects may leave a residue."""
        yield from (
            each
            for each in self._store.resources(cluster)
            if each != WORKSPACES and residue.may_leave(Key(each, "", "", ""))
        )

    def _removed(self, change: Change, files: Files) -> None:
        if change.previous is not None:
            self._parents.clear()  # it may have been one
        if change.value is not None:
            if change.previous is not None or self._places.get(change.key.cluster) is None:
                self._places.pop(change.key.cluster, None)  # one that went may have come again
            if change.previous is not None:
                self._elsewhere(change.key.cluster, change.value, change.previous, files)
        elif change.previous is not None:
            self._places[change.key.cluster] = None
            if not tree.is_stored(change.previous) and not self._leave(change.previous, files):
                files[_folder(change.previous)] = None

    def _elsewhere(self, cluster: str, value: bytes, previous: bytes, files: Files) -> None:
        """A workspace that moved to another path, or whose directory is another's by now, has another folder."""
        folder = _folder(previous)
        if tree.is_stored(value) or folder == _folder(value):
            return
        # Not what is told of workspaces below it, which may have moved on before.
        for each in [each for each in files if _is_own(each, folder)]:
            del files[each]
        if not self._leave(previous, files):
            # What is below its directory may stay there.
            files.update({f"{folder}/{name}": None for name in format.OURS})
        self._anew(cluster, files)

    def _leave(self, previous: bytes, files: Files) -> bool:
        """A workspace is in its folder no more; whether another one is there by now, of which all is rendered then."""
        folder, path = _folder(previous), tree.path_of(previous)
        there = Folders(self._store, {}).get(folder)
        record = tree.workspace_at(self._store, there) if there is not None and there != path else None
        if record is None:
            _keep(self.gone, folder, path)
            return False
        files.update({f"{folder}/{name}": None for name in format.OURS})
        self._anew(record.cluster, files)
        return True

    def _anew(self, cluster: str, files: Files) -> None:
        """All of one workspace."""
        for piece in self._all(cluster):
            files.update(piece)
        self._moved.add(cluster)

    def _workspace(self, change: Change, clusters: set[str], files: Files) -> None:
        """A Workspace object says what its record would: the workspace's summary may be another. Its residue stands in
        its own directory."""
        obj = orjson.loads(change.value) if change.value is not None else None
        now, ends = _cluster(obj), _ends(change.key, change.value)
        if now:
            clusters.add(now)
        cluster = now or (_cluster(orjson.loads(change.previous)) if change.previous is not None else "")
        place = self._place(cluster) if cluster else None
        # Where it stood before it moved on there is nothing of it.
        if place is not None and change.key == place.key:
            may_stand = self._may_stand(change.key, cluster)
            left = _left(change.key, obj, place.home) if obj is not None and not ends else None
            if left is not None or change.previous is not None or may_stand:
                files[format.status_path(place.directory, change.key)] = left
            if ends or may_stand or _ends(change.key, change.previous):  # it went, and came again at once
                ending = _ending(change.value) if ends and change.value is not None else None
                files[format.ending_path(place.directory, change.key)] = ending

    def _workspace_of(self, place: _Place, files: Files) -> None:
        record = self._store.get(place.key) if place.key is not None else None
        if record is not None and not _ends(record.key, record.value):
            files[format.status_path(place.directory, record.key)] = _residue(record.key, record.value, place.home)
        for key in place.leaves:
            found = self._store.get(key)
            if found is not None and _ends(key, found.value):
                files[format.ending_path(place.directory, key)] = _ending(found.value)

    def _object(self, key: Key, value: bytes | None, files: Files, previous: bytes | None = None) -> None:
        place = self._place(key.cluster)
        if place is None:
            return
        left = ending = None
        if value is not None and _ends(key, value):
            ending = _ending(value)
        elif value is not None and not residue.is_runtime(value):
            left = _residue(key, value, place.home)
        # What there was not had no file: most objects leave none, and many come at once.
        may_stand = self._may_stand(key, key.cluster)
        if left is not None or previous is not None or may_stand:
            files[format.status_path(place.directory, key)] = left
        if ending is not None or may_stand or _ends(key, previous):
            files[format.ending_path(place.directory, key)] = ending

    def _may_stand(self, key: Key, cluster: str) -> bool:
        """Whether an object of a workspace may have a file, though the log says that there was none before."""
        return cluster in self._moved or key in self._again

    def _place(self, cluster: str) -> _Place | None:
        """None where nothing is recorded of it: it is no workspace's (any more), or of one that no commit knows of."""
        try:
            return self._places[cluster]
        except KeyError:
            row = tree.declared_row(self._store, cluster)
            place = self._place_of(*tree.record_and_summary(row)) if row is not None else None
            _keep(self._places, cluster, place)
            return place

    def _place_of(self, record: WorkspaceRecord, said: SummaryText) -> _Place:
        parent = self._parent_of(record)
        own = Key(WORKSPACES, parent, "", paths.base(record.path)) if parent else None
        return _Place(
            record.path,
            format.directory_of(record.path, record.directory),
            IdentitySource(self._fleet, record.origin),
            own,
            record.past,
            bool(record.errors),
            record.origin in self._arriving,
            (own, Key(LOGICAL_CLUSTERS, record.cluster, "", "cluster")) if record.leaves and own is not None else (),
            said,
        )

    def _parent_of(self, record: WorkspaceRecord) -> str:
        """The logical cluster of the workspace that it is in; "" where there is none."""
        found = self._parents.get(record.parent)
        if found is None:
            parent = tree.workspace_at(self._store, record.parent) if record.parent else None
            found = parent.cluster if parent is not None else ""
            if found:
                _keep(self._parents, record.parent, found)
        return found


class _Place(NamedTuple):
    """Of a workspace: where it is, its directory on the branch, what the identities of its objects and of its Workspace
    follow from, and where that stands. `past`: the last commit that it went through. `came`: with a commit that is on
    its way. `leaves`: of one that a commit took away, the objects that stand for it. `said`: what its summary says."""

    path: str
    directory: str
    home: IdentitySource
    key: Key | None
    past: CommitRef
    held: bool
    came: bool
    leaves: tuple[Key, ...]
    said: SummaryText


def _is_own(file: str, folder: str) -> bool:
    """Whether a file tells of the workspace in a folder, and of none below that."""
    return file.startswith(f"{folder}/") and file[len(folder) + 1 :].partition("/")[0] in format.OURS


def _folder(placed: bytes) -> str:
    """Of what stands for a workspace."""
    return format.directory_of(tree.path_of(placed), tree.directory_of(placed))


def _keep(kept: dict[str, T], name: str, value: T) -> None:
    if len(kept) >= _PLACES:
        kept.clear()
    kept[name] = value


def _newest(changes: list[Change]) -> list[Change]:
    """One change for each object, from what there was first to what there is last: what an object was in between leaves
    no file. In a stretch where workspaces come, go or move, every change in its turn."""
    if any(change.key.resource in (Internal.WORKSPACE, WORKSPACES) for change in changes):
        return changes
    found: dict[Key, Change] = {}
    for change in changes:
        first = found.get(change.key, change)
        found[change.key] = change.since(first)
    return list(found.values())


def _cluster(obj: Object | None) -> str:
    """The logical cluster that a Workspace stands for."""
    spec = obj.get("spec") if obj is not None else None
    return str((spec or {}).get("cluster", ""))


def _residue(key: Key, value: bytes, home: IdentitySource) -> bytes | None:
    return None if residue.is_none(key, value) else _left(key, orjson.loads(value), home)


def _left(key: Key, obj: Object, home: IdentitySource) -> bytes | None:
    found = residue.of(key, obj, home)
    return format.dump(found) if found is not None else None


def _ends(key: Key, value: bytes | None) -> bool:
    return value is not None and residue.is_ending(key, value)


def _may_say(change: Change) -> bool:
    """Whether an object of a workspace that is recorded may have a file, or had one."""
    key = change.key
    return residue.may_leave(key) or _ends(key, change.value) or _ends(key, change.previous)


def _ending(value: bytes) -> bytes:
    return format.dump(residue.ending(orjson.loads(value)))


def _whole(value: bytes) -> bytes:
    return format.dump(orjson.loads(value))
