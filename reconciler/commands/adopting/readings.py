"""The files of the directory as manifests, each read once.

Called by grouping and inquiry.
"""

from __future__ import annotations

from reconciler.commands.adopting.lookedat import LookedAt
from reconciler.layout.level import RENDERED_BY, RULES_OF_SOPS, SUFFIXES, WORKSPACE_FILES
from reconciler.layout.manifest import Manifests, read


class Readings:
    def __init__(self, looked: LookedAt) -> None:
        self._looked = looked
        self._read: dict[str, Manifests] = {}

    def paths(self) -> list[str]:
        """Of the files that may hold manifests."""
        return [path for path in self._looked.files if is_manifests(path)]

    def of(self, path: str) -> Manifests:
        if path not in self._read:
            self._read[path] = read(self._looked.files[path], path)
        return self._read[path]


def is_manifests(path: str) -> bool:
    """By its name."""
    name = path.rpartition("/")[2]
    return name.endswith(SUFFIXES) and name not in RENDERED_BY and not meaning(path)


def meaning(path: str) -> str:
    """Why a file may not be called so in a fleet, "" where it may."""
    names = path.split("/")
    name = names[-1]
    if name == RULES_OF_SOPS:
        return "says how SOPS encrypts there, and stands in each workspace of its own (docs/secrets.md)"
    if any(each in WORKSPACE_FILES for each in names):
        return "what is called so makes a workspace: give it another name"
    if name.startswith(".git"):
        return "means something to git"
    return "means something to Treeplane" if name == ".treeplaneignore" else ""
