"""All that a server which holds its fleet does beside loading: the status branch, controllers and syncing, in this
process.

Made by the holder, or in a process of its own (rest.py). Order matters: the first status commit stands in the mirror
before the first write to a cluster.
"""

from __future__ import annotations

import contextlib

from apiserver.registry import tree
from reconciler.commands.installation import Installation
from reconciler.commands.leftovers import Leftovers
from reconciler.commands.loops import Loops
from reconciler.commands.roles import Work
from reconciler.commands.station import Station
from reconciler.commands.tenure import Tenure
from reconciler.repository.errors import RepositoryError
from reconciler.signatures.own import CommitKey
from reconciler.statusbranch.claim import Claim
from reconciler.statusbranch.publisher import Publisher
from reconciler.statusbranch.underway import UnderWay
from reconciler.statusbranch.writer import StatusWriter
from reconciler.syncing.lease import Contender


class Beside:
    """`begin`, then `start`, `stop`; and `end` in any case. `lost`: set when another server holds the fleet."""

    def __init__(self, station: Station, tenure: Tenure, under_way: UnderWay, installation: Installation) -> None:
        self._station, self._tenure, self._under_way = station, tenure, under_way
        store = station.handles.status

        def claim() -> Claim:
            station.roles.check(Work.STATUS, store)
            installation.claim(tree.fleet(store).fleet)
            return Claim(installation.writer, tenure.epoch)

        sign = CommitKey.open(station.settings.keys_dir).sign
        self._writer = StatusWriter(store, station.mirror, under_way=under_way, claim=claim, sign=sign)
        self._publisher = Publisher(station.mirror, self._writer, installation.is_own)
        self._publisher.on_lost = station.lookout.wake.set
        self._writer.told = station.teller.recording
        self._publisher.told = station.teller.status_branch
        self.lost = self._publisher.lost

    def begin(self) -> bool:
        """Makes the first status commit, and has it seen by others; False: another server was faster."""
        self._writer.start()
        if not self._tenure.away:
            with contextlib.suppress(RepositoryError):
                self._publisher.publish()
        return not self.lost.is_set()

    def start(self) -> None:
        self._publisher.start()
        tenure = self._tenure
        contender = Contender(tenure.writer, tenure.epoch, tenure.ended)
        self._loops = Loops(self._station, self._writer.durable, self._under_way.is_so, self._barred, contender)
        self._loops.start()
        self._left = Leftovers(self._loops.syncers, self._station.mirror.repository, self._station.teller.trouble)
        if tenure.anew:
            self._left.start()

    def ring(self) -> None:
        """The source may have changed."""
        self._publisher.ring()

    def stop(self) -> None:
        self._left.stop()
        self._loops.stop()

    def end(self) -> None:
        """What was written last is recorded, and pushed if it can be."""
        self._writer.stop()
        self._publisher.stop()

    def _barred(self) -> str:
        """Why no cluster may be written to."""
        return "another server holds the fleet" if self.lost.is_set() else ""
