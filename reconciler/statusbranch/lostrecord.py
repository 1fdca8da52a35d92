"""The record of a server that was lost, as a backup of it had it and its repository had not: what it counts for.

Called by a start, an observer and a drill. The commits are that server's own, as it would have pushed them, so pushing
them is no more than what it was about to do: it takes the fleet over from nobody. They count while they go on from what
stands in the source, and not once anything else stands there. Then they are kept for a while and never pushed.
"""

from __future__ import annotations

import logging
import math
import time

from reconciler.repository.chain import goes_on
from reconciler.repository.errors import RepositoryError
from reconciler.repository.mirror import Mirror

log = logging.getLogger(__name__)


class LostRecord:
    """In a mirror that took it in, if any did."""

    def __init__(self, mirror: Mirror, again: float = 60.0) -> None:
        """`again`: seconds until a push that failed is tried again."""
        self._mirror, self._again = mirror, again
        self._tried = -math.inf

    def newest(self, published: str | None) -> str | None:
        """The status commit that counts, where the source's is `published`. No one is asked."""
        lost = self._mirror.lost_record()
        if lost is None:
            return published
        if self._goes_on_from(lost, published):
            return lost
        if published is not None and not goes_on(self._mirror.repository, lost, published):
            self._mirror.keep(lost, published)
        self._mirror.settle_lost_record()
        return published

    def push(self, published: str | None) -> bool:
        """Brings it to the source where that may be, and not again and again; whether it came there just now."""
        lost = self._mirror.lost_record()
        if lost is None or time.monotonic() - self._tried < self._again or not self._goes_on_from(lost, published):
            return False
        self._tried = time.monotonic()
        try:
            self._mirror.push_status(lost, published)
        except RepositoryError as error:
            log.warning("what the lost server recorded last (%s) waits in the mirror to be pushed: %s", lost, error)
            return False
        log.info("what the lost server recorded last (%s) is pushed", lost)
        return True

    def _goes_on_from(self, lost: str, published: str | None) -> bool:
        return published is None or (lost != published and goes_on(self._mirror.repository, published, lost))
