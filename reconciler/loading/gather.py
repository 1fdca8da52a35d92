"""The manifests of a workspace that a judgement needs: those of changed files, or all of them.

All are needed when something changed that other objects depend on: kinds (CRDs, bindings), a namespace that is gone,
the workspace itself. Otherwise the cost follows the difference of the two trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from apiserver.model import paths
from reconciler.layout.compare import changes
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.layout.tree import WorkspaceDir, WorkspaceTree, problem
from reconciler.loading.case import Case
from reconciler.loading.render import Accepted
from reconciler.loading.sources import Sources, shipped
from reconciler.plan import computed, system
from reconciler.repository.difference import FileChange
from reconciler.repository.objects import Entry

_EVERYWHERE = shipped([computed.default_namespace()])
"""What every workspace has."""
_FOUNDATIONS = frozenset({"CustomResourceDefinition", "APIBinding", "APIExport", "APIResourceSchema"})


@dataclass(slots=True)
class Gathered:
    """`new`: what the commit says, `old`: what was said before, of the files looked at (`all` of them, or `changed`).

    `workspace`: the manifest of workspace.yaml, if there is one; `old_workspace`: that of before. `accepted`: see
    ratcheting.
    """

    complete: bool
    new: list[Manifest] = field(default_factory=list)
    old: list[Manifest] = field(default_factory=list)
    problems: list[LayoutError] = field(default_factory=list)
    blobs: dict[str, str] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    workspace: Manifest | None = None
    old_workspace: Manifest | None = None
    accepted: Accepted | None = None


class Gatherer:
    """Reads through `sources`; `base` gives the tree at which a workspace is served now."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def gather(self, case: Case, base: WorkspaceTree | None) -> Gathered:
        before = base.find(case.path, case.record.directory) if base is not None and case.record is not None else None
        out = Gathered(complete=self._needs_all(case, before))
        self._read_workspace_manifest(case, out)
        if before is not None and before.manifest is not None:
            found = self._sources.read_workspace(before.manifest_path, before.manifest.id, paths.base(case.path))
            out.old_workspace = found.manifests[0] if found.manifests else None
        for change in self._changes(case, base, before):
            out.changed.add(change.path)
            if change.old is not None:
                out.old.extend(self._manifests(change.path, change.old, None))
            if change.new is not None:
                out.new.extend(self._manifests(change.path, change.new, out))
        out.complete = out.complete or _concerns_others(out)
        if out.complete:
            self._read_rest(case, before is not None, out)
        return out

    def _needs_all(self, case: Case, before: WorkspaceDir | None) -> bool:
        record, now = case.record, case.directory
        if record is None or not record.served or case.forced or case.recorded is not None:
            return True
        if now is None or before is None:
            return True
        return _id(now.manifest) != _id(before.manifest)

    def _read_workspace_manifest(self, case: Case, out: Gathered) -> None:
        directory = case.directory
        if directory is None or directory.manifest is None:
            return
        path = directory.manifest_path
        out.blobs[path] = directory.manifest.id
        found = self._sources.read_workspace(path, directory.manifest.id, paths.base(case.path))
        out.problems.extend(found.problems)
        out.workspace = found.manifests[0] if found.manifests else None

    def _changes(self, case: Case, base: WorkspaceTree | None, before: WorkspaceDir | None) -> list[FileChange]:
        if base is None or before is None or case.directory is None:
            return []
        return list(changes(case.tree, case.directory, base, before))

    def _read_rest(self, case: Case, had_base: bool, out: Gathered) -> None:
        """Everything but the changed files, which are read already."""
        out.new[:0] = [*shipped(system.manifests(case.path)), *_EVERYWHERE]
        if case.directory is not None:
            for path, entry in case.tree.files(case.directory):
                if path in out.changed:
                    continue
                found = self._manifests(path, entry, out)
                out.new.extend(found)
                if had_base:
                    out.old.extend(found)
        out.new.extend(case.secrets)

    def _manifests(self, path: str, entry: Entry, out: Gathered | None) -> tuple[Manifest, ...]:
        refused = problem(path, entry)
        if refused is not None:
            if out is not None:
                out.problems.append(refused)
            return ()
        parsed = self._sources.read(path, entry.id)
        if out is not None:
            out.problems.extend(parsed.problems)
            out.blobs[path] = entry.id
        return parsed.manifests


def _concerns_others(found: Gathered) -> bool:
    """Whether manifests in files that did not change may mean something else, or nothing, now. What stands in them is
    in no namespace that appears now, since it was good without."""
    gone = _namespaces(found.old) - _namespaces(found.new)
    return bool(gone) or any(m.gvk.kind in _FOUNDATIONS for m in (*found.new, *found.old))


def _namespaces(manifests: list[Manifest]) -> set[str]:
    return {m.name for m in manifests if m.gvk.kind == "Namespace" and not m.gvk.group}


def _id(entry: Entry | None) -> str:
    return entry.id if entry is not None else ""
