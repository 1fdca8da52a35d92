"""What the status branch says of one workspace, as far as it is for who reads the repository that its content comes
from (spec.source.status): where it is served, what is wrong with what is not, and the statuses of its objects.

Called by commands/excerpting, for a branch of that repository. It has the form of the workspace's own folder of the
status branch (format.py), at the top:

    _summary.yaml         workspace; served: the commit of that repository; held and errors, only while it is held;
                          waiting: definitions and bindings whose names others have
    _status/…             of an object its name, its status, and who still has to let go of it
    _ending/…             the same of one that waits for its end

What a recovery needs stays on the fleet's branch, which alone is believed: whoever may push here may write what he
likes. Nothing is said of other workspaces, of the fleet's commits, of whoever wrote a field, of Secrets, and of
SyncTargets, whose statuses tell how clusters are reached.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from apiserver.model import commits
from apiserver.model.storagenames import SYNC_TARGETS, WORKSPACES
from reconciler.repository.difference import difference
from reconciler.repository.messages import with_trailers
from reconciler.repository.objects import Repository
from reconciler.repository.write import Batch, Blob, plan_tree, write_pack
from reconciler.signatures.own import EXCERPT
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import RecordedFleet, RecordedFolder

Object = dict[str, Any]

_UNTOLD = frozenset({"secrets", SYNC_TARGETS, WORKSPACES})
"""A Workspace in its own folder is its parent's."""
_LASTING = ("name", "namespace", "deletionTimestamp", "finalizers")
SERVED = "Served-Commit"
"""The trailer that says which commit of that repository is served."""


class WorkspaceExcerpt(NamedTuple):
    """`workspace`: its path. `source`: the name of its repository here. `folder`: what is recorded of it."""

    workspace: str
    source: str
    folder: RecordedFolder

    @staticmethod
    def of(recorded: RecordedFleet, workspace: str, directory: str, source: str) -> WorkspaceExcerpt | None:
        """None where nothing is recorded of the workspace. `directory`: its folder."""
        folder = recorded.folder(directory)
        return WorkspaceExcerpt(workspace, source, folder) if folder is not None else None

    @property
    def version(self) -> str:
        """In one line. The same one is the same files."""
        return " ".join([_FORM, self.workspace, self.source, *(each or "-" for each in self.folder)])

    def write(self, status: Repository, here: Repository, before: tuple[str, str] | None) -> str:
        """The tree of its files, which are in the repository `here` then. `before`: the version and the tree of one
        that is there: what did not change since is not read. Raises RepositoryError."""
        base, old = self._base(status, before)
        files: dict[str, bytes | Blob | None] = {format.SUMMARY: format.dump(self.summary(status))}
        sides = ((format.STATUS, old.status, self.folder.status), (format.ENDING, old.ending, self.folder.ending))
        for mark, one, other in sides:
            for change in difference(status, one or None, other or None, mark):
                there = change.new is not None and change.new.kind == "blob"
                files[change.path] = _told(change.path, status.blob(change.new.id)) if change.new and there else None
        batch = Batch()
        tree = plan_tree(here if base else None, base, files, batch)
        if batch.objects:
            write_pack(here, batch.objects)
        return tree

    def summary(self, status: Repository) -> Object:
        """As its file has it."""
        said = format.load(status.blob(self.folder.summary))
        served = commits.parse(said.get("content") or "")
        out: Object = {"workspace": self.workspace}
        out |= {"served": served.id} if served and served.repository == self.source else {}
        out |= {"held": True, "errors": [*said["errors"]]} if said.get("errors") else {}
        return out | ({"waiting": [*said["waiting"]]} if said.get("waiting") else {})

    def message(self, status: Repository) -> str:
        """Of a commit that has it."""
        said = self.summary(status)
        served = said.get("served", "")
        subject = f"{self.workspace} is held" if "held" in said else f"Status of {self.workspace}"
        trailers = {EXCERPT: self.workspace, **({SERVED: served} if served else {})}
        return with_trailers(f"{subject}{f' at {served:.10}' if served else ''}", [], trailers)

    def _base(self, status: Repository, before: tuple[str, str] | None) -> tuple[str | None, RecordedFolder]:
        """The tree that is gone on from, and what that was made of; none where that cannot be told any more."""
        nothing = None, RecordedFolder("", "", "")
        if before is None:
            return nothing
        said = before[0].split(" ")
        if len(said) != 6 or said[:2] != [_FORM, self.workspace]:
            return nothing
        old = RecordedFolder(*("" if each == "-" else each for each in said[3:]))
        is_there = all(not each or status.has(each) for each in old[1:])
        return (before[1], old) if is_there else nothing


_FORM = "1"
"""Another one with each change of what is said in files."""


def _told(path: str, residue: bytes) -> bytes | None:
    """What is said of one object; None for nothing."""
    if path.split("/")[2] in _UNTOLD:
        return None
    found = format.load(residue)
    metadata = {key: found["metadata"][key] for key in _LASTING if found["metadata"].get(key)}
    status = found.get("status")
    if not status and not metadata.keys() - {"name", "namespace"}:
        return None
    out = {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": metadata}
    return format.dump({**out, **({"status": status} if status else {})})
