"""What the store says beyond what is recorded, read in views that are short.

Called by the writer. LMDB keeps all pages that a view shows, so while one is open the store's file grows by whatever is
written. So each view is open for so many entries of the log, and the next one goes on where it ended. A file follows
from the newest entry about it, and what a view shows beyond the entry at hand comes in a later one, so in the end all
is as the last view shows it, and that one reads the log to its end.
"""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.storage.baton import BATON
from apiserver.storage.protocol import Store, View
from reconciler.statusbranch.render import Files, Rendering
from reconciler.statusbranch.unsettled import Unsettled
from reconciler.statusbranch.urgency import of_workspaces_end

_BATCH = 1_024
"""Entries of the log that are rendered in one view."""
_SUMMARIES = 1_024
"""Summaries that are written anew in one view."""
_ROUNDS = 8
"""So often what was written meanwhile is read in short views too. Rendering is faster than loading; were it not, the
last view takes all the rest."""


class Stretches:
    """Pieces of files, once. `fleet`, `until`: the fleet's record and the revision of the last view; once all pieces
    are taken, these are what they say.

    `after`: the log is read behind it. Raises Compacted where it does not reach back.
    """

    def __init__(self, store: Store, rendering: Rendering, unsettled: Unsettled, after: int) -> None:
        self._store, self._rendering, self._unsettled, self._after = store, rendering, unsettled, after

    def __iter__(self) -> Iterator[Files]:
        goal = rounds = 0
        done = False
        while not done:
            with self._store.view() as view:
                self.fleet, self.until = self._rendering.over(view), view.revision()
                self._unsettled.look(self.fleet)
                if self._after >= goal:
                    goal, rounds = self.until, rounds + 1
                pieces, done = self._rest(view) if rounds > _ROUNDS else self._next(view)
                self._unsettled.ahead(self._rendering.ahead)
            yield from pieces
            if self._after == self.until:
                rounds = 0  # there are more summaries, and no more than there are
        self._unsettled.read(self.until)

    def _next(self, view: View) -> tuple[list[Files], bool]:
        """What one view is open for, and whether nothing is left behind it."""
        pieces = self._changed(view)
        if self._after < self.until:
            return pieces, False
        due = self._unsettled.due(_SUMMARIES)
        return [*pieces, *self._rendering.summaries(due)], len(due) < _SUMMARIES

    def _rest(self, view: View) -> tuple[list[Files], bool]:
        pieces: list[Files] = []
        while self._after < self.until:
            pieces += self._changed(view)
        return [*pieces, *self._rendering.summaries(self._unsettled.due(None))], True

    def _changed(self, view: View) -> list[Files]:
        with BATON:  # what went with its workspace has no file but in the folder that goes
            changes = view.changes(self._after, _BATCH, of_workspaces_end) if self._after < self.until else []
            self._after = changes[-1].revision if changes else self.until
            return [self._rendering.changed(changes)] if changes else []
