"""Whose word a change needs: which workspaces the files that differ between two trees belong to.

Called by the loader for each commit, and for what is pushed. It goes by directories alone and is stricter than compare:
what a .treeplaneignore hides counts as what it would be without, so that nobody can put something ready below a
directory of somebody else's that is shown later. Costs what differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from apiserver.model import paths
from reconciler.layout import ignore
from reconciler.layout.level import WORKSPACE_FILES
from reconciler.layout.tree import ROOT
from reconciler.layout.workspacedir import named
from reconciler.repository.difference import difference
from reconciler.repository.folder import joined
from reconciler.repository.objects import Repository, TreeEntry


class OwnedPlace(NamedTuple):
    """A workspace, as a directory that has a workspace.yaml in one of the trees makes it."""

    path: str
    directory: str


@dataclass(frozen=True, slots=True)
class TouchedPlace:
    """What a change does to one workspace. `places`: it and those that it stands in, root first; () for what is outside
    of all. `itself`: its workspace.yaml, which is its parent's. `file`: the first that differs, of `files`. `spreads`:
    whether it may decide about what stands below the directory, too: who is a workspace there, or is hidden."""

    places: tuple[OwnedPlace, ...]
    itself: bool
    file: str
    files: int = 1
    spreads: bool = False

    @property
    def path(self) -> str:
        """The workspace, "" for what is outside of all."""
        return self.places[-1].path if self.places else ""

    @property
    def answerable(self) -> tuple[OwnedPlace, ...]:
        """Those of whom one has to allow it, the nearest first; (): root's alone, whatever is there."""
        above = self.places[:-1] if self.itself and len(self.places) > 1 else self.places
        return tuple(reversed(above))


def reach(
    repo: Repository, old_tree: str | None, new_tree: str, claims: Mapping[str, str] = MappingProxyType({})
) -> list[TouchedPlace]:
    """What differs, each workspace once, and once more for its workspace.yaml; in the order of files. `claims`:
    directories that are workspaces still, though they lost their workspace.yaml (layout/tree). What is outside of the
    fleet's folder is nobody's here."""
    found: dict[tuple[str, bool], TouchedPlace] = {}
    folders = dict.fromkeys(repo.folder_at(each) for each in (old_tree, new_tree) if each)
    for places, itself, file in (f for each in folders for f in _Reaching(repo, claims, each).run(old_tree, new_tree)):
        key = (places[-1].directory if places else "", itself)
        spreads = itself or file.rpartition("/")[2] == ignore.FILE
        there = found.get(key)
        if there is None:
            found[key] = TouchedPlace(places, itself, file, 1, spreads)
        else:
            found[key] = replace(there, files=there.files + 1, spreads=there.spreads or spreads)
    return [*found.values()]


_Found = tuple[tuple[OwnedPlace, ...], bool, str]


class _Reaching:
    def __init__(self, repo: Repository, claims: Mapping[str, str], folder: str) -> None:
        self._repo, self._claims, self._folder, self._root = repo, claims, folder, joined(folder, ROOT)

    def run(self, old_tree: str | None, new_tree: str) -> Iterator[_Found]:
        old, new = (self._repo.tree_at(tree, self._folder) if tree else None for tree in (old_tree, new_tree))
        yield from self._below(self._folder, old, new, ())

    def _below(
        self, directory: str, old: str | None, new: str | None, above: tuple[OwnedPlace, ...]
    ) -> Iterator[_Found]:
        if old == new:
            return
        if not self._leads_to_root(directory):
            yield from ((above, False, change.path) for change in difference(self._repo, old, new, directory))
            return
        before, after = self._sides(old, new)
        places = self._places(directory, [*before.values(), *after.values()], above)
        if directory in self._claims and places:
            yield places, True, directory  # it goes with the last that is left in it
        for name in sorted(before.keys() | after.keys()):
            was, now = before.get(name), after.get(name)
            if was == now:
                continue
            file = f"{directory}/{name}" if directory else name
            if _is_file(was) or _is_file(now):
                itself = name in WORKSPACE_FILES and bool(places)
                yield places, itself, file
                if itself and _is_file(was) != _is_file(now) and above:
                    yield above, False, file  # what is in the directory was its parent's, or will be
            yield from self._below(file, _tree(was), _tree(now), places)

    def _sides(self, old: str | None, new: str | None) -> tuple[dict[str, TreeEntry], dict[str, TreeEntry]]:
        """What of a directory differs at least, and what makes it a workspace."""
        repo = self._repo
        wide = repo.differing(old, new, WORKSPACE_FILES) if old is not None and new is not None else None
        sides = wide or (repo.entries(old) if old else (), repo.entries(new) if new else ())
        before, after = ({entry.name: entry for entry in side} for side in sides)
        return before, after

    def _places(
        self, directory: str, entries: list[TreeEntry], above: tuple[OwnedPlace, ...]
    ) -> tuple[OwnedPlace, ...]:
        if directory == self._root:
            return (OwnedPlace(paths.ROOT, directory),)
        if above and any(entry.name in WORKSPACE_FILES and entry.kind != "tree" for entry in entries):
            return (*above, OwnedPlace(paths.join(above[-1].path, named(directory.rpartition("/")[2])), directory))
        claimed = self._claims.get(directory)
        return (*above, OwnedPlace(claimed, directory)) if claimed else above

    def _leads_to_root(self, directory: str) -> bool:
        """Whether there may be workspaces in a directory."""
        root = f"{self._root}/"
        return root.startswith(f"{directory}/" if directory else "") or directory.startswith(root)


def _is_file(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.kind != "tree"


def _tree(entry: TreeEntry | None) -> str | None:
    return entry.id if entry is not None and entry.kind == "tree" else None
