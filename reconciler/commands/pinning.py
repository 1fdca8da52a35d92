"""`treeplane pin`, `suspend` and `resume`: commits to a workspace.yaml, made in a clone.

Called by the command line. All three say one thing, `spec.serve`: a pin names a commit, a suspension is a pin to what
is served now, and to resume takes it out. Of a workspace whose content comes from a tenant's repository the commit is
one of that, which no clone of the fleet's has. They ask no server: what is served, and since when a workspace is there,
the status branch says, which a clone has. What would be held is refused here already, by what the server goes by.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import yaml

from apiserver.model import paths
from apiserver.model.commits import NONE
from apiserver.model.identity import logical_cluster_name
from reconciler.commands.clone import WorkTree, clone_of
from reconciler.commands.failure import Failure
from reconciler.commands.filing.asked import Filed, FiledFile
from reconciler.commands.filing.telling import told
from reconciler.commands.validate import recorded_for
from reconciler.layout import edit
from reconciler.layout.errors import BadFile
from reconciler.layout.pin import Pin
from reconciler.layout.sourceref import SourceRef
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspace import API_VERSION, KIND, declaration
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.layout.yamldoc import roots
from reconciler.loading.changeset import ChangeKind
from reconciler.loading.pins import PinFault, absent, against
from reconciler.plan.summary import Summary
from reconciler.repository.errors import RepositoryError
from reconciler.repository.sourcerefs import source_name
from reconciler.statusbranch import format
from reconciler.statusbranch.recorded import RecordedFleet

_NEVER = 1
"""Exit code: the workspace cannot be pinned so."""
_DIGITS = 10
_FULL = re.compile(r"[0-9a-f]{40}")


class PinDone(NamedTuple):
    """`pin`: what the file says by now; `commit`: the one that was made, "" where it said so already; `note`: what
    could not be checked, "" for nothing; `text`: in a dry run what the file would be."""

    workspace: str
    file: str
    change: ChangeKind
    pin: Pin | None
    commit: str
    note: str = ""
    text: bytes | None = None

    def render(self, output: str) -> str:
        """`text`, `json` or `yaml`."""
        if self.text is not None and output != "text":
            notes = [self.note] if self.note else []
            return told(Filed([FiledFile(self.file, self.change, self.text)], dry=True, notes=notes), output)
        if output != "text":
            found = {**self._asdict(), "change": self.change.value, "pin": self.pin.as_said() if self.pin else None}
            found = {name: value for name, value in found.items() if name != "text" and (name != "note" or value)}
            return json.dumps(found, indent=2) + "\n" if output == "json" else yaml.safe_dump(found, sort_keys=False)
        said = ""
        if self.pin is not None:
            until = f" until {self.pin.until}" if self.pin.until else ""
            said = f": commit {self.pin.commit[:_DIGITS]}{until}"
        what = f"the pin of {self.workspace} {'is' if self.text is None else 'would be'} {self.change.value}{said}"
        made = f"{self.file} says so in commit {self.commit[:_DIGITS]}: git push"
        note = f"{self.note}\n" if self.note else ""
        if self.text is not None:
            return f"{what}\n{note}"
        return f"{what}\n{note}{made if self.commit else 'nothing to commit'}\n"


@dataclass(frozen=True, slots=True)
class PinAsked:
    """Of the workspace at `path`, or in that directory. `dry`: nothing is written. `folder`: see clone.opened."""

    path: str
    until: str = ""
    reason: str = ""
    dry: bool = False
    folder: str = ""


def pin(asked: PinAsked, revision: str) -> PinDone:
    """Has a workspace's own content served as a commit has it."""
    return _telling(lambda: _Pinning(asked).set(revision))


def suspend(asked: PinAsked) -> PinDone:
    """Has it stay what it is served with now."""
    return _telling(lambda: _Pinning(asked).keep())


def resume(asked: PinAsked) -> PinDone:
    """Has it follow the branch again."""
    return _telling(lambda: _Pinning(asked).write(None, "Resume {}"))


def _telling(do: Callable[[], PinDone]) -> PinDone:
    try:
        return do()
    except (RepositoryError, BadFile) as error:
        raise Failure(str(error), code=2) from error


class _Pinning:
    """Of one workspace, named by its directory or its path."""

    def __init__(self, asked: PinAsked) -> None:
        self._asked, name = asked, asked.path
        here = Path(name)
        is_path = not here.exists() and paths.is_path(name)
        self._clone = clone = WorkTree(*clone_of(Path() if is_path else here, asked.folder))
        head = clone.repo.resolve("HEAD")
        if head is None:
            raise Failure(f"{clone.top} has no commit yet", "a pin names one", 2)
        self._head, self._recorded = head, recorded_for(clone.repo, head)
        claims = self._recorded.facts().claims if self._recorded is not None else {}
        self._tree = WorkspaceTree(clone.repo, clone.repo.commit(head).tree, claims)
        place = self._tree.find(name) if is_path else self._tree.at(clone.named(here))
        if place is None:
            raise Failure(f"{name} is no workspace of commit {head:.{_DIGITS}}", "name its directory, or its path", 2)
        self._place = place
        clone.require_committed(place.manifest_path)
        data = clone.repo.blob(place.manifest.id) if place.manifest is not None else None
        self._data = data
        said = declaration(data, place.manifest_path) if data is not None else None
        self._pin = said.pin if said is not None else None
        self._source = said.source if said is not None else None

    # -- what is asked for

    def set(self, revision: str) -> PinDone:
        if self._source is not None:
            return self._set_there(self._source, self._to(revision))
        found = self._to(self._clone.commit(revision))
        self._require(found.commit, revision)
        return self.write(found, f"Pin {{}} to {found.commit[:_DIGITS]}")

    def _set_there(self, source: SourceRef, found: Pin) -> PinDone:
        """Of a workspace whose content comes from a tenant's repository, of which nothing is here."""
        if _FULL.fullmatch(found.commit) is None:
            text = (
                f"the content of {self._place.path} comes from {source}, and {found.commit} is no full id of a commit"
            )
            raise Failure(text, "say the 40 digits: git rev-parse, in a clone of that repository", _NEVER)
        note = f"whether {source} ever was at it cannot be checked here: the server says so in CommitApplied"
        return self.write(found, f"Pin {{}} to {found.commit[:_DIGITS]}")._replace(note=note)

    def keep(self) -> PinDone:
        if self._source is not None:
            there = self._to(self._served_there(self._source))
            return self.write(there, f"Suspend {{}} at {there.commit[:_DIGITS]}")
        found = self._to(self._served())
        hint = "it has to have what is served in its history: git pull"
        self._require(found.commit, f"what is served of {self._place.path}", hint)
        return self.write(found, f"Suspend {{}} at {found.commit[:_DIGITS]}")

    def _to(self, commit: str) -> Pin:
        return Pin(commit, self._asked.until, self._asked.reason)

    def write(self, pin: Pin | None, subject: str) -> PinDone:
        """Has workspace.yaml say so, in a commit; every other byte of it stays."""
        place, clone = self._place, self._clone
        file = place.manifest_path
        change = ChangeKind.CONFIGURED if self._pin else ChangeKind.CREATED
        change = ChangeKind.UNCHANGED if pin == self._pin else change if pin is not None else ChangeKind.DELETED
        text = (self._data or b"") if pin == self._pin else _saying(self._data, file, pin)
        if pin == self._pin or self._asked.dry:
            return PinDone(place.path, file, change, pin, "", text=text if self._asked.dry else None)
        (clone.top / file).write_bytes(text)
        if self._data is None:
            clone.run("add", "--", file)
        reason = [f"-m{pin.reason}"] if pin is not None and pin.reason else []
        clone.run("commit", "--quiet", f"-m{subject.format(place.path)}", *reason, "--", file)
        return PinDone(place.path, file, change, pin, clone.repo.resolve("HEAD") or "")

    # -- what may be pinned to

    def _require(self, commit: str, name: str, hint: str = "") -> None:
        """That a server would take it."""
        fault = self._fault(commit)
        if fault is not None:
            raise Failure(f"{name} {fault.text}", hint or fault.hint, _NEVER)

    def _fault(self, commit: str) -> PinFault | None:
        repo, place = self._clone.repo, self._place
        if self._tree.beside(repo.commit(commit).tree).find(place.path, place.directory) is None:
            return absent(self._tree, place, commit)
        if commit == self._head:
            return None
        known, root = self._known(place), self._known(self._tree.find(paths.ROOT))
        tells = known is not None and root is not None and not known.first and known.origin != root.origin
        origin = known.origin if known is not None and tells else None
        return against(self._tree, place, commit, self._head, origin)

    def _known(self, place: WorkspaceDir | None) -> Summary | None:
        """What is recorded of a workspace, None where nothing is."""
        if self._recorded is None or place is None:
            return None
        return self._recorded.summary(format.directory_of(place.path, place.directory))

    def _served(self) -> str:
        """The commit that has what is served; without a status branch that of HEAD."""
        recorded = self._recorded
        if recorded is None:
            return self._pin.commit if self._pin is not None and not self._pin.is_over(time.time()) else self._head
        known = self._known(self._place)
        if known is None or (known.served is not None and not known.served):
            text = f"nothing is served of {self._place.path}, as the status branch has it"
            raise Failure(text, "fetch, and wait until it is; or pin it to a commit", _NEVER)
        commit = (known.served or known.at or recorded.source).id
        pinned = self._pin_at(commit, recorded)
        return pinned.commit if pinned is not None and pinned.name != known.over else commit

    def _served_there(self, source: SourceRef) -> str:
        """The commit of a tenant's repository that is served."""
        known, recorded = self._known(self._place), self._recorded
        if recorded is None:
            text = f"the status branch alone says which commit of {source} is served of {self._place.path}"
            raise Failure(text, "git fetch; or pin it to a commit", _NEVER)
        content = known.content if known is not None else NONE
        first = (known.first if known is not None else "") or self._place.path
        cluster = logical_cluster_name(recorded.facts().id, first, known.origin) if known is not None else ""
        if not content or content.repository != source_name(cluster, source.repository):
            text = f"nothing of {source} is served of {self._place.path}, as the status branch has it"
            raise Failure(text, "git fetch, and wait until it is; or pin it to a commit", _NEVER)
        return content.id

    def _pin_at(self, commit: str, recorded: RecordedFleet) -> Pin | None:
        """What the workspace.yaml of a commit says."""
        repo, place = self._clone.repo, self._place
        there = WorkspaceTree(repo, repo.commit(commit).tree, recorded.facts().claims).find(place.path, place.directory)
        if there is None or there.manifest is None:
            return None
        return declaration(repo.blob(there.manifest.id), there.manifest_path).pin


def _saying(data: bytes | None, file: str, pin: Pin | None) -> bytes:
    """A workspace.yaml with another pin, or none."""
    said = {"serve": pin.as_said()} if pin is not None else {}
    found = roots(data, file) if data is not None else []
    if not found:
        return edit.add(data, file, {"apiVersion": API_VERSION, "kind": KIND, "spec": said})
    value = found[0].value
    spec = {**{name: each for name, each in (value.get("spec") or {}).items() if name != "serve"}, **said}
    rest = {name: each for name, each in value.items() if name != "spec"}
    return edit.replace(data or b"", file, 0, {**rest, "spec": spec} if spec else rest)
