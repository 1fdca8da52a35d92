"""What a rendering is made of: which directories and files of a tree its program is to see.

Called by loading/renderings. That is the rendered directory, and whatever its kustomizations name that lies elsewhere,
as far as it is the workspace's own, or in one of the directories that treeplane.yaml shares; what is named there is
followed in turn. In a tenant's repository (contenttree) nothing is shared: what the source's path holds is seen, but
of no other workspace than those that the workspace stands in.
A path that no kustomization writes out is not seen, so nothing can depend on what is not known here. Reads the
kustomizations, each once for a directory's content, and no other file.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from apiserver.model.remembered import Remembered
from reconciler.layout.errors import BadFile
from reconciler.layout.fleet import read_fleet
from reconciler.layout.level import RENDERED_BY
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.layout.yamldoc import roots
from reconciler.repository.objects import TreeEntry

_CHART = RENDERED_BY[-1]
_KUSTOMIZATIONS = frozenset(RENDERED_BY) - {_CHART}
_LONGEST = 1024
"""Characters of a path that a kustomization names."""
_LARGEST = 1024 * 1024
"""Bytes of a kustomization that is looked through."""
_MOST, _MOST_BYTES = 20_000, 4 * 1024 * 1024
"""Files below which kustomizations are looked for, and bytes of those that are looked through."""
_REMEMBERED, _EACH = 2 * 1024 * 1024, 256


class NamedPaths(NamedTuple):
    """What the kustomizations in a directory name that is above them: `paths` has the directory of one, relative, and a
    path. `files`: how many were looked at for that, and `read` bytes of; where that is too much it is not looked on.
    `foreign`: the directories of other workspaces in it."""

    paths: tuple[tuple[str, str], ...]
    files: int
    read: int
    foreign: tuple[str, ...]


class Inputs(NamedTuple):
    """`seen`: what the program sees, by path: directories, and files that are named by themselves. `elsewhere`: all
    paths outside of the rendered directory that are named, there or not, seen or not; what they come to say `states`.
    `outside`: those of them that are there and not to be seen. `fault`: why it cannot be told what it is made
    of. `digest`: of all of that."""

    seen: tuple[tuple[str, TreeEntry], ...]
    elsewhere: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    fault: str = ""
    digest: str = ""


class InputFinder:
    """Remembers what kustomizations name, of one repository. Safe from several threads."""

    def __init__(self) -> None:
        self._named: Remembered[str, NamedPaths] = Remembered(_REMEMBERED)

    def of(self, tree: WorkspaceTree, workspace: WorkspaceDir, path: str) -> Inputs:
        """`path`: what makes a directory of the workspace a rendered one."""
        directory, _, name = path.rpartition("/")
        return _Finding(self._named, tree, workspace, directory).run(follows=name != _CHART)


def states(tree: WorkspaceTree, paths: Collection[str]) -> list[str]:
    """What some paths come to in a tree: where two trees say the same, the same is seen there."""
    found = ((tree.repo.entry_at(tree.tree_id, path) if _may_be_seen(tree, path) else None) for path in paths)
    return [f"{entry.kind} {entry.id}" if entry is not None else "" for entry in found]


def states_there(tree: WorkspaceTree, border: str, paths: Collection[str]) -> list[str]:
    """The same in a tenant's repository, within the path of a source."""
    entries = (tree.repo.entry_at(tree.tree_id, path) for path in paths)
    owners = (owner_of(tree, border, path) for path in paths)
    return [f"{e.kind} {e.id} {owner}" if e is not None else "" for e, owner in zip(entries, owners, strict=True)]


def shares_differ(one: WorkspaceTree, other: WorkspaceTree) -> bool:
    """Whether anything differs in the directories that two trees share."""
    shared = shared_by(one)
    return shared != shared_by(other) or states(one, shared) != states(other, shared)


def _may_be_seen(tree: WorkspaceTree, path: str) -> bool:
    return path.startswith(f"{tree.root}/") or is_shared(tree, path)


def is_shared(tree: WorkspaceTree, path: str) -> bool:
    """Whether it is, or is in, one of the directories that treeplane.yaml shares."""
    return any(is_in(path, shared) for shared in shared_by(tree))


def shared_by(tree: WorkspaceTree) -> tuple[str, ...]:
    if not tree.is_fleets:
        return ()
    try:
        return read_fleet(tree.repo, tree.tree_id).shared
    except BadFile:
        return ()  # a commit with such a file is held as a whole


def owner_of(tree: WorkspaceTree, border: str, path: str) -> str | None:
    """The directory of the workspace whose a path is that lies within a border, where one begins, too; None for one
    outside."""
    if not is_in(path, border):
        return None
    while path != border and tree.at(path) is None:
        path = path.rpartition("/")[0]
    return path


def is_in(path: str, directory: str) -> bool:
    """`directory`: "" for the top."""
    return not directory or path == directory or path.startswith(f"{directory}/")


def files_of(tree: WorkspaceTree, inputs: Inputs) -> Iterator[tuple[str, TreeEntry]]:
    """Every file that the program sees. No workspace's below, no submodule."""
    for path, entry in inputs.seen:
        found = tree.all_below(path) if entry.kind == "tree" else ((path, entry),)
        yield from ((file, each) for file, each in found if each.kind in ("blob", "link"))


class _Finding:
    def __init__(
        self, named: Remembered[str, NamedPaths], tree: WorkspaceTree, workspace: WorkspaceDir, directory: str
    ) -> None:
        self._remembered, self._tree, self._workspace, self._directory = named, tree, workspace, directory
        self._seen: dict[str, TreeEntry] = {}
        self._elsewhere: set[str] = set()
        self._outside: set[str] = set()
        self._foreign: set[str] = set()
        self._left, self._unread = _MOST, _MOST_BYTES

    def run(self, *, follows: bool) -> Inputs:
        tree, pending, fault = self._tree, [self._directory], ""
        while pending and not fault:
            path = pending.pop()
            entry = tree.repo.entry_at(tree.tree_id, path) if path else TreeEntry("", tree.tree_id, "tree")
            if entry is None or any(is_in(path, other) for other in self._seen):
                continue
            self._seen = {other: each for other, each in self._seen.items() if not is_in(other, path)}
            self._seen[path] = entry
            if entry.kind == "tree" and follows:
                named = self._named(path, entry.id)
                self._left, self._unread = self._left - named.files, self._unread - named.read
                self._foreign.update(named.foreign)
                for base, text in named.paths:
                    pending += self._target(posixpath.join(path, base), text)
            if self._left < 0:
                fault = f"what it names has more than {_MOST:,} files"
            elif self._unread < 0:
                fault = f"what it names has kustomizations of more than {_MOST_BYTES // 2**20} MiB"
        seen = tuple(sorted(self._seen.items()))
        digest = hashlib.sha256(repr((self._directory, follows, seen, sorted(self._foreign))).encode()).hexdigest()
        return Inputs(seen, tuple(sorted(self._elsewhere)), tuple(sorted(self._outside)), fault, digest)

    def _target(self, base: str, text: str) -> Iterator[str]:
        """Where a path leads that a kustomization in the directory `base` names, if that is to be seen."""
        target = posixpath.normpath(posixpath.join(base, text))
        if target.startswith(("..", "/")) or target == "." or is_in(target, self._directory):
            return
        self._elsewhere.add(target)
        if is_shared(self._tree, target) or self._is_seen(target):
            yield target
        elif self._tree.repo.entry_at(self._tree.tree_id, target) is not None:
            self._outside.add(target)

    def _is_seen(self, path: str) -> bool:
        """Whether it is the workspace's, or of one that this stands in, as far as the border goes. What is around the
        workspace would take it in, and no base does that."""
        own = self._workspace.directory
        owner = owner_of(self._tree, self._tree.border(self._workspace), path)
        return owner is not None and is_in(own, owner) and (path == own or not is_in(own, path))

    def _named(self, directory: str, tree_id: str) -> NamedPaths:
        tree = self._tree
        rules = " ".join(each.id for each in tree.stack(directory.rpartition("/")[0]))
        key = f"{tree_id} {directory} {rules}"
        # In a tenant's repository a workspace is what has a workspace.yaml there, whoever claims it.
        claimed = tree.is_fleets and any(is_in(claim, directory) for claim in tree.claims)
        found = self._remembered.get(key) if not claimed else None
        if found is None:
            found = self._look(directory)
            if not claimed:
                size = _EACH + sum(_EACH + len(text) for _, text in found.paths)
                self._remembered.put(key, found, size + sum(_EACH + len(path) for path in found.foreign))
        return found

    def _look(self, directory: str) -> NamedPaths:
        repo, paths, foreign, files, read = self._tree.repo, list[tuple[str, str]](), list[str](), 0, 0
        for path, entry in self._tree.all_below(directory):
            files += 1
            if files > _MOST or read > _MOST_BYTES:
                break
            if entry.kind == "tree":
                foreign.append(path)
            above, _, name = path.rpartition("/")
            if name in _KUSTOMIZATIONS and entry.kind == "blob" and repo.blob_size(entry.id) <= _LARGEST:
                data = repo.blob(entry.id)
                read += len(data)
                if b".." in data and read <= _MOST_BYTES:
                    base = above[len(directory) + 1 :] if directory else above
                    paths += ((base, text) for text in _paths_in(data, path))
        return NamedPaths(tuple(paths), files, read, tuple(foreign))


def _paths_in(data: bytes, path: str) -> Iterator[str]:
    """What may be a path that leads upwards. One that is not written out as it is (an escape) leads nowhere."""
    try:
        values = [root.value for root in roots(data, path)]
    except BadFile:
        return  # which the program says, too
    for text in _texts(values):
        if ".." in text.split("/") and len(text) <= _LONGEST and "\n" not in text and text.encode() in data:
            yield text


def _texts(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            pending += part.values()
        elif isinstance(part, Collection):
            pending += part
