"""Files of the repository as manifests, parsed once per blob.

Called by judge. Syntax is layout's; which kinds exist and what they may hold is render's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from apiserver.model.kinds import kind_of
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.workspace import Declaration, declaration, named
from reconciler.layout.yamldoc import locate
from reconciler.repository.objects import Repository

_KEPT_FILES = 4096


@dataclass(frozen=True, slots=True)
class Parsed:
    """One file: its manifests, and what is wrong with it (then there may be no manifests)."""

    manifests: tuple[Manifest, ...]
    problems: tuple[LayoutError, ...]


class Sources:
    """Reads blobs of one repository, each once, in however many files it stands. Manifests share their values: copy
    before changing."""

    def __init__(self, repo: Repository) -> None:
        self.repo = repo
        self._good = lru_cache(_KEPT_FILES)(self._read_good)
        self._declaration = lru_cache(_KEPT_FILES)(self._read_declaration)

    def read(self, path: str, blob: str) -> Parsed:
        good = self._good(blob, _suffix(path))
        if good is None:
            return self.parse(path, self.repo.blob(blob))
        return Parsed(tuple(manifest.at(path) for manifest in good), ())

    def read_workspace(self, path: str, blob: str, name: str) -> Parsed:
        """A workspace.yaml: at most one Workspace, whose name is its directory's and need not be written."""
        try:
            said = self._declaration(blob, _suffix(path))
            said = said or declaration(self.repo.blob(blob), path)
            return Parsed((named(said, path, name),), ())
        except BadFile as bad:
            return Parsed((), tuple(bad.errors))

    def _read_good(self, blob: str, suffix: str) -> tuple[Manifest, ...] | None:
        """None: there are faults, which name their file."""
        found = self.parse(suffix, self.repo.blob(blob))
        return None if found.problems else found.manifests

    def _read_declaration(self, blob: str, suffix: str) -> Declaration | None:
        """As `_read_good`."""
        try:
            return declaration(self.repo.blob(blob), suffix)
        except BadFile:
            return None

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
