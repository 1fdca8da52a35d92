"""Which directory becomes which workspace.

What Flux Kustomizations and Argo CD's Applications name, each by itself, and nothing else then: nothing else is on
clusters. In a repository without such: each overlay, and each directory at the top for what is in no overlay; of a
directory without directories all. Workspaces stand beside each other below root.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from apiserver.model import paths
from reconciler.commands.adopting.deliverers import named_directories, said_to
from reconciler.commands.adopting.kustomized import Kustomizations
from reconciler.commands.adopting.lookedat import LookedAt, above
from reconciler.commands.adopting.readings import Readings

_ODD = re.compile(r"[^a-z0-9]+")
_LONGEST = 63


class WorkspacePlaces(NamedTuple):
    """Directories that become workspaces. `named`: by objects of Flux or Argo CD, so that what is in none is not taken.
    `bases`: directories that stand in others' overlays, and are none of their own."""

    directories: frozenset[str]
    named: bool
    bases: frozenset[str]

    def owner(self, path: str) -> str | None:
        """The directory whose workspace a file is of; None for none's."""
        found = next((each for each in above(path) if each in self.directories), None)
        if found is not None or self.named:
            return found
        return path.partition("/")[0] if "/" in path else ""


def places(looked: LookedAt, readings: Readings, kustomizations: Kustomizations) -> WorkspacePlaces:
    named: set[str] = set()
    for path in readings.paths():
        for manifest in readings.of(path).objects:
            if said_to(manifest):
                named.update(named_directories(manifest, looked.directories))
    if named:
        return WorkspacePlaces(frozenset(named), True, frozenset())
    bases = {
        directory: kustomizations.bases(directory)
        for directory in looked.directories
        if kustomizations.is_kustomized(directory)
    }
    used = frozenset(base for found in bases.values() for base in found)
    return WorkspacePlaces(frozenset(each for each, found in bases.items() if found and each not in used), False, used)


def names(directories: list[str], top: str) -> dict[str, tuple[str, bool]]:
    """By directory the name of its workspace, and whether it had to be made fit. `top`: what all of it is called."""
    found: dict[str, tuple[str, bool]] = {}
    taken: set[str] = set()
    for directory in directories:
        said = directory.replace("/", "-") or top
        name, number = _fit(said, _LONGEST), 1
        while name in taken:
            number += 1
            name = f"{_fit(said, _LONGEST - len(str(number)) - 1)}-{number}"
        taken.add(name)
        found[directory] = name, name != said
    return found


def _fit(text: str, longest: int) -> str:
    name = _ODD.sub("-", text.lower()).strip("-")[:longest].strip("-")
    return name if paths.is_name(name) and name != "compute" else f"{name}-fleet".strip("-")
