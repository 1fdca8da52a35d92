"""Names what stands on sync targets of a fleet that began with new identities, as soon as each of them answers.

A thread of the reconciler's process, started only in the run in which `--new-identities` acted.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from apiserver.model.commits import CommitRef
from apiserver.model.counts import counted
from reconciler.controllers.failures import Expected
from reconciler.repository.messages import one_line
from reconciler.repository.objects import Repository
from reconciler.syncing.leftovers import Leftover, leftovers
from reconciler.syncing.target import Syncer

log = logging.getLogger(__name__)

_AGAIN = 5.0
_SHOWN = 10


class Leftovers:
    """`start`, `stop`. `syncers`: those of connected targets, by key; `tell` is called once for each target with
    leftovers."""

    def __init__(
        self, syncers: Callable[[], Mapping[str, Syncer]], repo: Repository, tell: Callable[[str], None]
    ) -> None:
        self._syncers = syncers
        self._repo = repo
        self._tell = tell
        self._looked: set[str] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="leftovers", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def look(self) -> None:
        """Asks each target that was not asked yet."""
        for key, syncer in self._syncers().items():
            if key in self._looked:
                continue
            try:
                found = leftovers(syncer.client, key, self._known)
            except Expected as error:
                log.info("%s was not asked for leftovers: %s", syncer.site.identity.name, error)
                continue
            self._looked.add(key)
            if found:
                self._tell(said(syncer.site.identity.name, found))

    def _known(self, commit: CommitRef) -> bool:
        return not commit.repository and self._repo.has(commit.id)

    def _run(self) -> None:
        while not self._stop.wait(_AGAIN):
            self.look()


def said(target: str, found: list[Leftover]) -> str:
    """What is told of one target. What workspaces are called comes from there, so it is made one line."""
    lines = [one_line(f"{each.namespace}: {each.workspace} at {each.commit:.10}") for each in found[:_SHOWN]]
    rest = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    names = " ".join(each.namespace for each in found[:_SHOWN])
    return "\n  ".join(
        [
            f"sync target {one_line(target)} still runs {counted(len(found), 'namespace')} of this fleet under "
            "identities that it has no more. They are left alone; remove them there when nobody needs them:",
            *lines,
            *rest,
            f"kubectl delete namespace {names}",
        ]
    )
