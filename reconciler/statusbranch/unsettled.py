"""What a status commit says of workspaces that were past the commit that it names, and is to be said again after that.

Kept by the writer. A status commit that is made while a commit is on its way names the last one that all workspaces are
past. What is recorded of one that is beyond it says where it is; one that came with what is on its way, and of which
nothing but its summary is known, is left out. Once all are past what was on its way, the summaries of all of these are
written anew, and of these alone. How far the log was read when nothing of the kind was left stands in fleet.yaml
(`settled`), so a writer that is started anew reads it again from there.
"""

from __future__ import annotations

from collections.abc import Iterable

from apiserver.model.commits import CommitRef
from apiserver.registry.tree import FleetRecord
from reconciler.statusbranch.names import Names


class Unsettled:
    """Of one writer. `settled`: the store's revision up to which nothing is left to be said again."""

    def __init__(self) -> None:
        self.settled = 0
        self._clusters = Names()
        self._arriving: frozenset[CommitRef] = frozenset()

    def due(self, fleet: FleetRecord) -> Iterable[str]:
        """The logical clusters whose summaries may say something else by now: all of them, or none while nothing has
        arrived since."""
        return self._clusters if self._is_due(fleet) else ()

    def _is_due(self, fleet: FleetRecord) -> bool:
        return not self._arriving <= set(fleet.arriving)

    def settled_with(self, fleet: FleetRecord, ahead: Names, until: int) -> int:
        """What `settled` is going to be; see `wrote`."""
        left = bool(ahead) or (bool(self._clusters) and not self._is_due(fleet))
        return self.settled if left else until

    def wrote(self, fleet: FleetRecord, ahead: Names, until: int) -> None:
        """All is recorded up to a revision. `ahead`: of the workspaces whose summaries were rendered for that, those
        that are past the commit that is named."""
        self.settled = self.settled_with(fleet, ahead, until)
        if self._is_due(fleet):
            self._clusters.clear()
        self._clusters.update(ahead)
        self._arriving = frozenset(fleet.arriving)
