"""Workspaces that appear side by side and are alike: what one of them comes to is stamped for the next.

Called by steps, for those of a commit that have nothing but the same workspace.yaml and stand in the same workspace.
They differ in their path, their directory and what follows from these. How to stamp them is taken from a verdict on
one, and counts once it gave the very same as the verdict on a second one. Whoever does not fit, by its name for
example, has its turn like everybody else.
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.model import paths
from apiserver.model.identity import logical_cluster_name, uid_bytes
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.model.tables import Table
from apiserver.registry import workspacerow
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.workspacerow import AroundPlace
from apiserver.storage.protocol import NEVER, Op, Put, PutRow
from apiserver.storage.templates import Filled, Kind, kinds_of, text_bytes
from reconciler.layout.tree import LONGEST_PATH
from reconciler.layout.whereabouts import Bare
from reconciler.loading.case import Case, Coming, Verdict
from reconciler.loading.cases import Cases
from reconciler.loading.changeset import ChangeKind, ObjectChange, WorkspaceChanges
from reconciler.loading.step import StepTarget
from reconciler.loading.world import World
from reconciler.plan import system
from reconciler.repository.folder import joined

_SHAPE = (
    (Kind.UID, Kind.TIME),
    (Kind.UID, Kind.TIME, Kind.TEXT, Kind.TEXT, Kind.TEXT),
    (Kind.UID, Kind.TIME, Kind.TEXT, Kind.COMMIT, Kind.TEXT),
)
"""What is a workspace's own of its namespace, its LogicalCluster and its Workspace (see appearing)."""
_UID = 16
"""Bytes."""
_tuple = tuple.__new__
_LONGEST = 1000
"""Bytes of a file's path: a longer one may not be put into a template."""


class Siblings:
    """Of one step. `fleet`: its id."""

    def __init__(self, fleet: str, target: StepTarget, world: World, cases: Cases) -> None:
        self._fleet, self._target, self._world, self._cases = fleet, target, world, cases
        self._stamps: dict[tuple[str, bytes], _Stamp] = {}

    @property
    def are_possible(self) -> bool:
        """Whether what a workspace that appears comes to follows from its place, its files, its parent and its type."""
        target, cases, admission = self._target, self._cases, self._target.admission
        returns = target.recorded is not None or target.lost is not None
        barred = not admission.is_plain or bool(admission.types) or bool(cases.trespasses)
        return not (returns or barred or target.asked or cases.waited or target.moment.look or target.tree.grafts)

    def forget(self) -> None:
        """What others have that they follow from may be another by now."""
        self._stamps.clear()

    def learn(self, case: Case, verdict: Verdict) -> None:
        """From a verdict on one that is `alone`."""
        bare, parent = self._cases.places.bare(case.path), self._world.record(verdict.record.parent)
        if bare is None or parent is None or case.coming is not Coming.NEW:
            return
        at = parent.path, bare.common
        known = self._stamps.get(at)
        if known is not None and known.parent is parent:
            known.sure = known.sure or known.changes(case.path, bare) == verdict.changes
            if known.sure:
                return
        stamp = _Stamp.of(self._fleet, case, verdict, parent)
        if stamp is not None:
            self._stamps[at] = stamp

    def changes(self, path: str) -> WorkspaceChanges | None:
        """What a workspace comes to that was not judged in this step, nor any that it stands in waits to be; None where
        its verdict has to tell."""
        bare, above, world = self._cases.places.bare(path), paths.parent(path), self._world
        parent = world.record(above) if bare is not None and above is not None else None
        stamp = self._stamps.get((parent.path, bare.common)) if parent is not None and bare is not None else None
        if stamp is None or bare is None or not stamp.sure or stamp.parent is not parent:
            return None
        if world.is_judged(path) or world.standing(path) is not None or self._target.secrets(path):
            return None
        is_usual = path not in self._target.tree.duplicates and _is_usual(path, bare.directory)
        return stamp.changes(path, bare) if is_usual else None


class _Stamp:
    """Of those that are alike. `sure`: it gave what a verdict gave."""

    def __init__(
        self, fleet: str, case: Case, parent: WorkspaceRecord, objects: list[Filled], row: AroundPlace
    ) -> None:
        assert case.directory is not None
        assert case.directory.manifest is not None
        self.sure = False
        self.parent = parent
        self._fleet, self._origin, self._commit = fleet, case.origin, str(case.origin)
        self._file = case.directory.manifest.name
        self._above = text_bytes(parent.cluster)
        self._namespace, self._cluster, self._workspace = (each.template for each in objects)
        self._time = objects[0].parameters[_UID:]
        self._id = bytes.fromhex(case.origin.id)
        self._row = row

    @staticmethod
    def of(fleet: str, case: Case, verdict: Verdict, parent: WorkspaceRecord) -> _Stamp | None:
        """None where no other can be made of it."""
        puts = [each.op for each in verdict.changes.objects]
        forms = [op.like for op in puts if isinstance(op, Put) and op.like is not None and not op.whole]
        if not verdict.alone or len(forms) != len(puts) or tuple(kinds_of(each.template) for each in forms) != _SHAPE:
            return None
        [row] = (workspacerow.around_place(op.value) for op in verdict.changes.also if isinstance(op, PutRow))
        return _Stamp(fleet, case, parent, forms, row) if row is not None else None

    def changes(self, path: str, bare: Bare) -> WorkspaceChanges:
        name, fleet = paths.base(path), self._fleet
        cluster = logical_cluster_name(fleet, path, self._origin)
        file, own = text_bytes(joined(bare.directory, self._file)), text_bytes(cluster)
        short = workspacerow.shortened(path, bare.directory)
        said = text_bytes(path), text_bytes(name), self._above
        made = [
            self._made(("namespaces", cluster, "", "default"), self._namespace, ()),
            self._made((LOGICAL_CLUSTERS, cluster, "", "cluster"), self._cluster, said),
            self._made((WORKSPACES, self.parent.cluster, "", name), self._workspace, (own, self._id, file)),
        ]
        also: list[Op] = [
            Put(Key(Internal.WORKSPACE, cluster, "", ""), f"{path}\n{short}".encode()),
            PutRow(Table.WORKSPACES, path, self._row.of(cluster, short)),
        ]
        return WorkspaceChanges(path, ChangeKind.CREATED, made, also=also, new=True)

    def _made(self, at: tuple[str, str, str, str], template: bytes, own: Iterable[bytes]) -> ObjectChange:
        key = _tuple(Key, at)
        parameters = b"".join((uid_bytes(self._fleet, key, self._commit), self._time, *own))
        put = _tuple(Put, (key, b"", NEVER, b"", _tuple(Filled, (template, parameters))))
        return _tuple(ObjectChange, (ChangeKind.CREATED, put, ()))


def _is_usual(path: str, directory: str) -> bool:
    """Whether nothing can be wrong with a workspace's place, or ship for it, that is not so with its sibling's."""
    fits = paths.is_name(paths.base(path)) and len(path) <= LONGEST_PATH and path not in system.shipped_workspaces()
    return fits and len(directory) < _LONGEST and directory.isprintable() and directory.isascii()
