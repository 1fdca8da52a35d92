"""A tree in which one workspace's own files are what they were in another tree, wherever it stood there.

Called by review/restoration. Own files are manifests, what a directory is rendered of, and workspace.yaml; of a
workspace that is gone also what says which files count (.treeplaneignore). Whatever else lies in the directory stays,
and so do workspaces below it: a file that would be one of theirs by now, or that is ignored, does not come back. No
manifest is read but workspace.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from reconciler.layout import edit, ignore
from reconciler.layout.errors import BadFile
from reconciler.layout.inputs import InputFinder, files_of, is_in
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspace import API_VERSION, KIND, declaration
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.layout.yamldoc import roots
from reconciler.repository.difference import FileChange, difference
from reconciler.repository.objects import Repository, TreeEntry
from reconciler.repository.write import Blob, edit_tree

Object = dict[str, Any]

_FILES = ("blob", "link")
_MODES = {True: b"100755", False: b"100644"}


class CannotRestore(Exception):
    """Why nothing can be put back. `hint`: what to do."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.hint = hint


class StandingPlace(NamedTuple):
    """Where the workspace is to stand: its path, its directory, and what stands there, None where it is gone."""

    path: str
    directory: str
    there: WorkspaceDir | None


@dataclass(frozen=True, slots=True)
class RestoredTree:
    """`tree`: its id. `files`: what of it differs. `left`: files that do not come back, and why."""

    tree: str
    files: tuple[FileChange, ...]
    left: dict[str, str] = field(default_factory=dict)


def restored(now: WorkspaceTree, place: StandingPlace, then: WorkspaceTree, was: WorkspaceDir) -> RestoredTree:
    """Writes trees and a workspace.yaml into the repository of both. Raises CannotRestore."""
    return _Restoring(now, place, then, was).run()


class _Restoring:
    def __init__(self, now: WorkspaceTree, place: StandingPlace, then: WorkspaceTree, was: WorkspaceDir) -> None:
        self._now, self._place, self._then, self._was = now, place, then, was
        self._repo = now.repo
        self._left: dict[str, str] = {}

    def run(self) -> RestoredTree:
        self._require_here()
        back, there = dict(self._back()), self._place.there
        before = [path for path, _ in own_files(self._now, there)] if there is not None else []
        changes: dict[str, Blob | bytes | None] = {**{path: None for path in before if path not in back}, **back}
        own = self._own_in(edit_tree(self._repo, self._now.tree_id, changes))
        others = sorted(own - back.keys())
        if others:
            raise CannotRestore(f"{others[0]} stands there by now", "move it away, and commit, first")
        for path in back.keys() - own:
            if path.rpartition("/")[2] != ignore.FILE:
                self._left[path] = "it is ignored by now"
                del changes[path]
        tree = edit_tree(self._repo, self._now.tree_id, changes)
        return RestoredTree(tree, tuple(difference(self._repo, self._now.tree_id, tree)), self._left)

    def _require_here(self) -> None:
        """That what is to come back was in this repository, and what it would stand beside is."""
        for tree, place, when in ((self._now, self._place.there, "comes"), (self._then, self._was, "came then")):
            source = _source(tree.repo, place)
            if source is not None:
                text = f"the content of {self._place.path} {when} from {source}"
                raise CannotRestore(text, "revert it there, and push; spec.source itself is changed by hand")

    def _back(self) -> Iterator[tuple[str, Blob | bytes]]:
        """What the files of then are to be, by where they are to be."""
        top, manifest = self._place.directory, self._was.manifest
        for path, entry in (*own_files(self._then, self._was), *self._rules()):
            target = top + path.removeprefix(self._was.directory)
            whose = self._foreign(target)
            if whose:
                self._left[target] = f"it would be {whose}'s by now"
                continue
            self._require_room(target)
            is_marker = manifest is not None and path == self._was.manifest_path
            yield target, self._workspace_file(entry, target) if is_marker else _blob(entry)

    def _rules(self) -> Iterator[tuple[str, TreeEntry]]:
        """What said which files count, where the workspace is gone and nothing says that now."""
        if self._place.there is None:
            for path, entry in _rules(self._then, self._was):
                target = self._place.directory + path.removeprefix(self._was.directory)
                if self._repo.entry_at(self._now.tree_id, target) is None:
                    yield path, entry

    def _own_in(self, tree: str) -> frozenset[str]:
        """The workspace's own files in a tree. Raises CannotRestore where it is not there."""
        place, made = self._place, WorkspaceTree(self._repo, tree, _without(self._now.claims, self._place.directory))
        found = made.at(place.directory)
        if found is None or found.path != place.path:
            what = f"would be {found.path}" if found is not None else "would be no workspace"
            raise CannotRestore(
                f"{place.directory} {what} now, and not {place.path}: what it stands in is another, or gone",
                "restore the workspace that it stands in first",
            )
        return frozenset(path for path, _ in own_files(made, found))

    def _foreign(self, target: str) -> str:
        """The path of the workspace below this one that a file would be in; "" for none."""
        above = target.rpartition("/")[0]
        while len(above) > len(self._place.directory):
            found = self._now.at(above)
            if found is not None:
                return found.path
            above = above.rpartition("/")[0]
        return ""

    def _require_room(self, target: str) -> None:
        """That no directory is where a file is to be, and no file where a directory is."""
        tree, at = self._now.tree_id, target
        hint = "move that away, and commit, first"
        entry = self._repo.entry_at(tree, at)
        if entry is not None and entry.kind not in _FILES:
            raise CannotRestore(f"{target} is a {entry.kind} by now", hint)
        while at := at.rpartition("/")[0]:
            entry = self._repo.entry_at(tree, at)
            if entry is not None and entry.kind != "tree":
                raise CannotRestore(f"{at} is a file by now, and {target} is to come back", hint)

    def _workspace_file(self, entry: TreeEntry, target: str) -> Blob | bytes:
        """That of then; which workspace it is, and a pin, it says as today's: a pin of then would have something served
        that nobody asked for, and a UID is whose the directory is."""
        data, here = self._repo.blob(entry.id), self._place.there
        try:
            said = declaration(data, target)
        except BadFile:
            return _blob(entry)
        found = roots(data, target)
        value = found[0].value if found else {}
        keeps = self._kept(said.uid, here)
        made = _saying(value, keeps, self._place.directory.rpartition("/")[2])
        if made == value:
            return _blob(entry)
        if not found:
            return edit.add(data, target, {"apiVersion": API_VERSION, "kind": KIND, **made})
        return edit.replace(data, target, 0, made)

    def _kept(self, uid: str, here: WorkspaceDir | None) -> Object:
        """`uid` and `serve` as they are to be. Of a file that cannot be read nothing is known: then it is the workspace
        that it was. One that is gone has a UID no more."""
        if here is None or here.manifest is None:
            return {}
        data = self._repo.blob(here.manifest.id)
        try:
            said = declaration(data, here.manifest_path)
        except BadFile:
            return {"uid": uid}
        return {"uid": said.uid, "serve": said.pin.as_said() if said.pin is not None else None}


def _source(repo: Repository, place: WorkspaceDir | None) -> SourceRef | None:
    if place is None or place.manifest is None:
        return None
    try:
        return declaration(repo.blob(place.manifest.id), place.manifest_path).source
    except BadFile:
        return None


def own_files(tree: WorkspaceTree, place: WorkspaceDir) -> Iterator[tuple[str, TreeEntry]]:
    """Its manifests, and its workspace.yaml."""
    markers = tree.repo.pick(place.tree, (place.manifest.name, *place.spare)) if place.manifest is not None else {}
    yield from ((f"{place.directory}/{name}", entry) for name, entry in markers.items() if entry.kind in _FILES)
    found = dict(tree.files(place))
    for path, _ in tree.rendered(place):
        del found[path]
        found |= {file: each for file, each in _made_of(tree, place, path) if each.kind in _FILES}
    yield from ((path, entry) for path, entry in found.items() if entry.kind in _FILES)


def _made_of(tree: WorkspaceTree, place: WorkspaceDir, path: str) -> Iterator[tuple[str, TreeEntry]]:
    """What a directory is rendered of, as far as that is the workspace's: what is shared stays as it is."""
    seen = InputFinder().of(tree, place, path)
    own = tuple((each, entry) for each, entry in seen.seen if is_in(each, place.directory))
    yield from files_of(tree, seen._replace(seen=own))


def _rules(tree: WorkspaceTree, place: WorkspaceDir) -> Iterator[tuple[str, TreeEntry]]:
    """The .treeplaneignore files of the directories in which its files are."""
    above = {place.directory}
    for path, _ in tree.files(place):
        while (path := path.rpartition("/")[0]) not in above:
            above.add(path)
    for directory in sorted(above):
        found = tree.repo.entry_at(tree.tree_id, f"{directory}/{ignore.FILE}")
        if found is not None and found.kind == "blob":
            yield f"{directory}/{ignore.FILE}", found


def _saying(value: Object, keeps: Object, name: str) -> Object:
    """What a Workspace says, with what is kept put in."""
    metadata = {key: each for key, each in (value.get("metadata") or {}).items() if key != "uid"}
    metadata |= {"uid": keeps["uid"]} if keeps.get("uid") else {}
    metadata |= {"name": name} if "name" in metadata else {}
    spec = {key: each for key, each in (value.get("spec") or {}).items() if key != "serve"}
    spec |= {"serve": keeps["serve"]} if keeps.get("serve") else {}
    rest = {key: each for key, each in value.items() if key not in ("metadata", "spec")}
    parts = {"metadata": metadata, "spec": spec}
    return {**rest, **{key: part for key, part in parts.items() if part or value.get(key) == part}}


def _without(claims: dict[str, str], directory: str) -> dict[str, str]:
    return {place: path for place, path in claims.items() if place != directory}


def _blob(entry: TreeEntry) -> Blob:
    return Blob(entry.id, b"120000" if entry.kind == "link" else _MODES[entry.executable])
