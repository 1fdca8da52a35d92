"""Brings the status branch of the mirror to the source, as soon as it can, and notices when another server does.

A thread of its own, so that a source which is away or slow stops neither commits nor what waits for them. The push's
compare-and-swap is the lock of the fleet: who finds another's commit has lost it, and writes no more.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from apiserver.metrics import fleet
from apiserver.model import clock
from reconciler.repository.chain import endings
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RepositoryError
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.repository.watch import pause
from reconciler.statusbranch.claim import Finding, find
from reconciler.statusbranch.lag import lag_of
from reconciler.statusbranch.writer import StatusWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """Seconds. `retry`: until a push that failed is tried again, and longer each time where that goes to a URL (see
    watch.pause); `apart`: from one push to a URL to the next; `look`: from one look at a repository that the branch has
    of its own to the next."""

    retry: float = 5.0
    apart: float = 1.0
    look: float = 10.0


class Publisher:
    """`start` after the writer, `stop` after it as well: what it committed last is pushed then. `ring` when the source
    may have changed."""

    def __init__(
        self,
        mirror: Mirror,
        writer: StatusWriter,
        is_own: Callable[[str], bool] = lambda _: False,
        settings: PublisherSettings = PublisherSettings(),
    ) -> None:
        """`is_own`: whether a writer of status commits is this server."""
        self.lost = threading.Event()
        """Another server holds the fleet: nothing is pushed any more."""
        self.on_lost: Callable[[], None] = lambda: None
        self._mirror = mirror
        self._writer = writer
        self._is_own = is_own
        self._settings = settings
        self._pushed: str | None = None
        self._looked = -math.inf
        self._failures = 0
        self._told, self._since = "", 0
        self.told: Callable[[str], None] = lambda _: None
        """Called with why nothing can be pushed, and with "" when it can."""
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status-push", daemon=True)
        self._made, self._waiting = 0, 0
        """Commits that were made; how many of them wait."""
        writer.committed = self._committed

    def start(self) -> None:
        self._wake.set()
        self._thread.start()

    def ring(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        """One more attempt, and the end."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def publish(self) -> bool:
        """Looks at the source and pushes what it lacks; whether nothing is left. Raises RepositoryError where it is
        away."""
        if self.lost.is_set():
            return True
        theirs = self._seen()
        if theirs != self._pushed:
            self._found(theirs)
        head = self._mirror.repository.ref(STATUS_REF)
        if self.lost.is_set() or head is None or head == self._pushed:
            return True
        began, made, result = time.monotonic(), self._made, "failure"
        try:
            self._mirror.push_status(head, self._pushed)
            result = "success"
        except BranchCheckedOut as error:
            self._tell(f"the status branch waits to be pushed: {error}")
            return False
        except PushRejected as error:
            return self._refused(head, error)
        finally:
            fleet.STATUS_PUSHES.add(result)
        fleet.PHASES.took(time.monotonic() - began, "publish")
        self._pushed = head
        self._wait(self._made - made)
        return True

    def _committed(self) -> None:
        self._made += 1
        self._wait(self._waiting + 1)
        self._wake.set()

    def _wait(self, number: int) -> None:
        """So many commits wait now."""
        if bool(number) != bool(self._waiting):
            fleet.STATUS_UNPUSHED_SINCE.set(time.time() if number else 0.0)
        self._waiting = number
        fleet.STATUS_UNPUSHED.set(number)

    def _seen(self) -> str | None:
        """Where the branch stands. The watcher of the source does not look at a repository that it has of its own."""
        if not self._mirror.is_apart or time.monotonic() - self._looked < self._settings.look:
            return self._mirror.status_seen()
        found = self._mirror.refresh_status()
        self._looked = time.monotonic()
        return found

    def _refused(self, head: str, error: PushRejected) -> bool:
        """Somebody moved the branch, or the source does not want such a push. Whether nothing is left to be done."""
        repo, theirs = self._mirror.repository, self._mirror.refresh_status()
        if theirs != self._pushed:
            self._found(theirs)
            self._wake.set()
        elif theirs is None or repo.is_ancestor(theirs, head):
            self._tell(f"{self._mirror.status_name} takes no push of the status branch: {error}")
        else:
            self._tell(f"{self._mirror.status_name} lets no history of the status branch end, so it grows on: {error}")
            self._writer.join(next(endings(repo, head)))
            self._wake.set()
        return self.lost.is_set()

    def _found(self, theirs: str | None) -> None:
        """The source's branch is not where we put it last."""
        repo = self._mirror.repository
        finding = find(repo, repo.ref(STATUS_REF), theirs, self._is_own)
        if finding is Finding.ANOTHERS:
            self.lost.set()
            self.on_lost()
            return
        if finding is not Finding.OURS and theirs is not None:
            log.warning("the status branch of the source was written to: %s (%s)", finding.value, theirs)
            self._writer.put_on_top(theirs)
        elif self._pushed is not None:
            log.warning("the status branch of the source is %s", finding.value)
        self._pushed = theirs

    def _run(self) -> None:
        bounds, again = self._settings, 0.0
        while not self._stop.is_set():
            if not (again and self._mirror.status_is_remote):
                self._wake.wait(again or (bounds.look if self._mirror.is_apart else None))
            self._wake.clear()
            done = self._try()
            self._failures = 0 if done or not self._mirror.status_is_remote else self._failures + 1
            again = 0.0 if done else pause(bounds.retry, self._failures)
            if self._mirror.status_is_remote:
                # Whatever is recorded meanwhile: who limits how often it is asked is not asked more often for refusing.
                self._stop.wait(max(bounds.apart, again))
        self._try()

    def _try(self) -> bool:
        try:
            done = self.publish()
            if done and not self.lost.is_set():
                self._over()  # also where nothing was left to push: the trouble was that nobody could look
            return done
        except RepositoryError as error:
            self._tell(f"status branch: {_first_words(error)}")
        except Exception as error:  # a disk that is full, say: it is tried again
            log.exception("the status branch could not be pushed")
            self._tell(f"status branch: {error}")
        return False

    def _tell(self, why: str) -> None:
        since = self._since = self._since or self._waiting_since()  # once: what is told is recorded, too
        text = f"{why}; what is recorded waits in the mirror since {clock.rfc3339(since)}" if since else why
        if text != self._told:
            self._told = text
            log.info("%s", text)  # it is a trouble, which is told
            self.told(text)
        if not self._waiting:  # of before the start, or of somebody who wrote to the source
            self._wait(1)

    def _waiting_since(self) -> int:
        """What was recorded then is the oldest that nobody else can read; 0 where nothing waits."""
        try:
            return lag_of(self._mirror).since if self._mirror.status_is_remote else 0
        except (RepositoryError, OSError):  # it is what is being told
            return 0

    def _over(self) -> None:
        self._told, self._since = "", 0
        self._wait(self._waiting if self._mirror.repository.ref(STATUS_REF) != self._pushed else 0)
        self.told("")


def _first_words(error: RepositoryError) -> str:
    """git explains itself at length."""
    what = error.what.partition("\n")[0]
    return f"{what}: {error.hint}" if error.hint else what
