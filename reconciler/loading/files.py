"""Files of a repository as manifests, parsed once per blob.

Called by sources and plainfiles. Syntax is layout's; which kinds exist and what they may hold is render's. Of an
encrypted file what is remembered is what stands in it: keys are asked for later, and nothing here has any.
"""

from __future__ import annotations

from contextlib import suppress

from apiserver.model.origins import Origin
from apiserver.model.remembered import Remembered, footprint
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import SEALED, Manifest, of_document, read
from reconciler.layout.pin import Pin
from reconciler.layout.shapes import Shapes
from reconciler.layout.source import Piece
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.workspace import Declaration, declaration, named
from reconciler.layout.yamldoc import YamlDocument, is_list
from reconciler.loading import unsealing
from reconciler.loading.renderings import Renderings
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.objects import Repository
from reconciler.repository.write import object_name

_BLOB = 3
_MOST, _MOST_DECLARED = 8 * 1024 * 1024, 2 * 1024 * 1024
"""Bytes in memory of the files that are kept, and of those of the workspaces themselves; a small one takes two
thousand."""
_EACH = 512
"""Bytes of one beside what its manifests say."""


class Files:
    """Reads blobs of one repository, each once, in however many files it stands; a piece is a file. Manifests share
    their values: copy before changing."""

    def __init__(self, repo: Repository, most: int = _MOST, renders: Renders = NOWHERE) -> None:
        """`most`: bytes in memory of the files that are kept, and of what is made of directories that are rendered;
        `renders`: for these."""
        self._repo = repo
        self.renderings = Renderings(renders, most)
        self._good: Remembered[tuple[str, str], tuple[Manifest, ...]] = Remembered(most)
        self._shapes = Shapes()
        self._declared: Remembered[tuple[str, str], Declaration] = Remembered(_MOST_DECLARED)

    def text(self, blob: str) -> bytes:
        return self._repo.blob(blob)

    def read(self, path: str, blob: str) -> Piece:
        key = blob, _suffix(path)
        good = self._good.get(key)
        if good is not None:
            origin = Origin(path)
            return Piece(path, tuple(manifest.at(origin) for manifest in good))
        data = self._repo.blob(blob)
        alike = self._shapes.read(data, path) if SEALED not in data else None
        if alike is not None:
            self._good.put(key, alike.manifests, _EACH + _EACH * len(alike.manifests) + alike.size)
            return Piece(path, alike.manifests)
        found = self.parse(path, data)
        if not found.problems:  # which name their file
            size = sum(_EACH + footprint(m.value) for m in found.manifests)
            self._good.put(key, found.manifests, _EACH + len(data) * _is_sealed(found) + size)
        return found

    def note(self, path: str, data: bytes, document: YamlDocument) -> None:
        """That a file which is about to be committed was read, and is one document. This becomes the manifest's."""
        if SEALED in data or is_list(document.value):
            return
        with suppress(BadFile):
            manifest = of_document(document, path, 0, [])
            key = object_name(_BLOB, data), _suffix(path)
            self._good.put(key, (manifest,), _EACH + footprint(manifest.value))

    def read_workspace(self, path: str, blob: str, name: str) -> Piece:
        """A workspace.yaml: at most one Workspace, whose name is its directory's and need not be written."""
        try:
            said = self._declaration(path, blob)
            return Piece(path, (named(said, path, name),))
        except BadFile as bad:
            return Piece(path, (), tuple(bad.errors))

    def uid_of_workspace(self, path: str, blob: str) -> str:
        """The metadata.uid that a workspace.yaml states; "" where it states none, or cannot be read."""
        try:
            return self._declaration(path, blob).uid
        except BadFile:
            return ""

    def pin_of_workspace(self, path: str, blob: str) -> Pin | None:
        """What a workspace.yaml says under spec.serve; None where it says nothing, or cannot be read."""
        try:
            return self._declaration(path, blob).pin
        except BadFile:
            return None

    def source_of_workspace(self, path: str, blob: str) -> SourceRef | None:
        """What a workspace.yaml says under spec.source; None where it says nothing, or cannot be read."""
        try:
            return self._declaration(path, blob).source
        except BadFile:
            return None

    def _declaration(self, path: str, blob: str) -> Declaration:
        """Raises BadFile."""
        key = blob, _suffix(path)
        known = self._declared.get(key)
        if known is None:
            known = declaration(self._repo.blob(blob), path)
            self._declared.put(key, known, _EACH + footprint(known.manifest.value))
        return known

    @staticmethod
    def parse(path: str, data: bytes) -> Piece:
        found = read(data, path)
        piece = Piece(path, tuple(found.objects), tuple(found.errors))
        faults = unsealing.faults(data, path) if _is_sealed(piece) and not piece.problems else ()
        return Piece(path, (), faults) if faults else piece


def _is_sealed(piece: Piece) -> bool:
    """Whether it is encrypted, so that its manifests hold the file."""
    return any(manifest.sealed is not None for manifest in piece.manifests)


def _suffix(path: str) -> str:
    """What a file's name says of how it is read."""
    return ".json" if path.endswith(".json") else ".yaml"
