"""The status branch read back: what a recovered store starts from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, NamedTuple

from apiserver.model import commits, marks, paths
from apiserver.model.commits import NONE, CommitRef, own
from apiserver.model.keys import Key
from reconciler.plan import heldbefore
from reconciler.plan.summary import Summary
from reconciler.repository.difference import walk
from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.objects import Repository
from reconciler.statusbranch import format


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """`id`: the fleet id; `revision`: the newest store revision that the branch covers; `settled`: that up to which
    nothing is left to be said again (see Ahead); `claims`, `kept`, `arriving`, `admitted`, `verified`, `grafts`,
    `regrafting`: see FleetRecord;
    `branch`: the desired branch; `began`: when the branch's history did, RFC 3339 ("" where an older version wrote);
    `targets`: the SyncTargets that are real clusters (None where an older version wrote); `leaving`: workspaces that a
    commit took away and that wait for finalizers, and the directories where they stood; `folders`: in which the fleet
    stands, and then in which it stood before."""

    id: str = ""
    revision: int = 0
    claims: dict[str, str] = field(default_factory=dict)
    branch: str = ""
    began: str = ""
    kept: dict[str, CommitRef] = field(default_factory=dict)
    arriving: tuple[CommitRef, ...] = ()
    settled: int = 0
    targets: tuple[str, ...] | None = None
    leaving: dict[str, str] = field(default_factory=dict)
    admitted: dict[str, dict[str, Any]] = field(default_factory=dict)
    verified: tuple[CommitRef, ...] = ()
    grafts: dict[str, dict[str, str]] = field(default_factory=dict)
    regrafting: dict[str, dict[str, str]] = field(default_factory=dict)
    folders: tuple[str, ...] = ("",)

    def as_file(self) -> format.Object:
        """The content of fleet.yaml."""
        found: dict[str, Any] = {"format": format.FORMAT} if format.FORMAT > 1 else {}
        found |= {"id": self.id, "revision": self.revision, "claims": self.claims, "branch": self.branch}
        found |= {"began": self.began, "kept": {path: str(commit) for path, commit in self.kept.items()}}
        found |= {"arriving": [str(commit) for commit in self.arriving]}
        found |= {"settled": self.settled} if self.settled != self.revision else {}
        found |= {"targets": [*self.targets]} if self.targets is not None else {}
        found |= {"leaving": self.leaving, "admitted": self.admitted}
        found |= {"verified": [str(commit) for commit in self.verified], "grafts": self.grafts}
        found |= {"regrafting": self.regrafting, "path": self.folders[0], "moved": [*self.folders[1:]]}
        return {key: value for key, value in found.items() if value or key in _ALWAYS}


_ALWAYS = frozenset({"id", "revision", "settled", "targets"})
_SERVED = re.compile(rb"^['\"]?served\b", re.MULTILINE)
"""What the summary of a workspace that is held says of it, among other things."""
_KEPT = 1024
"""Distinct summaries that are remembered as they were read."""


def _grafts(found: Any) -> dict[str, dict[str, str]]:
    """Raises ValueError for one that names no commit."""
    out = {str(of): {str(name): str(value) for name, value in said.items()} for of, said in found.items()}
    for said in out.values():
        commits.parse(said["commit"])
    return out


class RecordedByNewer(RepositoryUnreadable):
    """A newer Treeplane wrote it, in a form that this one does not know."""


class RecordedFolder(NamedTuple):
    """What is recorded of one workspace, as git's ids ("" where nothing is): the file of its summary, the directories
    with the residue of its objects and with what waits for its finalizers."""

    summary: str
    status: str
    ending: str


class RecordedFleet:
    """One commit of the status branch. Reading raises RepositoryUnreadable."""

    def __init__(self, repo: Repository, commit: str) -> None:
        self._repo = repo
        self.commit = own(commit)
        self._info = repo.commit(commit)
        self._folders: dict[str, str] | None = None
        self._summaries: dict[str, format.Object] = {}
        self._beside: tuple[str, dict[str, str]] | None = None

    @property
    def source(self) -> CommitRef:
        """The desired commit that was reconciled: the last parent."""
        return own(self._info.parents[-1])

    @property
    def tree(self) -> str:
        return self._info.tree

    def facts(self) -> FleetFacts:
        found = format.load(self._read(format.FLEET) or b"{}")
        with self._said_in(format.FLEET):
            if int(found.get("format") or 1) > format.FORMAT:
                raise RecordedByNewer(
                    f"{self.commit} of the status branch has format {int(found['format'])}, in which a newer Treeplane "
                    f"writes; this one knows formats up to {format.FORMAT}",
                    "nothing was changed: start the newer Treeplane again",
                )
            revision = int(found.get("revision", 0))
            return FleetFacts(
                id=str(found.get("id", "")),
                revision=revision,
                claims=found.get("claims") or {},
                branch=str(found.get("branch", "")),
                began=str(found.get("began", "")),
                kept={path: commits.parse(commit) for path, commit in (found.get("kept") or {}).items()},
                arriving=tuple(commits.parse(str(commit)) for commit in found.get("arriving") or ()),
                settled=int(found.get("settled", revision)),
                targets=tuple(map(str, found["targets"])) if found.get("targets") is not None else None,
                leaving={str(path): str(directory) for path, directory in (found.get("leaving") or {}).items()},
                admitted=found.get("admitted") or {},
                verified=tuple(commits.parse(str(commit)) for commit in found.get("verified") or ()),
                grafts=_grafts(found.get("grafts") or {}),
                regrafting=_grafts(found.get("regrafting") or {}),
                folders=(str(found.get("path") or ""), *map(str, found.get("moved") or ())),
            )

    def leaving(self) -> dict[str, Summary]:
        """What is recorded of workspaces that a commit took away and that wait for their end, by path."""
        named = self.facts().leaving
        found = ((path, self.summary(format.directory_of(path, named[path]))) for path in named)
        return {path: summary for path, summary in found if summary is not None and summary.leaves}

    def folder(self, directory: str) -> RecordedFolder | None:
        """What there is of a workspace; None if nothing is recorded of it. Folders that hold the same are opened
        once."""
        tree = self._sub(directory)
        if tree is None:
            return None
        entries = (e for e in self._repo.entries(tree) if e.name in format.OURS)
        found = {e.name: e.id for e in entries if e.kind == ("blob" if e.name == format.SUMMARY else "tree")}
        there = RecordedFolder(*(found.get(name, "") for name in (format.SUMMARY, format.STATUS, format.ENDING)))
        return there if there.summary else None

    def _sub(self, directory: str) -> str | None:
        """The id of a workspace's folder. The names beside it are kept until one is asked for that stands elsewhere:
        who recovers a fleet comes through directory by directory."""
        above, _, name = directory.rpartition("/")
        if self._beside is None or self._beside[0] != above:
            tree = self._repo.tree_at(self._info.tree, above)
            entries = self._repo.entries(tree) if tree is not None else ()
            self._beside = above, {entry.name: entry.id for entry in entries if entry.kind == "tree"}
        return self._beside[1].get(name)

    def summary(self, directory: str) -> Summary | None:
        folder = self.folder(directory)
        return self.summary_in(directory, folder) if folder is not None else None

    def summary_in(self, directory: str, folder: RecordedFolder) -> Summary:
        """Of the workspace whose folder that is. Workspaces that appeared together share what is read."""
        with self._said_in(f"{directory}/{format.SUMMARY}"):
            found = self._summaries.get(folder.summary)
            if found is None:
                found = format.load(self._repo.blob(folder.summary))
                if len(self._summaries) >= _KEPT:
                    self._summaries.clear()
                self._summaries[folder.summary] = found
            return Summary.from_json(found)

    def served(self) -> set[CommitRef]:
        """The commits at which workspaces that are held are served. Reads each distinct summary."""
        blobs = {entry.id: path for path, entry in walk(self._repo, self.tree) if path.endswith(f"/{format.SUMMARY}")}
        found = set()
        for blob, path in blobs.items():
            with self._said_in(path):
                said = format.load(self._repo.blob(blob))
                found |= {commits.parse(text) for text in (said.get("served") or "", heldbefore.served(said))}
        return found - {NONE}

    def folder_of(self, path: str) -> str:
        """The folder of a workspace that is not where its directory is by now: it moved, and that is held. "" if there
        is none."""
        if self._folders is None:
            self._folders = {owner: folder for owner, folder, _ in self._workspaces()}
        return self._folders.get(path, "")

    @cached_property
    def has_apart(self) -> bool:
        """Whether there are workspaces whose directories are others' by now."""
        return self._repo.tree_at(self._info.tree, format.APART) is not None

    def apart(self) -> Iterator[tuple[str, Summary]]:
        """Workspaces whose directories are others' by now, by their paths. Reads each summary."""
        found = ((path, place, RecordedFolder(blob, "", "")) for path, place, blob in self._apart())
        return ((path, self.summary_in(place, folder)) for path, place, folder in found)

    def ahead(self) -> dict[str, CommitRef]:
        """The folders of workspaces that were past the commit that is named, and where each was. Where some may have
        been, every folder is read, and each distinct summary."""
        found: dict[str, CommitRef] = {}
        said: dict[str, CommitRef] = {}
        for _, folder, blob in self._workspaces() if self.facts().arriving else ():
            if blob not in said:
                with self._said_in(f"{folder}/{format.SUMMARY}"):
                    said[blob] = commits.parse(format.load(self._repo.blob(blob)).get("at") or "")
            if said[blob]:
                found[folder] = said[blob]
        return found

    def folders(self) -> Iterator[tuple[str, str]]:
        """All workspaces by the folders' names, and their folders. Reads every folder, and no file."""
        return ((owner, folder) for owner, folder, _ in self._workspaces())

    def inside(self, folder: str) -> Iterator[str]:
        """The folders of workspaces below another one's. Reads those alone, and no file."""
        tree = self._repo.tree_at(self._info.tree, folder)
        yield from (each for _, each, _ in self._below(tree, folder, "") if each != folder) if tree is not None else ()

    def residues(self, directory: str, resource: str) -> Iterator[format.Object]:
        """Those of a workspace's cluster-scoped objects of one resource."""
        tree = self._repo.tree_at(self._info.tree, f"{directory}/{format.STATUS}/_/{resource}")
        for entry in self._repo.entries(tree) if tree is not None else ():
            with self._said_in(f"{directory}/{format.STATUS}/_/{resource}/{entry.name}"):
                found = format.load(self._repo.blob(entry.id)) if entry.kind == "blob" else None
                if isinstance(found, dict) and isinstance(found.get("metadata"), dict):
                    yield found

    def _workspaces(self) -> Iterator[tuple[str, str, str]]:
        tree = self._repo.tree_at(self._info.tree, format.WORKSPACES)
        yield from self._below(tree, format.WORKSPACES, "") if tree is not None else ()
        yield from self._apart()

    def _apart(self) -> Iterator[tuple[str, str, str]]:
        apart = self._repo.tree_at(self._info.tree, format.APART)
        for path, entry in walk(self._repo, apart, format.APART) if apart is not None else ():
            folder, _, name = path.rpartition("/")
            if name == format.SUMMARY:
                yield ":".join(format.directory_in_git(folder).split("/")[1:]), folder, entry.id

    def _below(self, tree: str, folder: str, owner: str) -> Iterator[tuple[str, str, str]]:
        """Workspaces, their folders and the ids of their summaries. Reads every folder, and no file."""
        entries = self._repo.entries(tree)
        summary = next((entry.id for entry in entries if entry.name == format.SUMMARY), "")
        if summary:
            owner = paths.join(owner, folder.rpartition("/")[2]) if owner else paths.ROOT
            yield owner, folder, summary
        for entry in entries:
            if entry.kind == "tree" and entry.name not in (format.STATUS, format.ENDING):
                yield from self._below(entry.id, f"{folder}/{entry.name}", owner)

    def workspaces_in(self, directory: str) -> dict[bytes, bool]:
        """The names of subdirectories of the repository's directory that are workspaces by themselves, and whether each
        is held: then what stands there may be something else by now. Folders that hold the same are opened once."""
        tree = self._repo.tree_at(self._info.tree, format.directory_of("", directory))
        subs = self._repo.subtrees(tree) if tree is not None else []
        found = {each: self._repo.pick(each.hex(), (format.SUMMARY,)) for each in {folder for _, _, folder in subs}}
        ours = {folder: entries[format.SUMMARY].id for folder, entries in found.items() if entries}
        held = {blob: self._is_held(blob) for blob in {*ours.values()}}
        return {format.name_in_git(name): held[ours[folder]] for _, name, folder in subs if folder in ours}

    def _is_held(self, summary: str) -> bool:
        """Whether a file of a summary says so. It is looked at, not read: there may be as many as workspaces."""
        return _SERVED.search(self._repo.blob(summary)) is not None

    def schemas(self) -> Iterator[tuple[str, format.Object]]:
        """APIResourceSchemas that their providers no longer have: logical cluster and object."""
        tree = self._repo.tree_at(self._info.tree, format.SCHEMAS)
        for path, entry in walk(self._repo, tree) if tree is not None else ():
            yield path.partition("/")[0], format.load(self._repo.blob(entry.id))

    def residue_reader(self, directory: str) -> Callable[[Key], format.Object | None]:
        """Reads the residue of one object of a workspace; None if there is none."""

        @cache  # asked for a few times while the workspace is judged
        def read(key: Key) -> format.Object | None:
            data = self._read(format.status_path(directory, key))
            found = format.load(data) if data is not None else None
            with self._said_in(format.status_path(directory, key)):
                commits.parse(_content_commit(found) if found is not None else "")
            return found

        return read

    def endings(self, directory: str) -> Iterator[format.Object]:
        """What git declares no more of a workspace and waits for its finalizers."""
        tree = self._repo.tree_at(self._info.tree, f"{directory}/{format.ENDING}")
        for _, entry in walk(self._repo, tree) if tree is not None else ():
            yield format.load(self._repo.blob(entry.id))

    def paths(self) -> Iterator[str]:
        """Every file of the branch."""
        for path, _ in walk(self._repo, self._info.tree):
            yield path

    @contextmanager
    def _said_in(self, path: str) -> Iterator[None]:
        """What a file says is somebody's word: what names no commit there cannot be gone on from."""
        try:
            yield
        except ValueError as error:
            raise RepositoryUnreadable(f"{path} of the status commit {self.commit:.10}: {error}") from error

    def _read(self, path: str) -> bytes | None:
        entry = self._repo.entry_at(self._info.tree, path)
        return self._repo.blob(entry.id) if entry is not None and entry.kind == "blob" else None


def _content_commit(residue: format.Object) -> str:
    annotations = (residue.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(marks.SOURCE_COMMIT, ""))
