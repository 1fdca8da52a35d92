"""`treeplane mv OLD NEW`: a workspace's directory moves in a clone, and says which workspace it is.

Called by the command line. It asks no server: the UID of a workspace follows from what the status branch records, which
a clone has. Nothing is committed; what hangs on the path elsewhere (keys/secrets/) the server takes along itself.
"""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import yaml

from apiserver.model import paths
from apiserver.model.identity import logical_cluster_name, object_uid
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from reconciler.commands.clone import WorkTree, clone_of
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import Filed, FiledFile
from reconciler.commands.filing.telling import told
from reconciler.commands.validate import recorded_for
from reconciler.layout import edit
from reconciler.layout.errors import BadFile
from reconciler.layout.level import WORKSPACE_FILES
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspace import API_VERSION, KIND, declaration
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.layout.yamldoc import roots
from reconciler.loading.changeset import ChangeKind
from reconciler.repository.errors import RepositoryError
from reconciler.repository.objects import Repository
from reconciler.statusbranch import format
from reconciler.statusbranch.clones import fetching_for
from reconciler.statusbranch.recorded import RecordedFleet


class MoveDone(NamedTuple):
    """`file`: the workspace.yaml at the new place, which has `text` and states the UID. `dry`: nothing was moved."""

    old: str
    new: str
    file: str
    uid: str
    text: bytes
    dry: bool

    def render(self, output: str) -> str:
        """`text`, `json` or `yaml`; of a dry run as of every command that writes files."""
        would = "would be" if self.dry else "is"
        said = f"{self.old} {would} {self.new} from the next commit on; change nothing else in it with that one."
        if output == "text":
            return f"{said}\n"
        if self.dry:
            return told(Filed([FiledFile(self.file, ChangeKind.CREATED, self.text)], dry=True, notes=[said]), output)
        found = {"from": self.old, "to": self.new, "file": self.file, "uid": self.uid}
        return json.dumps(found, indent=2) + "\n" if output == "json" else yaml.safe_dump(found, sort_keys=False)


def move(old: Path, new: Path, *, dry: bool = False) -> MoveDone:
    """Moves it. Raises Failure."""
    try:
        clone = WorkTree(*clone_of(old.absolute().parent))
        before, after = clone.place(old), clone.place(new)
        if (clone.top / after).exists():
            raise Failure(f"{after} is there already", "a workspace moves to where nothing is", 2)
        clone.require_committed(before)
        _require_unpinned(clone.top, before)
        file = _manifest(clone.top / before)
        text = file.read_bytes()
        stated = _stated(text, file.name)
        uid = stated or _uid(clone.repo, before)
        said = text if stated else _stating(text, file.name, uid)
        done = MoveDone(before, after, f"{after}/{file.name}", uid, said, dry)
        if dry:
            return done
        (clone.top / after).parent.mkdir(parents=True, exist_ok=True)
        clone.run("mv", before, after)
        (clone.top / after / file.name).write_bytes(done.text)
        clone.run("add", "--", done.file)
    except (RepositoryError, BadFile) as error:
        raise Failure(str(error), code=2) from error
    return done


def _require_unpinned(top: Path, directory: str) -> None:
    """What is served of one that is pinned is in no directory that could move."""
    at = time.time()
    for file in sorted(path for name in WORKSPACE_FILES for path in (top / directory).rglob(name)):
        place = file.relative_to(top).as_posix()
        pin = None
        with suppress(BadFile):  # it is held for that, and does not move either
            pin = declaration(file.read_bytes(), place).pin
        if pin is not None and not pin.is_over(at):
            remedy = f"take that out, and push, first: treeplane resume {place.rpartition('/')[0]}"
            raise Failure(f"{place} pins its workspace, which cannot move so", remedy, 2)


def _manifest(directory: Path) -> Path:
    found = next((directory / name for name in WORKSPACE_FILES if (directory / name).is_file()), None)
    if found is None:
        raise Failure(f"{directory} is no workspace", f"a workspace's directory has a {WORKSPACE_FILES[0]}", 2)
    return found


def _stated(text: bytes, name: str) -> str:
    """The UID that a workspace.yaml states, "" for none: the workspace moved before, and keeps the one that it has."""
    found = ((document.value.get("metadata") or {}).get("uid") for document in roots(text, name))
    return str(next(filter(None, found), ""))


def _stating(text: bytes, name: str, uid: str) -> bytes:
    """The same with the UID; every other byte stays."""
    found = roots(text, name)
    if not found:
        return edit.add(text, name, {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"uid": uid}})
    value = found[0].value
    return edit.replace(text, name, 0, {**value, "metadata": {**(value.get("metadata") or {}), "uid": uid}})


def _uid(repo: Repository, directory: str) -> str:
    """As it is served, by what the status branch says."""
    head = repo.resolve("HEAD")
    recorded = recorded_for(repo, head) if head is not None else None
    if recorded is None:
        by_hand = "write metadata.uid into workspace.yaml, as `kubectl get workspace -o yaml` shows it"
        hint = f"{fetching_for(repo, head)}; or {by_hand}"
        raise Failure("this clone has no status branch, which knows the workspace's UID", hint, 2)
    tree = WorkspaceTree(repo, repo.commit(recorded.source.id).tree, recorded.facts().claims)
    place = tree.at(directory)
    above = _above(tree, place) if place is not None else None
    if place is None or above is None:
        text = f"no workspace is served from {directory}, as the status branch has it"
        raise Failure(text, "fetch, and wait until what was pushed last is served", 2)
    key = Key(WORKSPACES, _cluster(recorded, above), "", paths.base(place.path))
    folder = format.directory_of(place.path, directory)
    summary = recorded.summary(folder)
    if summary is None:
        raise Failure(f"{place.path} is not on the status branch yet", "fetch it, and try again", 2)
    residue = recorded.residue_reader(folder)(key) or {}
    said = (residue.get("metadata") or {}).get("uid")
    return str(said or object_uid(recorded.facts().id, key, summary.origin))


def _above(tree: WorkspaceTree, place: WorkspaceDir) -> WorkspaceDir | None:
    """The workspace that it stands in."""
    found = (tree.at(str(above)) for above in PurePosixPath(place.directory).parents)
    return next((each for each in found if each is not None), None)


def _cluster(recorded: RecordedFleet, place: WorkspaceDir) -> str:
    """A workspace's logical cluster name."""
    summary = recorded.summary(format.directory_of(place.path, place.directory))
    if summary is None:
        raise Failure(f"{place.path} is not on the status branch yet", "fetch it, and try again", 2)
    return logical_cluster_name(recorded.facts().id, summary.first or place.path, summary.origin)
