"""Answers API workers that ask for workspaces as commits have them.

Made by commands/viewer, in a process of its own that follows nothing: it looks at git when it is asked. It keeps which
status commit names which commit, and which stores are there; revisions are looked up and stores are filled in processes
that live for one of them (jobs). Who may read what is asked for was decided before; here it is decided how much of this
server that may take.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from apiserver.endpoints.commitasking import KEPT, CommitFilled, CommitQuestion, raise_refusal, refusal
from apiserver.model import paths
from apiserver.model.errors import StatusError, unavailable
from apiserver.model.failures import described
from reconciler.loading.inpart import Everybody
from reconciler.rendering.rendering import NOWHERE, Renders
from reconciler.repository.access import NO_ACCESS, RemoteAccess
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import SOURCES
from reconciler.repository.objects import Repository
from reconciler.statusbranch.recorded import RecordedFleet
from reconciler.viewing.filling import CommitFilling
from reconciler.viewing.jobs import BoundedJobs, JobLimits
from reconciler.viewing.recordings import Recordings
from reconciler.viewing.revisions import is_whole_id
from reconciler.viewing.shelf import Shelf, ShelfLimits
from reconciler.viewing.sources import RevisionSource, beside

log = logging.getLogger(__name__)

_REPOSITORY = "repository"
_FETCHED = 256 * 1024 * 1024
"""Bytes that are fetched of commits which the mirror does not have, before they are dropped."""


@dataclass(frozen=True, slots=True)
class ViewerLimits:
    """How much of this machine readers of commits may take."""

    shelf: ShelfLimits = field(default=ShelfLimits())
    jobs: JobLimits = field(default=JobLimits())


_USUAL = ViewerLimits()


class Viewer:
    """`source`: the fleet's repository as the mirror in `data_dir` has it. Call it in an event loop's thread, in a
    process without others."""

    def __init__(
        self,
        data_dir: Path,
        source: str,
        limits: ViewerLimits = _USUAL,
        renders: Renders = NOWHERE,
        *,
        folder: str = "",
        access: RemoteAccess = NO_ACCESS,
    ) -> None:
        """`renders`: for directories that are rendered; it has begun with nothing. `folder`: in which the fleet stands.
        `access`: to a source that is a URL. Raises OSError."""
        self._folders: tuple[str, ...] = (folder,)
        self._access = access
        self._renders = renders
        self._mirror, self._source, self._sources = data_dir / "mirror", source, data_dir / SOURCES
        self._shelf = Shelf(data_dir / KEPT, limits.shelf)
        self._jobs = BoundedJobs(limits.jobs)
        self._recordings = Recordings()
        self._filling: dict[tuple[str, str, bool], asyncio.Task[CommitFilled]] = {}
        self._git = data_dir / KEPT / _REPOSITORY
        self._opened: Repository | None = None

    async def answer(self, asked: CommitQuestion) -> CommitFilled:
        """Raises StatusError."""
        if not paths.is_path(asked.path):
            raise StatusError(404, "NotFound", f'"{asked.path}" is no path of a workspace')
        commit = await self._commit(asked)
        kept = self._shelf.find(commit, asked.path, children=asked.children)
        status, recorded = self._recorded(commit)
        if kept is not None and kept.status == status:
            return CommitFilled(commit, kept.name, recorded)
        key = commit, asked.path, asked.children
        if key not in self._filling:
            self._filling[key] = asyncio.create_task(self._fill(asked, commit))
            self._filling[key].add_done_callback(lambda done: self._filled(key, done))
        # Others wait for the same: it goes on where the first of them has gone.
        return await asyncio.shield(self._filling[key])

    def _filled(self, key: tuple[str, str, bool], done: asyncio.Task[CommitFilled]) -> None:
        del self._filling[key]
        if not done.cancelled():
            done.exception()  # it was told whoever waits, if somebody still does

    async def _commit(self, asked: CommitQuestion) -> str:
        """The commit that is meant. One that is named by its id and there is not looked up."""
        repo = self._repo()
        if is_whole_id(asked.rev) and repo.has(asked.rev):
            return asked.rev
        try:
            return await self._job(asked.user, lambda: self._looked_up(asked.rev))
        finally:
            self._forget_fetched()

    def _looked_up(self, rev: str) -> str:
        return RevisionSource(Repository(self._git), self._source, self._access).commit(rev)

    async def _fill(self, asked: CommitQuestion, commit: str) -> CommitFilled:
        status, recorded = self._recorded(commit)
        room = self._shelf.room()

        def fill() -> str:
            repo, renders, sources = Repository(self._git, self._folders), self._renders, self._sources
            filling = CommitFilling(
                repo, commit, asked.path, status, children=asked.children, sources=sources, renders=renders
            )
            filling.into(room)
            return commit

        try:
            await self._job(asked.user, fill)
            kept = self._shelf.put(commit, asked.path, room, status, children=asked.children)
            return CommitFilled(commit, kept.name, recorded)
        finally:
            self._shelf.drop(room)

    def _recorded(self, commit: str) -> tuple[str, str]:
        """The status commit to begin from, and the commit that it names."""
        try:
            self._recordings.refresh(Repository(self._mirror))
            self._folders = self._recordings.folders or self._folders
            status = self._recordings.of(self._repo(), commit)
            return status, RecordedFleet(self._repo(), status).source.id if status else ""
        except RepositoryError as error:
            raise _unreadable(error) from error

    async def _job(self, user: str, work: Callable[[], str]) -> str:
        answer = orjson.loads(await self._jobs.run(user, lambda: _said(work)))
        raise_refusal(answer)
        return str(answer["commit"])

    def _repo(self) -> Repository:
        """Raises StatusError."""
        try:
            if self._opened is None:
                self._opened = beside(self._mirror, self._git)
            self._opened.folders = self._folders
            self._opened.let_go()
            return self._opened
        except (OSError, RepositoryError) as error:
            raise unavailable("the fleet's repository has not been read yet; please try again") from error

    def _forget_fetched(self) -> None:
        """Begins the repository anew where much was fetched into it, once nobody reads it."""
        packs = (self._git / "objects" / "pack").glob("*")
        if not self._jobs.busy and sum(file.stat().st_size for file in packs) > _FETCHED:
            shutil.rmtree(self._git, ignore_errors=True)
            self._opened = None


def _said(work: Callable[[], str]) -> bytes:
    """In a process of its own: what came of it, as JSON."""
    try:
        return bytes(memoryview(orjson.dumps({"commit": work()})))
    except StatusError as error:
        found = error
    except RepositoryError as error:
        found = _unreadable(error)
    except Everybody:
        found = StatusError(503, "ServiceUnavailable", "who else has a word in this commit cannot be told in part")
    except Exception as error:
        log.error("a commit could not be read\n%s", described(error))
        found = StatusError(500, "InternalError", "the commit could not be read: see the log")
    return bytes(memoryview(orjson.dumps(refusal(found))))


def _unreadable(error: RepositoryError) -> StatusError:
    return StatusError(503, "ServiceUnavailable", f"the commit cannot be read: {error}", retry_after=5)
