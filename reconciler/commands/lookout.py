"""Where the source's branches stand, as the reconciler's process sees them: looked up, waited for, or as last seen.

A repository on this machine is looked at by whoever asks. A URL may take long to answer: the watcher's thread asks it,
and everybody else goes by what it found.
"""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from apiserver.metrics.fleet import COMMITS_SEEN, PHASES
from apiserver.model.redaction import redact
from apiserver.storage.protocol import Store
from reconciler.commands.again import again
from reconciler.commands.looking import Looking
from reconciler.commands.start import StartRefused
from reconciler.commands.teller import Teller
from reconciler.controllers.fleetcondition import Trouble
from reconciler.layout.fleet import status_place
from reconciler.repository.errors import DivergedStatus, RepositoryError, RepositoryUnreadable
from reconciler.repository.mirror import Heads, Mirror
from reconciler.repository.statusaddress import StatusAddress
from reconciler.repository.watch import HeadWatcher
from reconciler.saving.unpushed import TakingIn
from reconciler.statusbranch.clones import stood_in
from reconciler.statusbranch.naming import Undecided, described, in_use, served_before

_AGAIN = 1.0


class StatusSaid(NamedTuple):
    """What who runs the server says of a status branch that a start has to look for. `repository`: that it is there
    (see naming). `anew`: a head with which the fleet begins anew, whether or not that repository answers. `command`:
    of a start."""

    repository: str = ""
    anew: str = ""
    command: tuple[str, ...] = ("treeplane", "up")


NOTHING_SAID = StatusSaid()


class Lookout:
    """`wake` is set when there may be something new, `stop` when the process is to end."""

    def __init__(
        self, mirror: Mirror, teller: Teller, said: StatusSaid = NOTHING_SAID, taking_in: TakingIn | None = None
    ) -> None:
        """`taking_in`: what a recovery left to be put into the mirror."""
        self.wake = threading.Event()
        self.stop = threading.Event()
        self._mirror, self._said, self._taking_in = mirror, said, taking_in
        self._teller = teller
        self.away = False
        """Whether the source did not answer when it was asked last."""
        self.status_away = False
        """The same of a repository that the status branch has of its own, at the start."""
        self.began, self.why = 0.0, ""
        """When that look began (seconds since 1970), and what was wrong."""
        self.looking = Looking()
        self._head = ""
        """Of the desired branch, when it was looked at last."""

    def first(self) -> Heads | None:
        """Waits until the repository answers and has the branch; None at the end. One that is away, but was seen
        before, delays nothing: what runs is kept running. From here on the status branch is where the commit says that
        was served last; at a start that knows of none, see naming. One in a repository of its own has to answer unless
        what it had is here. Raises Refused where that cannot tell."""
        while not self.stop.is_set():
            try:
                heads = self._named()
                self.away = False
                if heads.desired is not None:
                    return heads
                self._teller.trouble(f"the repository has no branch {self._mirror.branch}: push one")
            except RepositoryError as error:
                self._failed(error)
                seen = self._seen_before()
                if seen is not None:
                    return seen
            self.wake.wait(_AGAIN)
        return None

    def look(self) -> Heads | None:
        """Asks the source; None where it does not answer. A status branch that is elsewhere is where it was seen
        last."""
        began, at = time.time(), time.monotonic()
        try:
            heads = self._mirror.refresh_source()
        except RepositoryError as error:
            self._failed(error)
            self.began = began
            return None
        if heads.desired is not None and heads.desired != self._head:
            self._head = heads.desired
            COMMITS_SEEN.add()
            PHASES.took(time.monotonic() - at, "look")
        self.away, self.why, self.began = False, "", began
        self.looking.answers()
        self._teller.over(Trouble.REMOTE_AWAY, Trouble.STATUS_BRANCH_DIVERGED)
        return heads

    def look_at_status(self) -> bool:
        """Asks the repository that the status branch has of its own, for who observes; whether it answers."""
        try:
            self._mirror.refresh_status()
        except RepositoryError as error:
            self._teller.status_branch(f"the status branch's repository: {error}")
            return False
        self._teller.status_branch("")
        self.wake.set()
        return True

    def heads(self) -> Heads | None:
        """As they are by now; of a URL, as it was last seen."""
        return self._mirror.last_seen() if self._mirror.is_remote else self.look()

    def attach(self, store: Store) -> None:
        """From now on what is known of the source stands in the store, too."""
        self._teller.attach(store)
        self.looking.attach(store)

    def ring(self) -> bool:
        """Called by the watcher; whether the source answers."""
        answers = not self._mirror.is_remote or self.look() is not None
        self.wake.set()
        return answers

    def ask(self, watcher: HeadWatcher) -> None:
        """Somebody wants the source looked at now."""
        self.looking.ask()
        watcher.ring()

    def _failed(self, error: RepositoryError) -> None:
        self.away, self.why = True, str(error)
        self.looking.failed()
        diverged = isinstance(error, DivergedStatus)
        self._teller.trouble(str(error), Trouble.STATUS_BRANCH_DIVERGED if diverged else Trouble.REMOTE_AWAY)

    def _named(self) -> Heads:
        heads = self._mirror.refresh_source()
        if heads.desired is None:
            return heads
        unfit = self._take_in()
        moved = self._name(heads.desired)
        if self._mirror.is_apart:
            heads = Heads(heads.desired, self._status_apart(heads.desired))
        elif moved:
            heads = self._mirror.refresh_source()
        if unfit and (unfit := self._take_in()):  # it may go on from what came with the status branch just now
            self._teller.note(f"what was not pushed when the backup was made is not taken in: {unfit}")
        return heads

    def _take_in(self) -> str:
        """What only the mirror of a lost server had. Before anybody looks for what is recorded, which may be in it."""
        return self._taking_in.take() if self._taking_in is not None else ""

    def _status_apart(self, head: str) -> str | None:
        """Where the status branch stands in its own repository. One that is away delays nothing where it is known here
        what it had; else nobody can tell whether this fleet was served before."""
        self.status_away = False
        try:
            return self._mirror.refresh_status()
        except RepositoryError as error:
            if self._mirror.status() is None and self._said.anew != head:
                anew = again(self._said.command, "--new-identities", head)
                raise RepositoryUnreadable(
                    f"nothing is recorded here, and the status branch is in a repository of its own "
                    f"(spec.status.repository): {error.what}",
                    "nothing is served before it answers. Let this server's git reach it:\n"
                    f"  git ls-remote {self._mirror.status_name}\n"
                    "Or, if it is gone for good, begin with new identities, on purpose and for this commit alone:\n"
                    f"  {anew}",
                ) from error
            self.status_away = True
            self._teller.status_branch(f"the status branch's repository: {error}")
            return self._mirror.last_seen().status

    def _seen_before(self) -> Heads | None:
        """What is known of a source that is away, if it was seen before; None where it has to be asked."""
        heads = self._mirror.last_seen()
        if heads.desired is None:
            return None
        try:
            self._name(heads.desired)
            status = self._status_apart(heads.desired) if self._mirror.is_apart else self._mirror.last_seen().status
        except RepositoryError:
            return None
        return Heads(heads.desired, status)

    def _name(self, head: str) -> bool:
        """Whether the status branch is elsewhere than was thought."""
        mirror = self._mirror
        stood_in(mirror.repository, mirror.status())
        known = served_before(mirror.repository)
        try:
            found = status_place(mirror.repository, known) if known else self._found(head)
        except Undecided as error:
            raise StartRefused(undecided(mirror, error)) from error
        return mirror.record_at(found)

    def _found(self, head: str) -> StatusAddress:
        if self._said.anew == head:
            return status_place(self._mirror.repository, head)
        return in_use(self._mirror.repository, head, self._mirror.branch, self._mirror, self._said.repository)


def undecided(mirror: Mirror, error: Undecided) -> str:
    """Why there is no start, and what goes on."""
    if not error.candidates:
        return f"it cannot be told which is the status branch of this fleet: {error}"
    found = [described(mirror.repository, each) for each in error.candidates]
    source, commands = mirror.source_name, []
    for each in error.candidates:
        take = f"git push {source} --delete" if mirror.is_remote else f"git -C {source} branch -D"
        if each.place.repository:
            take = f"git push {redact(each.place.repository)} --delete"
        commands.append(f"  {take} {each.place.branch}")
    return (
        f"it cannot be told which is the status branch of this fleet: {' or '.join(found)}. Commits of {mirror.branch} "
        "name each of them in treeplane.yaml, each holds a record of the fleet, and the data directory, which would "
        "know, is gone. Once served the name never changes, so the others are not the server's. Take them away, and "
        "start again. One of:\n" + "\n".join(commands)
    )
