"""Where the source's branches stand, as the reconciler's process sees them: looked up, waited for, or as last seen.

A repository on this machine is looked at by whoever asks. A URL may take long to answer: the watcher's thread asks it,
and everybody else goes by what it found.
"""

from __future__ import annotations

import threading

from reconciler.commands.teller import Teller
from reconciler.controllers.fleetcondition import Trouble
from reconciler.layout.fleet import status_branch
from reconciler.repository.errors import DivergedStatus, RepositoryError
from reconciler.repository.mirror import Heads, Mirror

_AGAIN = 1.0


class Lookout:
    """`wake` is set when there may be something new, `stop` when the process is to end."""

    def __init__(self, mirror: Mirror, teller: Teller) -> None:
        self.wake = threading.Event()
        self.stop = threading.Event()
        self._mirror = mirror
        self._teller = teller
        self.away = False
        """Whether the source did not answer when it was asked last."""

    def first(self) -> Heads | None:
        """Waits until the repository answers and has the branch; None at the end. One that is away, but was seen
        before, delays nothing: what runs is kept running. From here on the status branch has the name that the commit
        gives it that was served last, at a first start the newest."""
        while not self.stop.is_set():
            try:
                heads = self._named()
                if heads.desired is not None:
                    return heads
                self._teller.trouble(f"the repository has no branch {self._mirror.branch}: push one")
            except RepositoryError as error:
                self._failed(error)
                heads = self._mirror.last_seen()
                if heads.desired is not None:
                    self._name(heads.desired)
                    return self._mirror.last_seen()
            self.wake.wait(_AGAIN)
        return None

    def look(self) -> Heads | None:
        """Asks the source; None where it does not answer."""
        try:
            heads = self._mirror.refresh()
        except RepositoryError as error:
            self._failed(error)
            return None
        self.away = False
        self._teller.over(Trouble.REMOTE_AWAY, Trouble.STATUS_BRANCH_DIVERGED)
        return heads

    def heads(self) -> Heads | None:
        """As they are by now; of a URL, as it was last seen."""
        return self._mirror.last_seen() if self._mirror.is_remote else self.look()

    def ring(self) -> bool:
        """Called by the watcher; whether the source answers."""
        answers = not self._mirror.is_remote or self.look() is not None
        self.wake.set()
        return answers

    def _failed(self, error: RepositoryError) -> None:
        self.away = True
        diverged = isinstance(error, DivergedStatus)
        self._teller.trouble(str(error), Trouble.STATUS_BRANCH_DIVERGED if diverged else Trouble.REMOTE_AWAY)

    def _named(self) -> Heads:
        heads = self._mirror.refresh()
        if heads.desired is not None and self._name(heads.desired):
            return self._mirror.refresh()
        return heads

    def _name(self, head: str) -> bool:
        """Whether the status branch is called otherwise than was thought."""
        found = status_branch(self._mirror.repository, self._mirror.served() or head)
        before, self._mirror.status_branch = self._mirror.status_branch, found
        return before != found
