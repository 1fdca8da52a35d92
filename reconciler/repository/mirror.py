"""The mirror: a bare repository in the data directory that sees everything of the source and may be lost at any time.

Called by the loader (what is desired), the status writer (what was published) and the command line. Of a source on this
machine the mirror borrows the objects (git's alternates) and reads the refs where they are (see local); for a URL see
remote. The status branch may be in a repository of its own (see statusaddress), which is a URL: neither of the two is
waited for when the other is looked at.
"""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime
from pathlib import Path
from typing import NamedTuple

from apiserver.model.redaction import redact
from reconciler.repository import library, locks, remote
from reconciler.repository.access import NO_ACCESS, RemoteAccess
from reconciler.repository.chain import endings, goes_on
from reconciler.repository.errors import PushRejected, RepositoryError, RepositoryUnreadable
from reconciler.repository.keep import keep
from reconciler.repository.local import Local
from reconciler.repository.objects import Repository
from reconciler.repository.origin import incomplete
from reconciler.repository.remote import Remote, RemoteSettings
from reconciler.repository.repositories import Repositories
from reconciler.repository.source import is_git_dir, kind_of_source
from reconciler.repository.statusaddress import StatusAddress
from reconciler.repository.statusremote import StatusRemote, status_remote
from reconciler.repository.write import put_ref

log = logging.getLogger(__name__)

STATUS_REF = "refs/treeplane/recorded"
"""The newest status commit that this server wrote, pushed or not."""
LOST_REF = "refs/treeplane/lost"
"""The newest status commit that a server which was lost had written and not pushed, as a backup of it has it; until
something else counts."""
SOURCES = "sources"
"""Where, in the data directory, the repositories are that workspaces have their content from."""
HISTORY = "refs/treeplane/status/"
"""Where the status branch's histories that were ended stay, by date; in the source too, where it takes such refs."""
SERVED_REF = "refs/treeplane/served"
"""Keeps the objects of the served commit."""
_FORMER_STATUS_REF = "refs/treeplane/status"


class Heads(NamedTuple):
    """Where the source's branches stand; None where there is no such branch."""

    desired: str | None
    status: str | None


class Mirror:
    """`repository` reads every object of source and mirror, and is where new status commits are written;
    `repositories`: those that commits are read from, this one and those of sources."""

    goes_there = True
    """Other repositories that a status branch may be in are asked where they are."""

    def __init__(
        self,
        data_dir: Path,
        source: str,
        branch: str,
        status_branch: str,
        settings: RemoteSettings = remote.DEFAULT,
        access: RemoteAccess = NO_ACCESS,
        folder: str = "",
    ) -> None:
        """Opens or creates `<data_dir>/mirror`. `access`: to a source that is a URL. `folder`: in which the fleet
        stands. Raises RepositoryUnreadable when the source is not there."""
        self.source = source
        self.branch = branch
        self.status_branch = status_branch
        self.path = data_dir / "mirror"
        self.is_remote = kind_of_source(source) == "url"
        self._settings = settings
        self._local = Local(source)
        borrowed = "" if self.is_remote else f"{self._local.open().git_dir.resolve() / 'objects'}\n"
        if borrowed.count("\n") > 1:
            raise RepositoryUnreadable(f"{source!r} has a line break in its path", "move it")
        if not (is_git_dir(self.path) and (self.path / "config").is_file()):
            # Also where a start was killed in the middle of this.
            self.path.mkdir(parents=True, mode=0o700, exist_ok=True)
            library.create(self.path)
        alternates = self.path / "objects" / "info" / "alternates"
        if borrowed:
            alternates.parent.mkdir(parents=True, exist_ok=True)
            if not alternates.exists() or alternates.read_text() != borrowed:  # another process may be reading
                alternates.write_text(borrowed)
        else:
            alternates.unlink(missing_ok=True)
        self.repository = Repository(self.path, (folder,))
        self.repositories = Repositories(self.repository, data_dir / SOURCES)
        self._remote = Remote(self.repository, source, settings, access) if self.is_remote else None
        self.status_repository = ""
        """Where the status branch is, if that is not the source."""
        self._apart: Remote | None = None
        self._move_former_ref()

    @property
    def source_name(self) -> str:
        """The source as messages show it."""
        return redact(self.source)

    @property
    def status_name(self) -> str:
        """The same of where the status branch is."""
        return redact(self.status_repository) if self.is_apart else self.source_name

    @property
    def is_apart(self) -> bool:
        """Whether the status branch is in a repository of its own."""
        return self._apart is not None

    @property
    def status_is_remote(self) -> bool:
        return self.is_apart or self.is_remote

    @property
    def status_place(self) -> StatusAddress:
        return StatusAddress(self.status_branch, self.status_repository)

    def record_at(self, place: StatusAddress) -> bool:
        """From now on the status branch is there; whether it was elsewhere. Raises StatusAway for an address that
        nobody goes to."""
        before = self.status_place
        there = self._at(place.repository)
        self._apart = there.remote if there is not None else None
        self.status_branch, self.status_repository = place
        return before != place

    def close(self, seconds: float) -> None:
        """Nobody waits longer than that for a URL any more."""
        for each in (self._remote, self._apart):
            if each is not None:
                each.close(seconds)

    def clear_locks(self) -> None:
        """What a former self that was killed left locked. Only for a process beside which none writes."""
        locks.clear(self.repository.git_dir)
        if not self.is_remote:
            names = [f"refs/heads/{self.branch}", f"refs/heads/{self.status_branch}"]
            locks.clear_own(self._local.open(), names)

    def clear_status_locks(self) -> None:
        """The same of refs that only who records moves, while another process loads."""
        tracked = [self._apart.tracks] if self._apart is not None else []
        locks.clear_refs(self.repository.git_dir, [STATUS_REF, HISTORY, *tracked])
        if not self.is_remote:
            locks.clear_own(self._local.open(), [f"refs/heads/{self.status_branch}"])

    # --- where the source stands

    def refresh(self) -> Heads:
        """Looks at the source anew, and at the status branch where that is elsewhere, and fetches what is new there.
        Raises RepositoryUnreadable and DivergedStatus."""
        heads = self.refresh_source()
        return heads if self._apart is None else Heads(heads.desired, self.refresh_status())

    def refresh_source(self) -> Heads:
        """The same of the source alone: a status branch that is elsewhere is where it was seen last."""
        if self._apart is not None:
            desired = (
                self._remote.look([self.branch])[0] if self._remote is not None else self._local.desired(self.branch)
            )
            heads = Heads(desired, self._whole(self._apart.tracked(self.status_branch)))
        elif self._remote is not None:
            heads = Heads(*self._remote.look([self.branch, self.status_branch]))
        else:
            heads = Heads(*self._local.heads(self.branch, self.status_branch))
        for commit in filter(None, heads):
            self.repository.commit(commit)
        return heads

    def refresh_status(self) -> str | None:
        """Where the status branch stands, looked at anew. Raises as `refresh` does."""
        if self._apart is None:
            return self.refresh().status
        found = StatusRemote(self._apart).newest(self.status_branch)
        if found is not None:
            self.repository.commit(found)
        return found

    def last_seen(self) -> Heads:
        """The heads of URLs as the last looks that went well, or pushes of ours since, left them."""
        of_status = self._apart or self._remote
        return Heads(
            self._whole(self._remote.tracked(self.branch)) if self._remote is not None else None,
            self._whole(of_status.tracked(self.status_branch)) if of_status is not None else None,
        )

    def status_seen(self) -> str | None:
        """Where the status branch stands; of a URL, as it was last seen."""
        if self.status_is_remote:
            return self.last_seen().status
        found = self._local.newest(self.status_branch)
        if found is not None:
            self.repository.commit(found)
        return found

    def branches(self) -> list[str]:
        """The source's branches, for a message that names what could have been meant. Raises RepositoryUnreadable."""
        names = self._remote.branches() if self._remote is not None else self._local.branches()
        return sorted({name.removeprefix("refs/heads/") for name in names})

    def newest(self, name: str) -> str | None:
        """Where a branch of the source stands, with its objects here. Raises RepositoryUnreadable and
        DivergedStatus."""
        return self._remote.look([name])[0] if self._remote is not None else self._local.newest(name)

    def refs(self, prefix: str) -> list[str]:
        """Full names of the source's refs below a prefix. Raises RepositoryUnreadable."""
        return self._remote.refs(prefix) if self._remote is not None else self._local.refs(prefix)

    def elsewhere(self, repository: str) -> Mirror | StatusRemote:
        """What is asked for the branches of the source (""), or of another repository that a status branch may be in.
        Raises StatusAway for an address that nobody goes to."""
        return self._at(repository) or self

    def status_refs(self, prefix: str) -> list[str]:
        """See `refs`: of the repository that the status branch is in."""
        return self.refs(prefix) if self._apart is None else StatusRemote(self._apart).refs(prefix)

    def incomplete(self) -> str:
        """The command that completes a source which is a shallow or partial clone; "" if it is whole, or a URL."""
        return "" if self.is_remote else incomplete(self._local.open())

    # --- pushes

    def push_status(self, commit: str, expected: str | None) -> None:
        """Makes `commit` the source's status branch if that still is `expected` (None: does not exist). A history that
        ended in between stays in the source by its date, where that takes it.

        Raises PushRejected when it is elsewhere or the source refuses, BranchCheckedOut when a work tree of the source
        has the branch checked out, RepositoryUnreadable when the source is away.
        """
        if expected is not None and not self.repository.is_ancestor(expected, commit):
            if not goes_on(self.repository, expected, commit):
                raise PushRejected(
                    f"the status commit {commit} does not descend from {expected}", "read the status branch again"
                )
            self._push_history(commit, expected)
        if (url := self._apart or self._remote) is not None:
            url.push(self.status_branch, commit, expected)
        else:
            self._local.push(self.repository, self.status_branch, commit, expected)

    def push_desired(self, commit: str, expected: str) -> None:
        """Makes `commit` the desired branch of a URL if that still is `expected`. Raises as `push_status` does."""
        assert self._remote is not None, "a branch on this machine is moved, not pushed to"
        self._remote.push(self.branch, commit, expected)

    def push_branch(self, branch: str, commit: str, expected: str | None) -> None:
        """Makes `commit` of the mirror the head of another branch, whatever it goes on from, if that still is
        `expected` (None: does not exist). Raises as `push_status` does."""
        if self._remote is not None:
            self._remote.push(branch, commit, expected)
        else:
            self._local.push(self.repository, branch, commit, expected)

    def _push_history(self, commit: str, expected: str) -> None:
        url = self._apart or self._remote
        for ended in endings(self.repository, commit):
            for ref in self._refs_of(ended):
                try:
                    if url is not None:
                        url.put(ref, ended)
                    else:
                        self._local.put(self.repository, ref, ended)
                except RepositoryError as error:
                    log.warning("%s is kept here and not in %s: %s", ref, self.status_name, error)
            if self.repository.is_ancestor(expected, ended):
                return

    def _at(self, repository: str) -> StatusRemote | None:
        """A repository that a status branch may be in; None for the source. It is gone to as git's own configuration
        says, whatever is given for the source."""
        return status_remote(self.repository, repository, self.source, self._settings) if repository else None

    # --- what is kept here

    def status(self) -> str | None:
        """The status commit kept here, None when there is none or its objects are gone."""
        return self._kept(STATUS_REF)

    def served(self) -> str | None:
        return self._kept(SERVED_REF)

    def lost_record(self) -> str | None:
        """See LOST_REF."""
        return self._kept(LOST_REF)

    def settle_lost_record(self) -> None:
        """The source has it, or something else counts."""
        if self.repository.ref(LOST_REF) is not None:
            self.repository.references.delete(LOST_REF)

    def keep_status(self, commit: str) -> None:
        """Takes over a status that was read from the source."""
        put_ref(self.repository, STATUS_REF, commit)

    def keep_served(self, commit: str) -> None:
        """Keeps the objects of the served commit from being collected."""
        put_ref(self.repository, SERVED_REF, commit)

    def keep_history(self, ended: str, today: date) -> None:
        """Keeps a history of the status branch that ends with `ended`, by its date."""
        name, number = f"{HISTORY}{today.isoformat()}", 1
        while self.repository.ref(name) not in (None, ended):
            number += 1
            name = f"{HISTORY}{today.isoformat()}.{number}"
        self.repository.references.create(name, ended, force=True)

    def keep(self, old: str, new: str) -> str | None:
        """Keeps what the commit `old` has and the branch's head `new` lacks, for 90 days; the ref (see keep)."""
        return keep(self.repository, old, new, datetime.now(UTC).date())

    def _refs_of(self, ended: str) -> list[str]:
        found = self.repository.references
        return [name for name in found if name.startswith(HISTORY) and self.repository.ref(name) == ended]

    def _move_former_ref(self) -> None:
        """The name that an older version gave STATUS_REF is that of a directory now."""
        former = self.repository.ref(_FORMER_STATUS_REF)
        if former is not None:
            self.repository.references.create(STATUS_REF, former, force=True)
            self.repository.references.delete(_FORMER_STATUS_REF)

    def _kept(self, ref: str) -> str | None:
        return self._whole(self.repository.ref(ref))

    def _whole(self, commit: str | None) -> str | None:
        if commit is None or not self.repository.has(commit):
            return None
        return commit if self.repository.has(self.repository.commit(commit).tree) else None
