"""Which source a workspace's directory is, and what is remembered of each repository's files.

Called wherever manifests of a tree are needed. A workspace.yaml is its parent's, and no source's. It may have the
workspace's own content read from the tree of another commit (a pin, see pins), or from another repository (see
sourced): whoever asks for a source says whence.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from apiserver.model import commits, paths
from apiserver.model.commits import CommitRef
from apiserver.model.kinds import kind_of
from apiserver.model.origins import Origin
from apiserver.model.remembered import Remembered
from reconciler.layout.contenttree import ContentTree
from reconciler.layout.grafts import BORDER
from reconciler.layout.grouping import Grouping
from reconciler.layout.manifest import Manifest
from reconciler.layout.pin import Pin
from reconciler.layout.source import ManifestSource, Piece
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir, is_unknown
from reconciler.layout.yamldoc import locate
from reconciler.loading.files import Files
from reconciler.loading.nocontent import NoContent, is_nowhere, nowhere
from reconciler.loading.plainfiles import PlainFiles
from reconciler.loading.renderings import RenderedDirectory
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.repository.repositories import Repositories

Kind = Callable[[Files, WorkspaceTree, WorkspaceDir], ManifestSource | None]
"""Makes the source of a directory; None where the directory is not of this kind."""

KINDS: tuple[Kind, ...] = (PlainFiles,)
"""The first that takes a directory has it; the last takes all."""


_KEPT, _EACH = 32, 512 * 1024
"""Of how many of tenants' repositories files are remembered, and how many bytes of each."""
_FAULTS, _FAULT = 1024 * 1024, 512
"""Bytes in memory of what can be nobody's content, or can, and of one of these."""


class Content(NamedTuple):
    """Where a workspace's own content is read."""

    tree: WorkspaceTree
    directory: WorkspaceDir


class Sources:
    """Remembers files by repository. `renders`: for directories that a program makes manifests of. `repositories`:
    those that workspaces may have their content from; None: it is here of none. `directories_in`: by a repository's
    name, the directories there that are nobody's but the workspaces' that they are (Trees.directories_in)."""

    def __init__(self, renders: Renders = NOWHERE, repositories: Repositories | None = None) -> None:
        self.renders, self.repositories = renders, repositories
        self.theirs = renders
        """For what stands in other repositories."""
        self._files: dict[Repository, Files] = {}
        self._faults: Remembered[tuple[Path, str, str], str] = Remembered(_FAULTS)
        self._theirs: OrderedDict[Repository, tuple[Files, Grouping]] = OrderedDict()
        self.directories_in: Callable[[str], Mapping[str, str]] = lambda _: {}

    def of(self, tree: WorkspaceTree, directory: WorkspaceDir) -> ManifestSource:
        if is_nowhere(directory) or directory.theirs:  # of the fleet's own there is nothing where a tenant has it
            return NoContent()
        files = self._files.get(tree.repo) or self._first(tree)
        for kind in KINDS:
            found = kind(files, tree, directory)
            if found is not None:
                return found
        raise LookupError(directory.directory)

    def written(self, tree: WorkspaceTree, directory: WorkspaceDir) -> ManifestSource:
        """What somebody wrote, without what programs make of it: that waits for nothing."""
        source = self.of(tree, directory)
        return source.written() if isinstance(source, PlainFiles) else source

    def rendered(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Collection[RenderedDirectory]:
        """The directories of it that are rendered. Waits for none."""
        source = self.of(tree, directory)
        return source.rendered() if isinstance(source, PlainFiles) else ()

    def theirs_rendered(self, content: Content | None) -> Collection[RenderedDirectory]:
        """The same of content that another repository has; of any other none."""
        return self.rendered(*content) if content is not None and not content.tree.is_fleets else ()

    def too_late(self, some: Iterable[RenderedDirectory]) -> None:
        """These are not rendered now: those of their workspace took too long. Until `in_time` says otherwise."""
        for each in some:
            self._files[each.request.repo].renderings.late.add(each.request.digest)

    def in_time(self, some: Iterable[RenderedDirectory]) -> None:
        for each in some:
            self._files[each.request.repo].renderings.late.discard(each.request.digest)

    def pinned(self, tree: WorkspaceTree, directory: WorkspaceDir, commit: str) -> Content | None:
        """Where a commit has the content of a workspace that stands in `directory` of `tree`; None where it is no
        commit here, or the workspace is not there."""
        try:
            there = tree.beside(tree.repo.commit(commit).tree)
        except RepositoryUnreadable:
            return None
        found = there.find(directory.path, directory.directory)
        return Content(there, found) if found is not None else None

    def sourced(self, workspace: str, commit: CommitRef, path: str, border: str | None = None) -> Content | None:
        """Where a commit of another repository has the content of a workspace: in the directory `path` there. None
        where it is not here, or has no such directory. `border`: the path of the source, where that is around it."""
        if self.repositories is None or not commit:
            return None
        try:
            repo = self.repositories.of(commit)
            tree = ContentTree(repo, repo.commit(commit.id).tree, self._of_theirs(repo)[1], border)
            tree.claims |= self.directories_in(commit.repository)
            found = tree.content(workspace, path)
        except RepositoryUnreadable:
            return None
        return Content(tree, found) if found is not None else None

    def fault_of(self, found: Content) -> str:
        """Why what another repository has in a directory can be nobody's content, in words; "" if it can."""
        tree, place = found
        if not isinstance(tree, ContentTree):
            return ""
        key = tree.repo.path, tree.tree_id, place.directory
        known = self._faults.get(key)
        if known is None:  # for which all of it is walked
            known = tree.fault_of(place)
            self._faults.put(key, known, _FAULT + len(known))
        return known

    def has_workspaces(self, found: Content) -> bool:
        """Whether there are workspaces below such a directory."""
        return isinstance(found.tree, ContentTree) and next(found.tree.nested(found.directory), None) is not None

    def served(self, tree: WorkspaceTree, directory: WorkspaceDir, elsewhere: Mapping[str, str]) -> Content:
        """Where the content is read that a workspace is served with. `tree`: of the commit that it is served at;
        `elsewhere`: what its record says."""
        if "repository" in elsewhere:
            commit, path = commits.parse(elsewhere["commit"]), elsewhere.get("path", "")
            found = self.sourced(directory.path, commit, path, elsewhere.get(BORDER))
            return found or self.absent(tree, directory)
        found = self.pinned(tree, directory, elsewhere["commit"]) if elsewhere else None
        return found or Content(tree, directory)

    def absent(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Content:
        """Of a workspace of whose content nothing is here."""
        return Content(tree, nowhere(directory))

    def ever(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Iterator[ManifestSource]:
        """What a commit may have had served of a workspace, whether its pin was over or not."""
        yield self.of(tree, directory)
        pin = self.pin(tree, directory) if self.source(tree, directory) is None else None
        found = self.pinned(tree, directory, pin.commit) if pin is not None else None
        if found is not None:
            yield self.of(*found)

    def pin(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Pin | None:
        """What its workspace.yaml says under spec.serve."""
        if directory.manifest is None or directory.theirs:
            return None
        files = self._files.get(tree.repo) or self._first(tree)
        return files.pin_of_workspace(directory.manifest_path, directory.manifest.id)

    def source(self, tree: WorkspaceTree, directory: WorkspaceDir) -> SourceRef | None:
        """What its workspace.yaml says under spec.source."""
        if directory.manifest is None or directory.theirs:
            return None
        files = self._files.get(tree.repo) or self._first(tree)
        return files.source_of_workspace(directory.manifest_path, directory.manifest.id)

    def workspace(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Piece | None:
        """The workspace.yaml of a directory, as its parent gets it; None where there is none."""
        files, name = self._having(tree, directory), paths.base(directory.path)
        if directory.manifest is None or files is None:
            return None
        return files.read_workspace(directory.manifest_path, directory.manifest.id, name)

    def stated_uid(self, tree: WorkspaceTree, directory: WorkspaceDir) -> str:
        """The metadata.uid of its workspace.yaml, "" where none is stated, or where that is not believed."""
        return self.uid_there(tree, directory) if not directory.theirs else ""

    def uid_there(self, tree: WorkspaceTree, directory: WorkspaceDir) -> str:
        """The same, believed or not."""
        files = self._having(tree, directory)
        if directory.manifest is None or files is None:
            return ""
        return files.uid_of_workspace(directory.manifest_path, directory.manifest.id)

    def line_in_workspace(self, tree: WorkspaceTree, directory: WorkspaceDir, field: str) -> int:
        """Where a field of its workspace.yaml stands, 0 where there is none."""
        entry, files = directory.manifest, self._having(tree, directory)
        if entry is None or files is None:
            return 0
        return locate(files.text(entry.id), 0, field, directory.manifest_path)

    def _having(self, tree: WorkspaceTree, directory: WorkspaceDir) -> Files | None:
        """What reads the workspace.yaml of a directory; None where that is in a tenant's repository and not here."""
        if not directory.theirs:
            return self._files.get(tree.repo) or self._first(tree)
        graft = tree.graft_of(directory.directory)
        there = graft.tree if graft is not None and not is_unknown(directory) else None
        return self._of_theirs(there.repo)[0] if there is not None else None

    def _first(self, tree: WorkspaceTree) -> Files:
        """What reads a repository that is none of the fleet's, or of which nothing was read yet."""
        if isinstance(tree, ContentTree):
            return self._of_theirs(tree.repo)[0]
        return self._files.setdefault(tree.repo, Files(tree.repo, renders=self.renders))

    def _of_theirs(self, repo: Repository) -> tuple[Files, Grouping]:
        """What is remembered of a tenant's repository."""
        found = self._theirs.get(repo)
        if found is None:
            found = Files(repo, _EACH, self.theirs), Grouping(repo, _EACH)
        self._theirs[repo] = found
        if len(self._theirs) > _KEPT:
            self._theirs.popitem(last=False)
        return found


def generated(objects: Iterable[dict[str, Any]], origin: Origin) -> list[Manifest]:
    """What no file says, in the form of manifests."""
    out = []
    for value in objects:
        metadata = value["metadata"]
        out.append(Manifest(origin, 0, 0, kind_of(value), metadata.get("namespace") or "", metadata["name"], value))
    return out
