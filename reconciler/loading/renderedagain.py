"""Workspaces to judge again for what they have rendered: since programs are others than those that the store was made
with, or since something could not be rendered for the moment.

Asked at each look by who follows the branch. Nobody waits for it: it begins with the renderings, and names a workspace
once those have come. What fails is tried again, ever more seldom.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection

from apiserver.storage.protocol import View
from reconciler.layout.tree import WorkspaceTree
from reconciler.loading import feeds
from reconciler.loading.expected import ExpectedRenderings
from reconciler.loading.sourcelist import is_sourced
from reconciler.loading.sources import Sources

_FIRST, _LAST = 30.0, 3600.0
"""Seconds until something that failed is tried again, at first and at most."""


class RenderedAgain:
    """`tree`: of the served commit; `elsewhere`: has what workspaces have in other repositories rendered again, and
    them judged then; None: that is done here. `now`: seconds of a clock that never goes back."""

    def __init__(
        self,
        store: View,
        sources: Sources,
        tree: Callable[[], WorkspaceTree],
        now: Callable[[], float] = time.monotonic,
        elsewhere: Callable[[Collection[str]], None] | None = None,
    ) -> None:
        self._store, self._sources, self._tree, self._now = store, sources, tree, now
        self._elsewhere = elsewhere
        self._by = ""
        self._late: set[str] = set()
        self._pause, self._next = _FIRST, now() + _FIRST
        self._pending: set[str] = set()
        self._expected = ExpectedRenderings(sources)

    def due(self) -> set[str]:
        """The paths of those that can be judged now."""
        if not self._pending and not feeds.any_noted(self._store):
            return set()  # and no program is looked for
        by = self._sources.renders.fingerprint
        if by != self._by:
            self._by = by
            self._begin(feeds.others_by(self._store, by))
        if self._now() >= self._next:
            self._try_again()
        ready = {path for path in self._pending if self._expected.is_there(path)}
        self._pending -= ready
        return ready

    def _try_again(self) -> None:
        late = feeds.late(self._store)
        self._pause = min(2 * self._pause, _LAST) if late and late == self._late else _FIRST
        self._late, self._next = late, self._now() + self._pause
        self._begin(late)

    def _begin(self, some: set[str]) -> None:
        if self._elsewhere is not None and some:
            theirs = {path for path in some if is_sourced(self._store, path)}
            self._elsewhere(theirs)
            some = some - theirs
        if some:
            tree = self._tree()
            self._expected.begin(tree, (tree.find(path) for path in sorted(some)))
            self._pending.update(some)
