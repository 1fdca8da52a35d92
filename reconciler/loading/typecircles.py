"""WorkspaceTypes that extend themselves, by way of others: nothing is of such a type.

Called by phases.declaring. Here those are found that one workspace declares by itself, so that nobody else is held for
them. What several workspaces make of it together is said where a workspace asks for such a type
(registry/workspacetypes).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.model.storagenames import TYPES
from apiserver.registry.workspacetypes import OPEN_CIRCLE, TypeRef, circle_of, in_a_circle
from apiserver.storage.protocol import ReadView
from reconciler.layout.errors import LayoutError
from reconciler.loading.content import WorkspaceContent

Object = dict[str, Any]


class TypeCircles:
    """Of the workspace at `path`. `complete`: whether `content` is all that it is to hold."""

    def __init__(self, store: ReadView, cluster: str, path: str, content: WorkspaceContent, *, complete: bool) -> None:
        self._store, self._cluster, self._path = store, cluster, path
        self._content, self._complete = content, complete

    def problems(self) -> Iterator[LayoutError]:
        """Of types that are new, or say something else than they said: each one of a circle that a commit closes."""
        for key, declared in self._content.declared.items():
            if key.resource != TYPES or self._content.old.get(key) is declared.obj:
                continue
            ref = TypeRef(key.name, self._path)
            circle = circle_of(ref, self._find)
            if circle and circle[0] == ref:
                yield declared.manifest.error(in_a_circle(circle), OPEN_CIRCLE)

    def _find(self, path: str, name: str) -> Object | None:
        key = Key(TYPES, self._cluster, "", name)
        if path != self._path or key in self._content.removed:
            return None
        declared = self._content.declared.get(key)
        if declared is not None or self._complete:
            return declared.obj if declared is not None else None
        record = self._store.get(key)
        return orjson.loads(record.value) if record is not None else None
