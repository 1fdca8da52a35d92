"""What was served of a directory that is rendered, where its program does not say that any more.

Called by gather and guard. What git said before is the ground on which objects go and fields are given up. Of files it
is read again; what a program made can be made again, as long as the program is there, is the same, and makes of the old
files what it made then. Where it is not so, what is stored with the directory's name is what was said: so nothing that
was made once is left over, and nothing goes since a program fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from apiserver.model.kinds import kind_of
from apiserver.model.origins import Origin, file_of
from apiserver.storage.paging import pages
from apiserver.storage.protocol import View
from reconciler.layout.manifest import Manifest
from reconciler.layout.source import Piece
from reconciler.plan.deletions import PROTECTED

Object = dict[str, Any]

_SERVED = frozenset({"metadata", "spec", "status"})
"""Parts of an object in which others than git may have said something."""


class RenderedBefore:
    """Of one workspace. `always`: nothing that is rendered now tells what was served."""

    def __init__(self, store: View, cluster: str, *, always: bool) -> None:
        self._store, self._cluster, self._always = store, cluster, always
        self._stored: Mapping[str, list[Manifest]] | None = None

    def of(self, piece: Piece) -> Sequence[Manifest]:
        """What a piece of the tree that is served said."""
        if not piece.generator or not (self._always or piece.problems):
            return piece.manifests
        if self._stored is None:
            self._stored = self._look()
        return self._stored.get(piece.name, [])

    def _look(self) -> Mapping[str, list[Manifest]]:
        found: dict[str, list[Manifest]] = {}
        for manifest in self._manifests():
            found.setdefault(manifest.path, []).append(manifest)
        return found

    def _manifests(self) -> Iterator[Manifest]:
        for resource in self._store.resources(self._cluster):
            for page in pages(self._store, resource, self._cluster) if not resource.startswith("~") else ():
                for record in page:
                    obj: Object = orjson.loads(record.value)
                    path = file_of(obj)
                    if path:
                        yield _manifest(obj, path)


def _manifest(obj: Object, path: str) -> Manifest:
    """As little as git is known to have said: of what others may have set none is given up."""
    metadata = obj["metadata"]
    namespace, name = str(metadata.get("namespace") or ""), str(metadata["name"])
    said: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
    protected = (metadata.get("annotations") or {}).get(PROTECTED)
    if protected is not None:
        said["annotations"] = {PROTECTED: protected}
    value = {**{part: each for part, each in obj.items() if part not in _SERVED}, "metadata": said}
    return Manifest(Origin(path), 0, 0, kind_of(obj), namespace, name, value)
