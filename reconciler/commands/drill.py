"""`treeplane drill`: whether a fleet comes back from its repository, before it has to. Needs no server.

Called by the command line. What is cloned, loaded and compared is reconciler/drilling's, in a directory that is thrown
away; how it is told is drilling/telling's. The source and the keys are only read.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from apiserver.auth.keys import KeysError
from apiserver.model.hostedrepository import PLACE
from apiserver.model.redaction import redact
from reconciler.commands import fleetfolder
from reconciler.commands.clone import clone_of
from reconciler.commands.failure import BROKEN, BUSY, Failure
from reconciler.commands.remoteaccess import check_access
from reconciler.commands.rendering import renderer_of_user
from reconciler.drilling.freshclone import CloneAsked, NothingRecorded, clone
from reconciler.drilling.rehearsal import KeptAside, rehearse
from reconciler.drilling.result import Drill, point_of
from reconciler.repository.errors import RepositoryError, StatusAway
from reconciler.repository.gitversion import require_git
from reconciler.repository.library import set_fsync
from reconciler.repository.objects import Repository
from reconciler.repository.source import is_repository, kind_of_source
from reconciler.statusbranch.claim import claim_of
from reconciler.statusbranch.naming import Undecided

DIFFERENT = 1
"""Exit code: a recovery does not give what is recorded, or that is not the server's."""


def drill(asked: CloneAsked, beside: KeptAside) -> Drill:
    """Of a URL, a repository, or a data directory with one; "" for the clone that this is called in."""
    where, stands = location(asked.source, asked.folder)
    check_access(where, asked.access)
    set_fsync(False)  # what is written is thrown away
    with tempfile.TemporaryDirectory(prefix="treeplane-") as scratch:
        try:
            require_git()
            return _drilled(replace(asked, source=where, folder=stands), beside, Path(scratch))
        except NothingRecorded as error:
            raise Failure(str(error), error.hint) from error
        except Undecided as error:
            hint = "take away those that no server wrote: git push <source> --delete <branch>"
            raise Failure(f"commits name several status branches, and each is one: {error}", hint) from error
        except KeysError as error:
            raise Failure(str(error)) from error
        except RepositoryError as error:
            away = isinstance(error, StatusAway) or kind_of_source(where) == "url"
            raise Failure(str(error), code=BUSY if away else BROKEN) from error


def exit_code(found: Drill) -> int:
    return 0 if found.good else DIFFERENT


def _drilled(asked: CloneAsked, beside: KeptAside, scratch: Path) -> Drill:
    began = time.monotonic()
    cloned = clone(asked, scratch, beside.unpushed)
    served = cloned.recorded.facts().branch
    if served not in ("", asked.branch):
        raise Failure(f"this fleet is served from branch {served}, as its status branch says", f"--branch {served}", 2)
    stands = cloned.recorded.facts().folders[0]
    if stands != asked.folder:
        raise Failure(
            f"this fleet stands in {stands or 'no folder'}, as its status branch says", f"--path {stands or '.'}", 2
        )
    if beside.fleet not in ("", fleet := cloned.recorded.facts().id):
        raise Failure(
            f"the backup is of another fleet, {beside.fleet}, and this one is {fleet}", "give one of this fleet"
        )
    took = time.monotonic() - began
    try:
        with closing(renderer_of_user()) as renders:
            rehearsed = rehearse(cloned, asked.branch, beside, scratch, renders)
        holder = claim_of(cloned.repo, cloned.recorded.commit.id).writer
        return Drill(redact(asked.source), point_of(cloned), took, rehearsed, holder, cloned.unpushed)
    except RepositoryError as error:
        what = error.what.replace(str(cloned.repo.path), "the clone")
        text = f"something that the status branch names did not come with the clone ({what})"
        raise NothingRecorded(
            text, "push it from a clone or a mirror that has it; a server's data has a mirror/"
        ) from error


def _folder(source: str) -> str:
    repo = Repository(source)
    fleetfolder.settle(repo, None, repo.path)
    return repo.folders[0]


def location(source: str, folder: str) -> tuple[str, str]:
    """Where it is, and the folder of the fleet: the one that is named, or as fleetfolder finds it."""
    try:
        if not source:
            top, repo = clone_of(Path(), folder)
            return str(top), repo.folders[0]
        kind, hosted = kind_of_source(source), Path(source) / PLACE
        if kind != "directory":
            return source, folder or _folder(source) if kind == "repository" else folder
        if is_repository(hosted):
            return str(hosted), folder or _folder(str(hosted))
    except RepositoryError as error:
        raise Failure(str(error), code=2) from error
    raise Failure(f"{source} is no repository", "name a repository, its URL, or the data directory of a server", 2)
