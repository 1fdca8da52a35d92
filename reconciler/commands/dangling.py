"""What manifests name of other workspaces and is not there: exports that bindings take, and Locations that Placements
ask for. Each is served all the same, and waits; so it is a warning, with the name that may be meant.

Called by `validate`, with all of a fleet loaded. A server tells the same by conditions, without the names: whoever has
the repository reads all of it, and whoever reads an object does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from apiserver.model import marks, origins, selectors
from apiserver.model.commits import CommitRef
from apiserver.model.storagenames import BINDINGS, EXPORTS
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import read
from reconciler.plan import system
from reconciler.plugin.meant import question
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository

Object = dict[str, Any]

_PLACEMENTS, _LOCATIONS = "placements.scheduling.kcp.io", "locations.scheduling.kcp.io"
_MOST, _HELPED = 1000, 20
"""So many are told, and with so many of them what may be meant: looking for it takes as long as there are names."""


class Dangling:
    """`store`: the fleet, as it is loaded. `repo`, `commit`: where its files stand."""

    def __init__(self, store: Store, repo: Repository, commit: CommitRef) -> None:
        self._store, self._objects = store, Objects(store)
        self._repo, self._tree = repo, repo.commit(commit.id).tree
        self._paths = {"root": None} | dict.fromkeys(tree.below(store, "root"))
        self._helped = 0

    def warnings(self) -> list[LayoutError]:
        """Sorted by file and line."""
        return sorted(islice((*self._bindings(), *self._placements()), _MOST))

    def _bindings(self) -> Iterator[LayoutError]:
        exports = {f"{self._path(each)}:{each['metadata']['name']}": None for each in self._objects.list(EXPORTS)}
        for binding in self._objects.list(BINDINGS):
            if not origins.file_of(binding):
                continue
            reference = ((binding.get("spec") or {}).get("reference") or {}).get("export") or {}
            path, name = reference.get("path") or self._path(binding), reference.get("name", "")
            if path not in self._paths and not _ships(path):
                yield self._warning(binding, f"there is no workspace {path}", self._meant(path, self._paths))
            elif _reason(binding, "APIExportValid") == "APIExportNotFound" and f"{path}:{name}" not in exports:
                near = self._meant(f"{path}:{name}", exports)
                yield self._warning(binding, f"workspace {path} has no APIExport {name}", near)

    def _placements(self) -> Iterator[LayoutError]:
        for placement in self._objects.list(_PLACEMENTS):
            if not origins.file_of(placement):
                continue
            spec = placement.get("spec") or {}
            path = spec.get("locationWorkspace") or self._path(placement)
            there = tree.workspace_at(self._store, path)
            if there is None:
                yield self._warning(placement, f"there is no workspace {path}", self._meant(path, self._paths))
                continue
            locations = [*self._objects.list(_LOCATIONS, there.cluster)]
            wanted = [selectors.from_object(each) for each in spec.get("locationSelectors") or []]
            labels = [location["metadata"].get("labels") for location in locations]
            if not any(each.matches(found) for each in wanted for found in labels):
                names = ", ".join(sorted(location["metadata"]["name"] for location in locations)[:10])
                text = f"spec.locationSelectors matches no Location of workspace {path}"
                yield self._warning(placement, text, f"there: {names}" if names else "there is none")

    def _meant(self, name: str, names: Iterable[str]) -> str:
        self._helped += 1
        return question(name, names) if self._helped <= _HELPED else ""

    def _path(self, obj: Object) -> str:
        found = tree.workspace_of(self._store, obj["metadata"]["annotations"][marks.CLUSTER])
        return found.path if found is not None else ""

    def _warning(self, obj: Object, text: str, hint: str) -> LayoutError:
        file, kind, name = origins.file_of(obj), obj["kind"], obj["metadata"]["name"]
        return LayoutError(file, self._line(file, kind, name), 0, f"{kind} {name} waits: {text}", hint)

    def _line(self, file: str, kind: str, name: str) -> int:
        """0 where no file of the repository declares it, as of a directory that is rendered."""
        try:
            entry = self._repo.entry_at(self._tree, file)
            data = self._repo.blob(entry.id) if entry is not None and entry.kind == "blob" else b""
        except RepositoryError:
            return 0
        found = (each.line for each in read(data, file).objects if (each.gvk.kind, each.name) == (kind, name))
        return next(found, 0)


def _ships(path: str) -> bool:
    """Whether exports of the program's own stand there."""
    return path == system.COMPUTE


def _reason(obj: Object, condition: str) -> str:
    found = (obj.get("status") or {}).get("conditions") or []
    return next((each.get("reason", "") for each in found if each.get("type") == condition), "")
