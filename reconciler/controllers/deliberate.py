"""Whether the disappearance of an object was meant.

Asked where an object is found to be gone and what follows from it is to go, too: by decisions, of Placements, and by
syncing, of what has copies.
"""

from __future__ import annotations

from typing import Any

from apiserver.model import marks, origins
from apiserver.model.origins import Origin

Object = dict[str, Any]


def deliberate(obj: Object) -> bool:
    """Whether the disappearance of this stored object is a deletion: git declared it, or the API or a controller made
    it. What came from keys/ or was computed may be missing for other reasons."""
    annotations = obj["metadata"].get("annotations") or {}
    declared = marks.SOURCE_COMMIT in annotations and not Origin(origins.path_in(annotations)).in_keys
    return declared or annotations.get(marks.ORIGIN) == marks.RUNTIME
