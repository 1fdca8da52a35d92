"""What a status commit says of workspaces that were past the commit that it names, and is to be said again after that.

Kept by the writer. A status commit that is made while a commit is on its way names the last one that all workspaces are
past. What is recorded of one that is beyond it says where it is; one that came with what is on its way, and of which
nothing but its summary is known, is left out. Once all are past what was on its way, the summaries of all of these are
written anew, and of these alone. How far the log was read when nothing of the kind was left stands in fleet.yaml
(`settled`), so a writer that is started anew reads it again from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from apiserver.model.commits import CommitRef
from apiserver.registry.tree import FleetRecord
from reconciler.statusbranch.names import Names


class Unsettled:
    """Of one writer. `settled`: the store's revision up to which nothing is left to be said again.

    A status commit is gathered in several views of the store (stretches.py), on a copy, which counts once the commit is
    made. Of each view: `look`, then `due` and `ahead`.
    """

    def __init__(self) -> None:
        self.settled = 0
        self._clusters = Names()
        self._arriving: frozenset[CommitRef] = frozenset()
        self._due: Iterator[str] = iter(())

    def copy(self) -> Unsettled:
        """Of one with nothing due, as it is between two status commits."""
        made = Unsettled()
        made.settled, made._clusters, made._arriving = self.settled, self._clusters.copy(), self._arriving
        return made

    def look(self, fleet: FleetRecord) -> None:
        """A view is open in which that is the fleet's record. Once something has arrived, whoever was said to be
        beyond what is named may be so no more."""
        if not self._arriving <= set(fleet.arriving):
            self._due = chain(self._due, self._clusters)
            self._clusters = Names()
        self._arriving = frozenset(fleet.arriving)

    def due(self, most: int | None) -> list[str]:
        """The next logical clusters whose summaries may say something else by now; fewer than `most`: the last. None:
        all."""
        return list(islice(self._due, most))

    def ahead(self, names: Names) -> None:
        """The workspaces whose summaries were rendered in that view and that are past the commit that it names."""
        self._clusters.update(names)

    def read(self, until: int) -> None:
        """All that the store says up to a revision is gathered."""
        if not self._clusters:
            self.settled = until
