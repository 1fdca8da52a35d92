"""Where a field stands in the file of a commit. Called by blame; a file is read once for all of its fields."""

from __future__ import annotations

from functools import lru_cache

from reconciler.history.fleet import FleetHistory
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import Manifest
from reconciler.layout.yamldoc import YamlDocument, line_of, parse
from reconciler.repository.objects import CommitInfo

_KEPT = 16


class Lines:
    def __init__(self, history: FleetHistory) -> None:
        self._history = history
        self._documents = lru_cache(_KEPT)(self._parsed)

    def of(self, commit: CommitInfo, manifest: Manifest, place: str) -> int:
        """The line of a field, or of its object where that cannot be told; 0 where it has none."""
        entry = self._history.repo.entry_at(commit.tree, manifest.path)
        documents = self._documents(entry.id, manifest.path) if entry is not None and entry.kind == "blob" else ()
        if manifest.index >= len(documents):
            return manifest.line
        return line_of(documents[manifest.index], place) or manifest.line

    def _parsed(self, blob: str, path: str) -> tuple[YamlDocument, ...]:
        try:
            return tuple(parse(self._history.repo.blob(blob), path, positions=True))
        except BadFile:
            return ()
