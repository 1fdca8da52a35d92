"""The manifests of a workspace that a judgement needs: those of changed files, or all of them. See phases.gathering.

All are needed when something changed that other objects depend on: kinds (CRDs, bindings), a namespace that is gone,
the workspace itself. Otherwise the cost follows the difference of the two trees.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from apiserver.model.origins import COMPUTED
from apiserver.model.paths import ROOT
from apiserver.registry.builtins.catalogue import kinds_having
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import ManifestSource, Piece
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.case import Case, was_served
from reconciler.loading.render import Accepted
from reconciler.loading.saidbefore import RenderedBefore
from reconciler.loading.shipped import is_root_open, shipped
from reconciler.loading.sources import Content, Sources, generated
from reconciler.loading.unsealing import Unsealing
from reconciler.plan import computed
from reconciler.repository.objects import TreeEntry

[EVERYWHERE] = generated([computed.default_namespace()], COMPUTED)
"""What every workspace has."""
_FOUNDATIONS = kinds_having(lambda kind: kind.defines_kinds)


@dataclass(slots=True)
class Gathered:
    """`new`: what the commit says, `old`: what was said before, of the files looked at (`all` of them, or `changed`).

    `changed`: the names of the pieces that differ, out of all of `source`, which is None where there is no directory.
    `workspace`: the manifest of workspace.yaml, if there is one; `old_workspace`: that of before, `shown_workspace`: of
    one that never was served that by which it was judged before. `accepted`: see ratcheting. `adopts`: the UID that its
    Workspace gets, as stated (phases/identified); "": whatever follows. `locked`: what is encrypted for others, in
    words; `damaged`, `pardoned`: see Unsealing. `late`: something could not be rendered for the moment; `renders`:
    something is rendered of what was read.
    """

    complete: bool
    new: list[Manifest] = field(default_factory=list)
    old: list[Manifest] = field(default_factory=list)
    problems: list[LayoutError] = field(default_factory=list)
    source: ManifestSource | None = None
    changed: set[str] = field(default_factory=set)
    workspace: Manifest | None = None
    old_workspace: Manifest | None = None
    shown_workspace: Manifest | None = None
    accepted: Accepted | None = None
    adopts: str = ""
    locked: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    pardoned: bool = False
    late: bool = False
    renders: bool = False

    def take(self, piece: Piece) -> tuple[Manifest, ...]:
        """A piece of what the commit says."""
        self.new.extend(piece.manifests)
        self.problems.extend(piece.problems)
        self.late = self.late or not piece.lasting
        self.renders = self.renders or bool(piece.generator)
        return piece.manifests

    def line(self, manifest: Manifest, field: str) -> int:
        """Where a field of a manifest stands, "" for all of it."""
        if self.source is None or not manifest.origin.in_git:
            return manifest.line
        return self.source.line(manifest, field)


class Gatherer:
    """Reads through `sources`; `base` gives the tree at which a workspace is served now. `said`: what of that counts
    where a program made it; `damaged`: see Summary."""

    def __init__(self, sources: Sources, said: RenderedBefore | None = None, damaged: Collection[str] = ()) -> None:
        self._sources, self._said, self._damaged = sources, said, damaged

    def gather(self, case: Case, base: WorkspaceTree | None, *, whole: bool) -> Gathered:
        """`whole`: all of them, whatever changed."""
        before = base.find(case.path, case.record.directory) if base is not None and case.record is not None else None
        turned = base is not None and case.path == ROOT and is_root_open(base) != is_root_open(case.tree)
        out = Gathered(complete=whole or turned or self._needs_all(case, before))
        if case.directory is not None and case.content is not None:
            out.source = self._sources.of(*case.content)
            said = self._sources.workspace(case.tree, case.directory)
            if said is not None:
                out.workspace = next(iter(said.manifests), None)
                out.problems.extend(said.problems)
        if base is not None and before is not None and case.record is not None:
            was = self._sources.workspace(base, before)
            out.old_workspace = next(iter(was.manifests), None) if was is not None else None
            served = self._sources.of(*self._sources.served(base, before, case.record.elsewhere))
            for change in out.source.changes(served) if out.source is not None else ():
                out.changed.add(change.name)
                if change.old is not None:
                    out.old.extend(self._before(change.old))
                if change.new is not None:
                    out.take(change.new)
        out.complete = out.complete or _concerns_others(out)
        if out.complete:
            if base is not None and turned:
                out.old.extend(shipped(base, case.path))
            self._read_rest(case, before is not None, out)
        _unseal(case, out, self._damaged)
        return out

    def is_same(self, case: Case, base: WorkspaceTree | None) -> bool:
        """Whether a workspace's files say what it is served with, in the same place. Reads no manifest."""
        return self._is_same(case, base, case.content)

    def is_same_here(self, case: Case, base: WorkspaceTree | None) -> bool:
        """The same of what the fleet's commit says: of content that comes from another repository it says whence."""
        place = case.directory if case.sourced.there else None
        return self._is_same(case, base, Content(case.tree, place) if place is not None else case.content)

    def _is_same(self, case: Case, base: WorkspaceTree | None, content: Content | None) -> bool:
        record, now = case.record, case.directory
        before = base.find(case.path, record.directory) if base is not None and record is not None else None
        if base is None or now is None or before is None or now.directory != before.directory:
            return False
        if record is None or content is None:
            return False
        there = self._sources.of(*content)
        elsewhere = record.elsewhere if content is case.content else {}
        was = self._sources.of(*self._sources.served(base, before, elsewhere))
        return _id(now.manifest) == _id(before.manifest) and next(iter(there.changes(was)), None) is None

    def _needs_all(self, case: Case, before: WorkspaceDir | None) -> bool:
        record, now = case.record, case.directory
        if record is None or not record.served:
            return True
        if now is None or before is None:
            return True
        return _id(now.manifest) != _id(before.manifest)

    def _read_rest(self, case: Case, had_base: bool, out: Gathered) -> None:
        """Everything but the changed pieces, which are read already."""
        out.new[:0] = [*shipped(case.tree, case.path), EVERYWHERE]
        for piece in out.source.pieces(besides=out.changed) if out.source is not None else ():
            out.take(piece)
            if had_base:
                out.old.extend(self._before(piece))
        out.new.extend(case.secrets)

    def _before(self, piece: Piece) -> Sequence[Manifest]:
        return self._said.of(piece) if self._said is not None else piece.manifests


def _unseal(case: Case, out: Gathered, damaged: Collection[str]) -> None:
    """Opens what is encrypted, as far as there are keys for it. What was said before is nobody's fault by now."""
    unsealing = Unsealing(case.keys, damaged, lenient=was_served(case.recorded))
    out.new = [unsealing.opened(manifest) for manifest in out.new]
    out.problems.extend(unsealing.problems)
    out.locked, out.pardoned = unsealing.locked(case.path), unsealing.pardoned
    out.damaged = sorted(unsealing.damaged)
    out.old = [unsealing.opened(manifest) for manifest in out.old]


def _concerns_others(found: Gathered) -> bool:
    """Whether manifests in files that did not change may mean something else, or nothing, now. What stands in them is
    in no namespace that appears now, since it was good without."""
    gone = _namespaces(found.old) - _namespaces(found.new)
    return bool(gone) or any(m.gvk.kind in _FOUNDATIONS for m in (*found.new, *found.old))


def _namespaces(manifests: list[Manifest]) -> set[str]:
    return {m.name for m in manifests if m.gvk.kind == "Namespace" and not m.gvk.group}


def _id(entry: TreeEntry | None) -> str:
    return entry.id if entry is not None else ""
