"""What one directory of a tree holds, by its names: workspace files, manifests, what a program renders, and what cannot
be a manifest. Pure.

Called by tree for each directory that is looked into, and by whoever goes by the names of files. Which rules hold in a
directory and whose its files are is tree's; what stands in a file is manifest's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from reconciler.layout import ignore
from reconciler.layout.errors import LayoutError
from reconciler.repository.folder import joined
from reconciler.repository.objects import TreeEntry

WORKSPACE_FILES = ("workspace.yaml", "workspace.yml", "workspace.json")
SUFFIXES = (".yaml", ".yml", ".json")
RENDERED_BY = ("kustomization.yaml", "kustomization.yml", "Kustomization", "Chart.yaml")
"""Files that have a program make the manifests of their directory; of several there the first counts."""
_RENDERED_BY = frozenset(RENDERED_BY)
RULES_OF_SOPS = ".sops.yaml"
"""Says how files are encrypted (encryption/creation), and is no manifest wherever it stands."""
_DEEPEST = 64
"""Levels of directories."""


class Level(NamedTuple):
    """One directory, ignored names left out. `tree`: its id; `files` are manifests and what `problem` refuses; of a
    directory that is rendered there is one, of the kind "rendered", which stands for all that is below."""

    tree: str
    stack: ignore.Stack
    directories: list[TreeEntry]
    files: list[TreeEntry]
    markers: list[TreeEntry]

    @property
    def is_rendered(self) -> bool:
        return bool(self.files) and self.files[0].kind == "rendered"


def level_of(tree: str, directory: str, stack: ignore.Stack, entries: Iterable[TreeEntry]) -> Level:
    """Of a directory with these entries, in which those rules hold."""
    level = Level(tree, stack, [], [], [])
    deep = directory.count("/") >= _DEEPEST
    by: dict[str, TreeEntry] = {}
    for entry in entries:
        name, kind = entry.name, entry.kind
        if name in _RENDERED_BY and kind in ("blob", "link"):
            if not (stack and ignore.ignored(stack, joined(directory, name))):
                by[name] = TreeEntry(name, tree, "rendered")
            continue
        if kind == "tree":
            chosen = level.files if deep else level.directories
        elif name == RULES_OF_SOPS:
            continue
        elif name in WORKSPACE_FILES:
            chosen = level.markers
        elif name.endswith(SUFFIXES) or kind == "commit" or (kind == "link" and "." not in name):
            chosen = level.files
        else:
            continue
        if stack and ignore.ignored(stack, joined(directory, name), directory=kind == "tree"):
            continue
        chosen.append(entry)
    if by:
        level.files[:] = [next(by[name] for name in RENDERED_BY if name in by)]
    return level


def problem(path: str, entry: TreeEntry) -> LayoutError | None:
    """Why a name that `files` or `changes` gave cannot be a manifest, None when it can be read."""
    if entry.kind == "link":
        return LayoutError(path, 0, 0, "is a symbolic link", "put the file itself here, or name it in .treeplaneignore")
    if entry.kind == "commit":
        return LayoutError(path, 0, 0, "is a submodule", "add its files themselves, or name it in .treeplaneignore")
    if entry.kind == "tree":
        return LayoutError(path, 0, 0, f"lies more than {_DEEPEST} directories deep", "move it up")
    if not path.isprintable():
        return LayoutError(ascii(path)[1:-1], 0, 0, "has a name that is not printable UTF-8", "rename it")
    return None
