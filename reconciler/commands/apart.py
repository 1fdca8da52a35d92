"""The same as beside.py, done by another process: this one lends it the roles, and loads.

Made by the holder of a large fleet. Who loads has all roles until its store is filled and it is the holder, so nobody
acts on half a store. Then it says as whom it holds the fleet (tenure.py) and lets go of the other locks; the process
that waits for them takes them (rest.py), and ends when the tenure does, or this process.
"""

from __future__ import annotations

import threading

from apiserver.storage.protocol import Store
from reconciler.commands import tenure as tenures
from reconciler.commands.roles import REST
from reconciler.commands.station import Station
from reconciler.commands.tenure import Tenure
from reconciler.statusbranch.underway import UnderWayThere

_LOOK = 0.02
_SELDOM = 0.5


class Apart:
    """As Beside. `lost`: set when the other process says that another server holds the fleet."""

    def __init__(self, station: Station, tenure: Tenure) -> None:
        self._station, self._tenure = station, tenure
        self._store: Store = station.store
        self.under_way = UnderWayThere(self._store)
        self.lost = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="apart", daemon=True)

    def lend(self) -> None:
        """Has the other process begin, and returns at once."""
        self._store.write(*self._tenure.put()).result()
        self._station.roles.lend(REST)
        self._station.teller.lends()

    def begin(self) -> bool:
        """Returns once the other process has made the first status commit."""
        self.lend()
        while not self._station.lookout.stop.wait(_LOOK):
            found = tenures.said(self._store)
            if found is not None:
                return found != tenures.LOST
        return True

    def start(self) -> None:
        self._thread.start()

    def ring(self) -> None:
        """The other process looks at the source by itself."""
        self.under_way.settle()

    def stop(self) -> None:
        """Nothing that it writes counts for this process any more."""

    def end(self) -> None:
        """Has the other process end what it does, and waits for that where this one goes on."""
        self._stop.set()
        self._store.write(tenures.ended()).result()
        if not self._station.lookout.stop.is_set():
            self._station.roles.lock(self._station.teller.note, self._station.lookout.stop.is_set)

    def _listen(self) -> None:
        while not self._stop.wait(_SELDOM):
            if tenures.said(self._store) == tenures.LOST:
                self.lost.set()
                self._station.lookout.wake.set()
                return
