"""Files of the repository as manifests, parsed once per blob.

Called by judge. Syntax is layout's; which kinds exist and what they may hold is render's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apiserver.model.kinds import kind_of
from apiserver.model.remembered import Remembered, footprint
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.workspace import Declaration, declaration, named
from reconciler.layout.yamldoc import locate
from reconciler.repository.objects import Repository

_MOST, _MOST_DECLARED = 8 * 1024 * 1024, 2 * 1024 * 1024
"""Bytes in memory of the files that are kept, and of those of the workspaces themselves; a small one takes two
thousand."""
_EACH = 512
"""Bytes of one beside what its manifests say."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """One file: its manifests, and what is wrong with it (then there may be no manifests)."""

    manifests: tuple[Manifest, ...]
    problems: tuple[LayoutError, ...]


class Sources:
    """Reads blobs of one repository, each once, in however many files it stands. Manifests share their values: copy
    before changing."""

    def __init__(self, repo: Repository, most: int = _MOST) -> None:
        """`most`: bytes in memory of the files that are kept."""
        self.repo = repo
        self._good: Remembered[tuple[str, str], tuple[Manifest, ...]] = Remembered(most)
        self._declared: Remembered[tuple[str, str], Declaration] = Remembered(_MOST_DECLARED)

    def read(self, path: str, blob: str) -> Parsed:
        key = blob, _suffix(path)
        good = self._good.get(key)
        if good is not None:
            return Parsed(tuple(manifest.at(path) for manifest in good), ())
        found = self.parse(path, self.repo.blob(blob))
        if not found.problems:  # which name their file
            self._good.put(key, found.manifests, _EACH + sum(_EACH + footprint(m.value) for m in found.manifests))
        return found

    def read_workspace(self, path: str, blob: str, name: str) -> Parsed:
        """A workspace.yaml: at most one Workspace, whose name is its directory's and need not be written."""
        try:
            said = self._declaration(path, blob)
            return Parsed((named(said, path, name),), ())
        except BadFile as bad:
            return Parsed((), tuple(bad.errors))

    def _declaration(self, path: str, blob: str) -> Declaration:
        """Raises BadFile."""
        key = blob, _suffix(path)
        known = self._declared.get(key)
        if known is None:
            known = declaration(self.repo.blob(blob), path)
            self._declared.put(key, known, _EACH + footprint(known.manifest.value))
        return known

    @staticmethod
    def parse(path: str, data: bytes) -> Parsed:
        found = read(data, path)
        return Parsed(tuple(found.objects), tuple(found.errors))

    def line_of(self, manifest: Manifest, blob: str, field: str) -> int:
        """The line of a field like `spec.replicas`, or of the document where it cannot be told."""
        try:
            return locate(self.repo.blob(blob), manifest.index, field, manifest.path) or manifest.line
        except (BadFile, KeyError, ValueError):
            return manifest.line


def _suffix(path: str) -> str:
    """What a file's name says of how it is read."""
    return ".json" if path.endswith(".json") else ".yaml"


def shipped(objects: Iterable[dict[str, Any]]) -> list[Manifest]:
    """System and computed objects in the form of manifests without a file."""
    out = []
    for value in objects:
        metadata = value["metadata"]
        out.append(Manifest("", 0, 0, kind_of(value), metadata.get("namespace") or "", metadata["name"], value))
    return out
