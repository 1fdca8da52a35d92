"""Which workspace a folder of the status branch is of, for what a status commit says of itself.

Asked for the few folders that are named, so it is found out and not kept.
"""

from __future__ import annotations

from collections.abc import Mapping

from apiserver.model import paths
from apiserver.registry import tree
from apiserver.storage.protocol import View
from reconciler.statusbranch import format


class Folders:
    """`gone`: the paths of workspaces that went, by their folders, as far as they are known."""

    def __init__(self, store: View, gone: Mapping[str, str]) -> None:
        self._store, self._gone = store, gone

    def get(self, folder: str) -> str | None:
        """The workspace's path. Directories that only group are no part of it."""
        if folder in self._gone:
            return self._gone[folder]
        if format.is_apart(folder):
            record = tree.workspace_at(self._store, ":".join(folder.split("/")[1:]))
            return record.path if record is not None and format.is_apart(record.directory) else None
        path, at, is_one = "", format.WORKSPACES, False
        for part in folder.split("/")[1:]:
            at = f"{at}/{part}"
            name = format.directory_in_git(part)
            below = paths.join(path, name) if path else name
            record = tree.workspace_at(self._store, below)
            is_one = record is not None and format.directory_of(record.path, record.directory) == at
            path = below if is_one else path
        return path if is_one else None
