"""Brings the status branch of the mirror to the source, as soon as it can.

A thread of its own, so that a source which is away or slow stops neither commits nor what waits for them. The push's
compare-and-swap is also the lock: when another's push came first, `fenced` is set until what it wrote has been read.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from reconciler.repository.chain import endings, goes_on
from reconciler.repository.errors import BranchCheckedOut, PushRejected, RepositoryError
from reconciler.repository.mirror import STATUS_REF, Mirror
from reconciler.statusbranch.writer import StatusWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    """Seconds. `retry`: until a push that failed is tried again; `apart`: from one push to a URL to the next."""

    retry: float = 5.0
    apart: float = 1.0


class Publisher:
    """`start` after the writer, `stop` after it as well: what it committed last is pushed then."""

    def __init__(
        self,
        mirror: Mirror,
        writer: StatusWriter,
        published: str | None,
        settings: PublisherSettings = PublisherSettings(),
    ) -> None:
        """`published`: where the source's status branch is (None: nowhere yet)."""
        self.fenced = threading.Event()
        self._mirror = mirror
        self._writer = writer
        self._settings = settings
        self._pushed = published
        self._told = ""
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status-push", daemon=True)
        writer.committed = self._wake.set

    def start(self) -> None:
        self._wake.set()
        self._thread.start()

    def stop(self) -> None:
        """One more attempt, and the end."""
        self._stop.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def publish(self) -> bool:
        """Pushes what is not pushed; whether nothing is left. Raises RepositoryError where the source is away."""
        head = self._mirror.repository.ref(STATUS_REF)
        if head is None or head == self._pushed:
            return True
        try:
            self._mirror.push_status(head, self._pushed)
        except BranchCheckedOut as error:
            self._tell(f"the status branch waits to be pushed: {error}")
            return False
        except PushRejected as error:
            self._refused(head, error)
            return False
        self._pushed, self._told = head, ""
        self.fenced.clear()
        return True

    def _refused(self, head: str, error: PushRejected) -> None:
        """Somebody moved the branch, or the source does not want such a push."""
        repo, theirs = self._mirror.repository, self._mirror.refresh().status
        if theirs == self._pushed:
            if theirs is None or repo.is_ancestor(theirs, head):
                self._tell(f"{self._mirror.source_name} takes no push of the status branch: {error}")
                return
            self._tell(f"{self._mirror.source_name} lets no history of the status branch end, so it grows on: {error}")
            self._writer.join(next(endings(repo, head)))
        elif theirs is None or goes_on(repo, theirs, head):
            log.warning("the status branch of the source is gone or behind; it is pushed again (%s)", error)
        else:
            self.fenced.set()
            log.warning("status branch: another server wrote to it; putting our files on top (%s)", error)
            self._writer.put_on_top(theirs)
        self._pushed = theirs
        self._wake.set()

    def _run(self) -> None:
        done = True
        while not self._stop.is_set():
            self._wake.wait(None if done else self._settings.retry)
            self._wake.clear()
            done = self._try()
            if self._mirror.is_remote:
                self._stop.wait(self._settings.apart)
        self._try()

    def _try(self) -> bool:
        try:
            return self.publish()
        except RepositoryError as error:
            self._tell(f"status branch: {error}")
            return False

    def _tell(self, text: str) -> None:
        if text != self._told:
            self._told = text
            log.warning("%s", text)
