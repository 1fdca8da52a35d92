"""One excerpt written to one tenant's repository, on top of what its branch has.

Called by excerptwriter.py from a thread of its own, never twice at a time for one source. The branch is this server's
alone, so the tree is the excerpt and nothing else; what somebody put there himself stays in its history, and nothing is
ever forced. Where the branch has what there is to say, nothing is written; where that is known here, nobody is asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from reconciler.repository.errors import RepositoryUnreadable
from reconciler.repository.library import Sign
from reconciler.repository.packwriting import packed
from reconciler.repository.sourcestore import SourceStore
from reconciler.repository.write import commit_bytes, object_name
from reconciler.sourcing.connection import SourceConnection, VisitTime
from reconciler.sourcing.excerpts import Excerpt, WrittenExcerpt
from reconciler.sourcing.faults import SourceFault
from reconciler.sourcing.receivepack import ReceivePack
from reconciler.sourcing.settings import SourceBounds
from reconciler.sourcing.written import WrittenHere

MOST = 64 * 1024 * 1024
"""Bytes of one push, unpacked."""
_COMMIT = 1


@dataclass(frozen=True, slots=True)
class ExcerptPush:
    """`name`: of the source. `sign`: see commit_bytes. `check`: raises where this process may not write any more."""

    name: str
    excerpt: Excerpt
    time: VisitTime
    sign: Sign | None
    check: Callable[[], None]

    def make(self, store: SourceStore, bounds: SourceBounds) -> WrittenExcerpt:
        """What the branch has then. Raises SourceFault, VisitGivenUp, RepositoryError and OSError."""
        try:
            return self._made(WrittenHere(store.make(self.name)), bounds)
        except RepositoryUnreadable:
            store.remove(self.name)  # it costs one push of all that there is
            raise

    def _made(self, here: WrittenHere, bounds: SourceBounds) -> WrittenExcerpt:
        excerpt, before = self.excerpt, here.written()
        branch = excerpt.place.address.branch
        made = excerpt.make(here.repository, before)
        if before is not None and (before.tree, before.branch) == (made.tree, branch) and here.sent() is None:
            return self._arrived(here, before._replace(version=excerpt.version))
        with SourceConnection(excerpt.place, self.time, bounds) as connection:
            remote = ReceivePack(connection, branch, bounds)
            head = remote.head()
            there = here.at(head)
            if there is not None and there.tree == made.tree:
                return self._arrived(here, there._replace(version=excerpt.version, branch=branch))
            objects = here.new(there.tree if there is not None else None, made.tree, MOST)
            if objects is None:
                what = f"the workspace's status has more than {MOST // (1024 * 1024)} MiB"
                raise SourceFault("TooLarge", what, "take spec.source.status out")
            raw = commit_bytes(made.tree, [head] if head else [], made.message, int(time.time()), self.sign)
            sent = WrittenExcerpt(excerpt.version, branch, made.tree, object_name(_COMMIT, raw))
            here.send(sent)
            self.check()
            remote.push(head, sent.head, packed({**objects, sent.head: (_COMMIT, raw)})[0])
            return self._arrived(here, sent)

    def _arrived(self, here: WrittenHere, excerpt: WrittenExcerpt) -> WrittenExcerpt:
        here.arrived(excerpt)
        here.tidy()
        return excerpt
