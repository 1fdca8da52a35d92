"""Workspaces that appear side by side and are alike: what one of them comes to is stamped for the next.

Called by steps, for those of a commit that have nothing but the same workspace.yaml and stand in the same workspace.
They differ in their path, their directory and what follows from these. How to stamp them is taken from a verdict on
one, and counts once it gave the very same as the verdict on a second one. Whoever does not fit, by its name for
example, has its turn like everybody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from apiserver.model import paths
from apiserver.model.identity import logical_cluster_names, uids_in, uids_named
from apiserver.model.keys import Internal, Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, WORKSPACES
from apiserver.model.tables import Table
from apiserver.registry import workspacerow
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.workspacerow import AroundPlace
from apiserver.storage.protocol import AlikeObjects, Put, PutAlike, PutRow
from apiserver.storage.templates import Filled, Kind, kinds_of, text_bytes, texts_bytes
from reconciler.layout.tree import LONGEST_PATH
from reconciler.layout.whereabouts import Bare
from reconciler.loading.case import Case, Coming, Verdict
from reconciler.loading.cases import Cases
from reconciler.loading.changeset import each_of
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
_NAMESPACE = Key("namespaces", "", "", "default")
_CLUSTER = Key(LOGICAL_CLUSTERS, "", "", "cluster")
_WORKSPACE = Key(WORKSPACES, "", "", "")
_UID, _TIME = 16, 5
"""Bytes."""
_LONGEST = 1000
"""Bytes of a file's path: a longer one may not be put into a template."""


class Siblings:
    """Of one step. `fleet`: its id."""

    def __init__(self, fleet: str, target: StepTarget, world: World, cases: Cases) -> None:
        self._fleet, self._target, self._world, self._cases = fleet, target, world, cases
        self._stamps: dict[tuple[str, bytes], _Stamp] = {}
        self.learned = 0
        """How often it was found out how to stamp some."""

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
            if not known.sure and next(each_of(known.stamped([(case.path, bare)]))) == verdict.changes:
                known.sure = True
                self.learned += 1
            if known.sure:
                return
        stamp = _Stamp.of(self._fleet, case, verdict, parent)
        if stamp is not None:
            self._stamps[at] = stamp

    def stamped(self, some: Iterable[str], waits: Callable[[str], bool]) -> Iterator[PutAlike]:
        """What those of some workspaces come to that were not judged in this step and that are like others; the rest
        have verdicts that tell. `waits`: whether one, or any that it stands in, waits to be judged."""
        by_stamp: dict[tuple[str, bytes], list[tuple[str, Bare]]] = {}
        bare = self._cases.places.bare
        for path in some:
            found = bare(path)
            if found is not None:
                by_stamp.setdefault((path.rpartition(":")[0], found.common), []).append((path, found))
        for at, those in by_stamp.items():
            stamp = self._stamps.get(at)
            if stamp is None or not stamp.sure or waits(at[0]) or stamp.parent is not self._world.record(at[0]):
                continue
            usual = [each for each in those if self._is_new(each[0])]
            if not _are_usual(usual):
                usual = [each for each in usual if _are_usual([each])]
            if usual:
                yield stamp.stamped(usual)

    def _is_new(self, path: str) -> bool:
        """Whether nothing is known of it that is not known of its siblings."""
        world, target = self._world, self._target
        if world.is_judged(path) or world.standing(path) is not None:
            return False
        return path not in target.tree.duplicates and not target.secrets(path)


class _Stamp:
    """Of those that are alike. `sure`: it gave what a verdict gave."""

    def __init__(
        self, fleet: str, case: Case, parent: WorkspaceRecord, objects: list[Filled], row: AroundPlace
    ) -> None:
        assert case.directory is not None
        assert case.directory.manifest is not None
        self.sure = False
        self.parent = parent
        self._fleet, self._origin = fleet, case.origin
        self._file = case.directory.manifest.name
        self._above = text_bytes(parent.cluster)
        self._templates = [each.template for each in objects]
        self._time = objects[0].parameters[_UID : _UID + _TIME]
        self._id = bytes.fromhex(case.origin.id)
        self._row = row
        self._shortening = workspacerow.Shortening(parent.path)

    @staticmethod
    def of(fleet: str, case: Case, verdict: Verdict, parent: WorkspaceRecord) -> _Stamp | None:
        """None where no other can be made of it."""
        puts = [each.op for each in verdict.changes.objects]
        forms = [op.like for op in puts if isinstance(op, Put) and op.like is not None and not op.whole]
        if not verdict.alone or len(forms) != len(puts) or tuple(kinds_of(each.template) for each in forms) != _SHAPE:
            return None
        [row] = (workspacerow.around_place(op.value) for op in verdict.changes.also if isinstance(op, PutRow))
        return _Stamp(fleet, case, parent, forms, row) if row is not None else None

    def stamped(self, some: Sequence[tuple[str, Bare]]) -> PutAlike:
        """Of workspaces, by their paths and where they stand. It is made column by column: what is done for each of
        them is most of what it costs."""
        fleet, origin, above = self._fleet, self._origin, self.parent.cluster
        places, names = [path for path, _ in some], [path.rpartition(":")[2] for path, _ in some]
        directories = [bare.directory for _, bare in some]
        clusters = logical_cluster_names(fleet, places, origin)
        shorts = list(map(self._shortening.of, names, directories))
        files = texts_bytes([joined(directory, self._file) for directory in directories])
        said = zip(texts_bytes(places), texts_bytes(names), strict=True)
        own = zip(texts_bytes(clusters), files, strict=True)
        namespaces = [uid + self._time for uid in uids_in(fleet, _NAMESPACE, origin, clusters)]
        of_cluster = zip(uids_in(fleet, _CLUSTER, origin, clusters), said, strict=True)
        of_workspace = zip(uids_named(fleet, _WORKSPACE._replace(cluster=above), origin, names), own, strict=True)
        values = (
            namespaces,
            [uid + self._time + path + name + self._above for uid, (path, name) in of_cluster],
            [uid + self._time + cluster + self._id + file for uid, (cluster, file) in of_workspace],
        )
        placed = [f"{path}\n{short}".encode() for path, short in zip(places, shorts, strict=True)]
        return PutAlike(
            clusters,
            names,
            (
                *map(self._column, (_NAMESPACE, _CLUSTER, _WORKSPACE), self._templates, values),
                AlikeObjects(Internal.WORKSPACE, None, "", "", b"", placed),
            ),
            Table.WORKSPACES,
            list(zip(places, map(self._row.of, clusters, shorts), strict=True)),
        )

    def _column(self, at: Key, template: bytes, values: list[bytes]) -> AlikeObjects:
        is_above = at is _WORKSPACE
        cluster, name = (self.parent.cluster, None) if is_above else (None, at.name)
        return AlikeObjects(at.resource, cluster, at.namespace, name, template, values)


def _are_usual(some: Sequence[tuple[str, Bare]]) -> bool:
    """Whether nothing can be wrong with the place of any of them, or ship for it, that is not so with its siblings'."""
    places, directories = [path for path, _ in some], [bare.directory for _, bare in some]
    together = "".join(directories)
    return (
        together.isascii()
        and together.isprintable()
        and max(map(len, directories), default=0) < _LONGEST
        and max(map(len, places), default=0) <= LONGEST_PATH
        and paths.are_names(map(paths.base, places))
        and not {*places}.intersection(system.shipped_workspaces())
    )
