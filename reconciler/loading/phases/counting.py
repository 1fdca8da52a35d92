"""Count: a commit that would have a workspace declare more objects than it may have is held.

What git declares counts here, with what every workspace has; what was made through the API does not, since no verdict
follows from what the store alone knows. A workspace that has too many already, since the limit came down, is held for
none that declares no more than the one before.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from apiserver.model.keys import Key
from apiserver.model.reserved import settable
from apiserver.registry.room import BESIDES, most_of
from reconciler.layout.errors import LayoutError
from reconciler.loading.clusterobject import cluster_key, effective
from reconciler.loading.phases.judgement import Go, Judgement

_COMPUTED = 1
"""The LogicalCluster, which no manifest stands for."""


def leave_room(at: Judgement) -> Go | None:
    most, content = _most(at), at.content
    if not most:
        return None
    if not at.gathered.complete:
        # As many as there are is as many as can be declared: most commits come nowhere near the limit.
        there = at.grounds.store.number(at.record.cluster, BESIDES)
        return Go.WHOLE if there + len(content.declared) > most else None
    number = _number(content.declared) + _COMPUTED
    in_files = _number(key for key, declared in content.declared.items() if declared.manifest.path)
    before = _number({**content.old, **content.removed}) if at.record.served else 0
    if number > most and in_files > before:
        said = at.gathered.workspace
        place, line = (str(said.origin), said.line) if said is not None else (at.record.directory or at.case.path, 0)
        text = f"{at.case.path} would have {number} objects, and may have {most}"
        content.problems.append(LayoutError(place, line, 0, text, "remove some, or have the limit raised"))
    return None


def _most(at: Judgement) -> int:
    """How many it may have, 0 for any."""
    files, found = (at.gathered.workspace, at.gathered.old_workspace), at.stored([cluster_key(at.record)])
    said, before = (settable(file.value["metadata"]) if file is not None else {} for file in files)
    standing = next((settable(orjson.loads(record.value)["metadata"]) for record in found.values()), {})
    return most_of(effective(said, before, standing), at.case.path, at.grounds.site.most_objects)


def _number(keys: Iterable[Key]) -> int:
    return sum(key.resource not in BESIDES for key in keys)
