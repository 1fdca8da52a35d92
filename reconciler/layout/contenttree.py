"""A tree of another repository, of which a directory is the content of one workspace of the fleet (spec.source).

Used by loading/sources. Such a tree has no workspaces root. What says that it is a workspace belongs to itself: where
that stands among the fleet's, grafts say.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.layout.grouping import Grouping
from reconciler.layout.level import Level
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.weight import weigh
from reconciler.layout.workspacedir import WorkspaceDir, workspace_dir
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository, TreeEntry

MOST = 200_000
"""Files and directories that the content of one workspace has at most."""
MOST_WORKSPACES = 1000
"""Workspaces that one source has below its path at most."""
MOST_RENDERED = 1000
"""Directories that are rendered, of all workspaces of one source."""


class ContentTree(WorkspaceTree):
    """Made of a commit's whole tree, so that paths are those of the repository. `path`: the directory that the source
    names, of which others stand below; None: that of whichever workspace is looked at."""

    is_fleets = False

    def __init__(
        self, repo: Repository, tree_id: str, grouping: Grouping | None = None, path: str | None = None
    ) -> None:
        super().__init__(repo, tree_id, grouping=grouping)
        self._path = path

    def border(self, workspace: WorkspaceDir) -> str:
        """What a source holds may be made of all that its path does."""
        return workspace.directory if self._path is None else self._path

    def boundary(self, level: Level, directory: str, owner: str) -> str | None:
        """What has a workspace.yaml is left out, and what is another workspace's still since it had one (`claims`)."""
        return f"{owner}:{directory}" if level.markers or directory in self.claims else None

    def content(self, workspace: str, directory: str) -> WorkspaceDir | None:
        """The directory as that of a workspace of the fleet; None where it is none."""
        tree = self.repo.tree_at(self.tree_id, directory)
        return WorkspaceDir(workspace, directory, None, tree) if tree is not None else None

    def fault_of(self, place: WorkspaceDir) -> str:
        """Why a directory that is there can be nobody's content, in words; "" if it can. Walks it once."""
        where = f"{place.directory}/" if place.directory else "all of it"
        if weigh(self.repo, [place.tree], MOST) > MOST:
            return f"{where} holds more than {MOST:,} files and directories"
        try:
            nested, rendered = 0, 0
            for directory, level, is_rendered in self._below_too(place):
                nested += bool(level.markers) and directory != place.directory
                rendered += is_rendered
            if nested > MOST_WORKSPACES:
                return f"{where} holds more than {MOST_WORKSPACES:,} workspaces"
            if rendered > MOST_RENDERED:
                return f"{where} holds more than {MOST_RENDERED:,} directories that are rendered"
            if not nested and next(self.files(place), None) is None:
                return f"{where} holds no manifest, and nothing is deleted for that"
        except ValueError as error:  # rules of what is ignored that nobody can read
            return f"{where} cannot be read: {error}"
        return ""

    def nested(self, place: WorkspaceDir) -> Iterator[str]:
        """The directories of workspaces below a directory."""
        for directory, level, _ in self._below_too(place):
            if level.markers and directory != place.directory:
                yield directory

    def markers(self, place: WorkspaceDir) -> list[TreeEntry]:
        """The workspace.yamls that a directory has."""
        return self.look(place.tree, place.directory, self.above(place.directory)).markers

    def _below_too(self, place: WorkspaceDir) -> Iterator[tuple[str, Level, bool]]:
        """Every directory, with whether it is rendered: of those in one another the outermost of each workspace."""
        pending = [(place.tree, place.directory, self.above(place.directory), False)]
        while pending:
            tree, directory, stack, inside = pending.pop()
            level = self.look(tree, directory, stack)
            inside = inside and not level.markers
            yield directory, level, level.is_rendered and not inside
            inside = inside or level.is_rendered
            pending += [(d.id, joined(directory, d.name), level.stack, inside) for d in reversed(level.directories)]

    def at(self, directory: str) -> WorkspaceDir | None:
        """What has a workspace.yaml is not the content's."""
        tree = self.repo.tree_at(self.tree_id, directory)
        level = self._markers(tree, directory, self.above(directory)) if tree is not None else None
        if tree is None or level is None or not level.markers:
            return None
        return workspace_dir(self.boundary(level, directory, "") or "", directory, tree, level, whole=False)
