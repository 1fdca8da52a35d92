"""A source of manifests that is not plain files: a program makes them of parameters.

A directory with a `render.json` is one. `{"count": 2, "size": 1}` in its `parameters.json` makes the ConfigMaps n0 and
n1 with `size: "1"`; `extra` is a list of further objects. Beside these two nothing in the directory counts.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator
from typing import Any

import orjson

from apiserver.model.kinds import kind_of
from apiserver.model.origins import Origin
from reconciler.layout.draft import Draft
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import Editor, ManifestSource, Piece, PieceChange, ReadOnly, all_changes
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.files import Files
from reconciler.repository.objects import TreeEntry

Object = dict[str, Any]

MARKER, PARAMETERS = "render.json", "parameters.json"


class Rendered:
    """See the module's head."""

    def __init__(self, tree: WorkspaceTree, directory: WorkspaceDir, inputs: dict[str, TreeEntry]) -> None:
        self._tree, self._inputs = tree, inputs
        self._name = f"{directory.directory}/{MARKER}"
        self._parameters = f"{directory.directory}/{PARAMETERS}"

    @staticmethod
    def of(_: Files, tree: WorkspaceTree, directory: WorkspaceDir) -> ManifestSource | None:
        inputs = tree.repo.pick(directory.tree, (MARKER, PARAMETERS))
        return Rendered(tree, directory, inputs) if MARKER in inputs else None

    def pieces(self, besides: Container[str] = ()) -> Iterator[Piece]:
        if self._name not in besides:
            yield self._piece()

    def changes(self, old: ManifestSource, about: Collection[bytes] = ()) -> Iterator[PieceChange]:
        if not isinstance(old, Rendered) or old._name != self._name:
            yield from all_changes(self, old)
        elif old._inputs != self._inputs:
            yield PieceChange(self._name, old._piece(), self._piece())

    def line(self, manifest: Manifest, field: str = "") -> int:
        return 0

    def mentioning(self, *texts: bytes) -> Iterator[Manifest]:
        yield from self._piece().manifests

    def editor(self, draft: Draft) -> Editor:
        raise ReadOnly(f"its manifests are made of {self._parameters}: change that, commit and push")

    def _piece(self) -> Piece:
        entry = self._inputs.get(PARAMETERS)
        try:
            said = orjson.loads(self._tree.repo.blob(entry.id)) if entry is not None else {}
            objects = [*(_configmap(n, said.get("size", 0)) for n in range(said.get("count", 0)))]
            objects += said.get("extra", [])
        except (ValueError, AttributeError) as error:
            return Piece(self._name, (), (LayoutError(self._parameters, 0, 0, f"cannot be rendered: {error}"),))
        origin = Origin(self._name, generator="numbers")
        return Piece(self._name, tuple(_manifest(origin, number, value) for number, value in enumerate(objects)))


def _configmap(number: int, size: int) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"n{number}"}, "data": {"size": str(size)}}


def _manifest(origin: Origin, number: int, value: Object) -> Manifest:
    metadata = value["metadata"]
    return Manifest(origin, number, 0, kind_of(value), metadata.get("namespace") or "", metadata["name"], value)
