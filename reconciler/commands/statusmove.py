"""Whether the status branch is to be in another place from now on, as the commit says that is served.

Called by holder and observer, which end then: the process begins once more, as at a start, and looks where the served
commit says. Not before the place where it was has the record of such a commit: whoever has lost everything reads there
where it went.
"""

from __future__ import annotations

from reconciler.layout.fleet import status_place
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import Mirror
from reconciler.repository.statusaddress import barred
from reconciler.statusbranch.naming import served_by

MOVES = "the status branch is to be elsewhere, as the served commit says: it goes on there"


class StatusMove:
    """Of one mirror."""

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self._served, self._place = "", mirror.status_place

    def is_due(self, served: str) -> bool:
        """`served`: the commit. A commit that says nothing new costs a comparison."""
        if not served:
            return False
        try:
            if served != self._served:
                self._served, self._place = served, status_place(self._mirror.repository, served)
            return self._place != self._mirror.status_place and self._is_told()
        except RepositoryError:
            return False  # it is asked again

    def _is_told(self) -> bool:
        mirror, status = self._mirror, self._mirror.status()
        elsewhere = self._place.repository
        if status is None or status != mirror.status_seen() or (elsewhere and barred(elsewhere, mirror.source)):
            return False
        recorded = served_by(mirror.repository, status)
        return bool(recorded) and status_place(mirror.repository, recorded) == self._place
