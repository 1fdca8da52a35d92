"""The process that does what is beside loading, where another one loads: controllers, status branch and syncing.

Started by `up` when the process that loads lends its roles (apart.py). It waits for their locks, does nothing without a
tenure of a loader that lives, and ends with it: what a loader does at its start concerns the store as a whole, and the
next one has all roles again before it begins.
"""

from __future__ import annotations

import logging
import threading

from apiserver.parent import leave
from apiserver.storage.protocol import Store
from apiserver.stores import open_at
from reconciler.commands import tenure as tenures
from reconciler.commands.beside import Beside
from reconciler.commands.installation import Installation
from reconciler.commands.lookout import Lookout
from reconciler.commands.rendering import renderer_of_server
from reconciler.commands.report import Report
from reconciler.commands.roles import REST, Roles, Work
from reconciler.commands.settings import ReconcileSettings
from reconciler.commands.station import Station
from reconciler.commands.teller import Teller
from reconciler.commands.tenure import Tenure, tenure_of
from reconciler.commands.tidying import Tidying
from reconciler.repository.mirror import Mirror
from reconciler.repository.statusaddress import StatusAddress
from reconciler.statusbranch.underway import UnderWayThere

log = logging.getLogger(__name__)

_LAST = 8.0
"""Seconds at the end for a source that does not answer."""
_RING = 2.0
_LOOK = 0.25


class Rest:
    """Call `run`, in a process that may have these roles alone; `stop` from any thread ends it."""

    def __init__(self, settings: ReconcileSettings, report: Report, roles: Roles) -> None:
        self._settings, self._roles = settings, roles
        self._teller = Teller(report)
        self._renderer = renderer_of_server(settings.data_dir, settings.rendering_kubectl, settings.rendering_helm)
        self._stop, self._wake = threading.Event(), threading.Event()
        self._mirror: Mirror | None = None
        self._store: Store | None = None

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        if self._mirror is not None:
            self._mirror.close(_LAST)

    def look(self) -> None:
        """See Roles.look."""
        if self._store is not None:
            self._roles.look(self._store)

    def run(self) -> None:
        try:
            while self._roles.lock(stopped=self._stop.is_set):
                if self._serve():
                    return
                self._roles.lend(REST)
                self._stop.wait(_LOOK)
        finally:
            self._renderer.close()

    def _serve(self) -> bool:
        """Whether there was a tenure, which is over now."""
        if not self._roles.whose(Work.LOADING):
            return False  # nobody loads, and whoever begins to wants all roles
        settings = self._settings
        store = open_at(settings.data_dir / "store", sync=settings.sync_writes)
        try:
            tenure = tenure_of(store)
            if tenure is None or tenure.loading != self._roles.whose(Work.LOADING):
                return False
            self._store = store
            self._do(store, tenure)
            return True
        finally:
            self._store = None
            store.close()

    def _do(self, store: Store, tenure: Tenure) -> None:
        handles = self._roles.handles(store)
        over = threading.Thread(target=self._until_over, args=(store, tenure), name="tenure", daemon=True)
        over.start()
        settings = self._settings
        mirror = self._mirror = Mirror(
            settings.data_dir, settings.source, settings.branch, tenure.status_branch, access=settings.access
        )
        mirror.record_at(StatusAddress(tenure.status_branch, tenure.status_repository))
        mirror.clear_status_locks()
        lookout = Lookout(mirror, self._teller)
        lookout.wake = self._wake
        station = Station(settings, handles, mirror, lookout, self._teller, self._roles, self._renderer)
        self._teller.attach(handles.status)
        installation = Installation(settings.data_dir, writer=tenure.writer)
        beside = Beside(station, tenure, UnderWayThere(handles.status), installation)
        # Packs that the other process rolled up are let go of.
        tidying = Tidying([], store.revision, let_go=mirror.repositories.let_go)
        try:
            if beside.begin():
                handles.status.write(tenures.say(tenures.BEGUN)).result()
                beside.start()
                tidying.start()
                try:
                    while not self._stop.is_set() and not beside.lost.is_set():
                        self._wake.wait(_RING)
                        self._wake.clear()
                        beside.ring()
                finally:
                    tidying.stop()
                    beside.stop()
            if beside.lost.is_set():
                handles.status.write(tenures.say(tenures.LOST)).result()
                self._stop.wait()
        finally:
            beside.end()

    def _until_over(self, store: Store, tenure: Tenure) -> None:
        """Ends this with the tenure, in order; at once where the process that loads is gone, so that the next one need
        not wait."""
        while not self._stop.wait(_LOOK):
            if self._roles.whose(Work.LOADING) != tenure.loading:
                log.warning("the process that loads has ended: this one ends with it")
                leave()
            if tenure_of(store) != tenure:
                self.stop()
