"""Serves proposals while the server holds its fleet: a thread beside the one that loads, so that neither waits for the
other. Made by the holder; what it does is loading/proposals'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event, Thread

from apiserver.storage.protocol import RoleLost, Store
from reconciler.commands.settings import ReconcileSettings
from reconciler.forges.comparing import ForgeHint, compare_url
from reconciler.loading.proposals import Proposals
from reconciler.loading.trial import Trial
from reconciler.plan.deletions import ALLOW
from reconciler.repository.mirror import Mirror
from reconciler.repository.proposals import ProposalBranches

_AGAIN = 0.1
"""Seconds after which who waits for a commit that is being loaded is looked at again."""


class Proposing:
    """`start`, `stop`."""

    def __init__(self, store: Store, proposals: Proposals) -> None:
        self._store, self._proposals = store, proposals
        self._bell, self._stop = Event(), Event()
        self._thread = Thread(target=self._run, name="proposals", daemon=True)
        self._stop_hearing: Callable[[], None] = lambda: None

    def start(self) -> None:
        self._stop_hearing = self._store.subscribe(self._bell.set)
        self._bell.set()  # what waited before
        self._thread.start()

    def stop(self) -> None:
        """What is under way is finished, unless it takes long: an end in the middle loses nothing."""
        self._stop_hearing()
        self._stop.set()
        self._bell.set()
        if self._thread.is_alive():
            self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._bell.wait()
            self._bell.clear()
            try:
                self._serve()
            except RoleLost:
                return  # the process ends

    def _serve(self) -> None:
        while not self._stop.is_set() and self._proposals.waiting():
            if not self._proposals.serve():
                self._stop.wait(_AGAIN)


def proposals(
    settings: ReconcileSettings, store: Store, mirror: Mirror, trial: Trial, ours: Callable[[], None]
) -> Proposals:
    """`ours`: see Desired."""
    hint = ForgeHint(settings.forge or "", settings.forge_url, settings.forge_repository)
    page = partial(_page, mirror.source if mirror.is_remote else "", settings.branch, hint)
    return Proposals(store, ProposalBranches(mirror, ours, carried=[ALLOW]), trial, page)


def _page(source: str, base: str, hint: ForgeHint, branch: str) -> str:
    """A branch of a repository on this machine is on no forge."""
    return compare_url(source, base, branch, hint) if source else ""
