"""Directories that look as if they had moved, and say nothing of it: what goes and what comes are two workspaces.

Called by moves, so that who pushes or validates is told before anything is lost. Nothing else follows from it.
"""

from __future__ import annotations

from collections import Counter

from apiserver.model import paths
from reconciler.layout.level import WORKSPACE_FILES
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.movable import Compared
from reconciler.repository.objects import Repository

REMEDY = (
    "no workspace.yaml states its metadata.uid, so one is deleted and another one made; "
    "put the directory back, and move it with `treeplane mv`"
)
"""Of a directory that was renamed and nothing else."""

_ALIKE = 0.5
"""Of the files of a workspace, how many are found again."""


def renames(at: Compared) -> dict[str, str]:
    """By the path of the uppermost that goes where it seems to be. Cost follows what appears and goes."""
    if not at.touched.removed or not at.touched.appeared:
        return {}
    repo = at.tree.repo
    whole, files = dict[str, str](), dict[str, list[str]]()
    for path in sorted(at.touched.appeared, key=paths.depth):
        place = at.place(path)
        if place is not None and not place.theirs:
            whole.setdefault(place.tree, path)
            for blob in _contents(repo, place):
                files.setdefault(blob, []).append(path)
    out: dict[str, str] = {}
    for path in sorted(at.touched.removed, key=paths.depth):
        place = at.touched.left.get(path)
        if place is None or place.theirs or any(paths.is_within(path, top) for top in out):
            continue
        new = whole.get(place.tree) or _alike(_contents(repo, place), files)
        if new and new not in out.values():
            out[path] = new
    return out


def _alike(contents: list[str], files: dict[str, list[str]]) -> str:
    found = Counter(path for blob in contents for path in files.get(blob, ()))
    [(path, count)] = found.most_common(1) or [("", 0)]
    return path if count > _ALIKE * len(contents) else ""


def _contents(repo: Repository, place: WorkspaceDir) -> list[str]:
    """Ids of what is in a workspace's directory beside its workspace.yaml."""
    return [entry.id for entry in repo.entries(place.tree) if entry.name not in WORKSPACE_FILES]
