"""Files of the repository as manifests, parsed once per blob.

Called by judge. Syntax is layout's; which kinds exist and what they may hold is render's.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from apiserver.model.kinds import kind_of
from reconciler.layout.errors import BadFile, LayoutError
from reconciler.layout.manifest import Manifest, read
from reconciler.layout.workspace import parse_workspace
from reconciler.layout.yamldoc import locate
from reconciler.repository.objects import Repository

_KEPT_FILES = 4096


@dataclass(frozen=True, slots=True)
class Parsed:
    """One file: its manifests, and what is wrong with it (then there may be no manifests)."""

    manifests: tuple[Manifest, ...]
    problems: tuple[LayoutError, ...]


class Sources:
    """Reads blobs of one repository. Manifests are shared between calls: copy before changing."""

    def __init__(self, repo: Repository) -> None:
        self.repo = repo
        self._parsed: OrderedDict[tuple[str, str], Parsed] = OrderedDict()

    def read(self, path: str, blob: str) -> Parsed:
        key = (path, blob)
        found = self._parsed.get(key)
        if found is None:
            found = self._parsed[key] = self.parse(path, self.repo.blob(blob))
            if len(self._parsed) > _KEPT_FILES:
                self._parsed.popitem(last=False)
        return found

    def read_workspace(self, path: str, blob: str, name: str) -> Parsed:
        """A workspace.yaml: at most one Workspace, whose name is its directory's and need not be written."""
        try:
            return Parsed((parse_workspace(self.repo.blob(blob), path, name),), ())
        except BadFile as bad:
            return Parsed((), tuple(bad.errors))

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


def shipped(objects: Iterable[dict[str, Any]]) -> list[Manifest]:
    """System and computed objects in the form of manifests without a file."""
    out = []
    for value in objects:
        metadata = value["metadata"]
        out.append(Manifest("", 0, 0, kind_of(value), metadata.get("namespace") or "", metadata["name"], value))
    return out
