"""Renderings that a step will need: begun before its first workspace is judged, so that all cores work on them, and
waited for in such a way that nobody waits for a stranger's.

Called by steps, and by renderedagain. Of each workspace a few are begun at a time, so one that has many which take long
is in nobody's way; once the first has come, the rest has so many seconds together.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from apiserver.model import paths
from reconciler.layout.tree import WorkspaceTree
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.renderings import RenderedDirectory
from reconciler.loading.sources import Sources

_LOOK = 0.005
"""Seconds after which it is looked again whether one has come."""
_AT_ONCE = 4
"""Renderings of a workspace that are under way."""
TOGETHER = 60.0
"""Seconds in which all of a workspace have to come, once one has."""


@dataclass(slots=True)
class _Coming:
    """Of one workspace. `since`: when the first came."""

    left: deque[RenderedDirectory]
    under_way: list[RenderedDirectory] = field(default_factory=list)
    since: float | None = None


class ExpectedRenderings:
    """Of one step. `now`: seconds of a clock that never goes back."""

    def __init__(self, sources: Sources, now: Callable[[], float] = time.monotonic) -> None:
        self._sources, self._now = sources, now
        self._coming: dict[str, _Coming] = {}

    def begin(self, tree: WorkspaceTree, places: Iterable[WorkspaceDir | None]) -> None:
        """With those that these workspaces have in a tree."""
        first = []
        for place in places:
            found = self._sources.rendered(tree, place) if place is not None else ()
            wanted = [each for each in found if each.refused is None]
            if place is not None and wanted:
                self._sources.in_time(wanted)
                coming = self._coming[place.path] = _Coming(deque(wanted))
                first.append(self._next(coming))
        # The first of each, then the second of each.
        self._expect([each for each in chain.from_iterable(zip_longest(*first)) if each is not None])

    def is_there(self, path: str) -> bool:
        """Whether a workspace can be judged without waiting, and those that it stands in, which are judged first."""
        above: str | None = path
        while above is not None and self._coming:
            if not self._is_there(above):
                return False
            above = paths.parent(above)
        return True

    def wait(self, path: str, meanwhile: Callable[[], None]) -> None:
        """Until that is so. It ends, since whoever renders gives up after a time."""
        while not self.is_there(path):
            time.sleep(_LOOK)
            meanwhile()

    def _is_there(self, path: str) -> bool:
        coming = self._coming.get(path)
        if coming is None:
            return True
        is_expected = self._sources.renders.is_expected
        still = [each for each in coming.under_way if is_expected(each.request)]
        if len(still) < len(coming.under_way) and coming.since is None:
            coming.since = self._now()
        coming.under_way = still
        self._expect(self._next(coming))
        late = coming.since is not None and self._now() - coming.since > TOGETHER
        if late:
            self._sources.too_late([*coming.under_way, *coming.left])
        if late or not coming.under_way:
            del self._coming[path]
            return True
        return False

    def _next(self, coming: _Coming) -> list[RenderedDirectory]:
        more = []
        while coming.left and len(coming.under_way) < _AT_ONCE:
            more.append(coming.left.popleft())
            coming.under_way.append(more[-1])
        return more

    def _expect(self, some: Sequence[RenderedDirectory]) -> None:
        if some:
            self._sources.renders.expect([each.request for each in some])
