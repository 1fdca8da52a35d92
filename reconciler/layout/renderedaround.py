"""Which directory around a file of a workspace is rendered, so that the file is none of manifests.

Called by whoever writes files (loading/plainfiles), for each of them. Only the directories on the way to a file are
looked at, and each once, however many files are asked about.
"""

from __future__ import annotations

from typing import NamedTuple

from reconciler.layout import ignore
from reconciler.layout.level import RENDERED_BY
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.repository.folder import joined


class _Place(NamedTuple):
    """A directory: its tree, "" where there is none, and the file that makes it or one above it a rendered one, "" for
    none."""

    tree: str
    marker: str


class RenderedAround:
    """Of one workspace in one tree."""

    def __init__(self, tree: WorkspaceTree, workspace: WorkspaceDir) -> None:
        self._tree = tree
        self._top = workspace.directory
        # Of a workspace in a tenant's repository nothing is written.
        self._known = {self._top: self._place(self._top, workspace.tree if not workspace.theirs else "")}

    def marker(self, file: str) -> str:
        """The file that makes the outermost directory a rendered one which a file of the workspace is in, or would be;
        "" where that is none."""
        directory, found = self._top, self._known[self._top]
        for name in file.removeprefix(f"{self._top}/").split("/")[:-1]:
            if found.marker or not found.tree:
                break
            directory = joined(directory, name)
            below = self._known.get(directory)
            if below is None:
                step = self._tree.repo.pick(found.tree, (name,)).get(name)
                there = step is not None and step.kind == "tree"
                below = self._place(directory, step.id if step is not None and there else "")
                self._known[directory] = below
            found = below
        return found.marker

    def _place(self, directory: str, tree: str) -> _Place:
        named = self._tree.repo.pick(tree, RENDERED_BY) if tree else {}
        for name in RENDERED_BY:
            entry = named.get(name)
            path = joined(directory, name)
            is_file = entry is not None and entry.kind in ("blob", "link")
            if is_file and not ignore.ignored(self._tree.stack(directory), path):
                return _Place(tree, path)
        return _Place(tree, "")
