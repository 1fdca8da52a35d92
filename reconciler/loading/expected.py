"""Renderings that a step will need: begun before its first workspace is judged, so that all cores work on them, and
waited for in such a way that nobody waits for a stranger's.

Called by steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from apiserver.model import paths
from reconciler.layout.tree import WorkspaceDir, WorkspaceTree
from reconciler.loading.sources import Sources
from reconciler.rendering.request import RenderRequest

_LOOK = 0.005
"""Seconds after which it is looked again whether one has come."""


class ExpectedRenderings:
    """Of one step."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._expected: dict[str, list[RenderRequest]] = {}

    def begin(self, tree: WorkspaceTree, places: Iterable[WorkspaceDir | None]) -> None:
        """With those that these workspaces have in a tree."""
        for place in places:
            found = self._sources.rendered(tree, place) if place is not None else ()
            wanted = [each.request for each in found if each.refused is None]
            if place is not None and wanted:
                self._expected[place.path] = wanted
        self._sources.renders.expect([each for wanted in self._expected.values() for each in wanted])

    def is_there(self, path: str) -> bool:
        """Whether a workspace can be judged without waiting, and those that it stands in, which are judged first."""
        above: str | None = path
        while above is not None and self._expected:
            if not self._is_there(above):
                return False
            above = paths.parent(above)
        return True

    def wait(self, path: str, meanwhile: Callable[[], None]) -> None:
        """Until that is so. Whether it ends is up to who renders, who gives up after a time."""
        while not self.is_there(path):
            time.sleep(_LOOK)
            meanwhile()

    def _is_there(self, path: str) -> bool:
        wanted = self._expected.get(path)
        if wanted is None:
            return True
        while wanted and not self._sources.renders.is_expected(wanted[-1]):
            wanted.pop()
        if not wanted:
            del self._expected[path]
        return not wanted
