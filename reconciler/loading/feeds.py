"""What workspaces have rendered, as it was judged last: with which programs, and of what else than the directories that
are rendered. A row for each such workspace.

Called by steps (whom a commit concerns though none of his manifests differs), by the phases that publish and hold,
which write the row, and by who looks again: after a start, since programs may be others than those that the store was
made with, and where something could not be rendered for the moment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import orjson

from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.paging import rows
from apiserver.storage.protocol import DeleteRow, PutRow, ReadView, RowOp, View
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.inputs import is_in, shares_differ, states, states_there
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading.renderings import RenderedDirectory
from reconciler.loading.sources import Content


class Fed(NamedTuple):
    """Of one workspace. `by`: see Renders.fingerprint; `elsewhere`: paths of the fleet's repository that its
    kustomizations name (layout/inputs), of a workspace that is held of what is served, too; `late`: something could not
    be rendered for the moment. `there`: the same as `elsewhere` of one that stands in the source of another, in that
    repository, as far as its path goes."""

    by: str
    elsewhere: tuple[str, ...] = ()
    late: bool = False
    there: tuple[str, ...] = ()

    def also(self, other: Fed | None) -> Fed:
        """Of one that is held: it is served with what the other says."""
        if other is None:
            return self
        elsewhere, there = {*self.elsewhere, *other.elsewhere}, {*self.there, *other.there}
        return Fed(other.by, tuple(sorted(elsewhere)), self.late, tuple(sorted(there)))


def fed_by(by: str, content: Content, found: Iterable[RenderedDirectory], *, late: bool = False) -> Fed | None:
    """Of a workspace that has these directories where its content is read; None where there are none. What a source
    holds for the workspace that has it is met by whoever compares two commits of that, wherever it stands there."""
    found, (tree, place) = [*found], content
    named, border = {path for each in found for path in each.inputs.elsewhere}, tree.border(place)
    if not found:
        return None
    if tree.is_fleets:
        return Fed(by, tuple(sorted(named)), late)
    there = (path for path in named if border != place.directory and is_in(path, border))
    return Fed(by, (), late, tuple(sorted(there)))


def noted(store: ReadView, cluster: str) -> Fed | None:
    """What the row says."""
    row = store.get_row(Table.RENDERINGS, cluster)
    return _read(row) if row is not None else None


def note(cluster: str, found: Fed | None) -> RowOp:
    if found is None:
        return DeleteRow(Table.RENDERINGS, cluster)
    return PutRow(Table.RENDERINGS, cluster, orjson.dumps([*found]))


def _read(row: bytes) -> Fed:
    by, elsewhere, late, *there = orjson.loads(row)
    return Fed(by, tuple(elsewhere), late, *map(tuple, there))


def touched(store: View, before: Iterable[WorkspaceTree], here: WorkspaceTree, stirred: Collection[str]) -> set[str]:
    """The workspaces of which something that they have rendered is made of what differs. `stirred`: see
    compare.Touched."""
    out = set[str]()
    for was in before if any_noted(store) else ():
        if was.tree_id == here.tree_id:
            continue
        if shares_differ(was, here):
            out.update(path for path, found in _all(store) if _differs(was, here, found.elsewhere, shared=True))
        out.update(path for path, found in _some(store, stirred) if _differs(was, here, found.elsewhere, shared=False))
    return out


def differs_there(store: ReadView, cluster: str, was: ContentTree, here: ContentTree, border: str) -> bool:
    """Whether something differs between two commits of a source that a workspace in it has rendered, and that is not
    its own."""
    found = noted(store, cluster)
    paths = found.there if found is not None else ()
    return states_there(was, border, paths) != states_there(here, border, paths)


def any_noted(store: View) -> bool:
    """Whether anything is rendered of any workspace."""
    return bool(store.scan_rows(Table.RENDERINGS, limit=1))


def rendering(store: View, paths: Collection[str]) -> set[str]:
    """Those of some workspaces that have something rendered."""
    return {path for path, _ in _some(store, paths)}


def others_by(store: View, by: str) -> set[str]:
    """The workspaces that were made with other programs."""
    return {path for path, found in _all(store) if found.by != by}


def late(store: View) -> set[str]:
    """Those of which something could not be rendered."""
    return {path for path, found in _all(store) if found.late}


def _differs(was: WorkspaceTree, here: WorkspaceTree, paths: Iterable[str], *, shared: bool) -> bool:
    some = [path for path in paths if path.startswith(f"{here.root}/") != shared]
    return states(was, some) != states(here, some)


def _all(store: View) -> Iterator[tuple[str, Fed]]:
    for row in rows(store, Table.RENDERINGS):
        record = tree.workspace_of(store, row.key)
        if record is not None:
            yield record.path, _read(row.value)


def _some(store: View, paths: Collection[str]) -> Iterator[tuple[str, Fed]]:
    for path in paths:
        record = tree.workspace_at(store, path)
        found = noted(store, record.cluster) if record is not None else None
        if found is not None:
            yield path, found
