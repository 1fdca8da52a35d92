"""The Shard that the workspace is on; one that no Shard takes is held until one does."""

from __future__ import annotations

from dataclasses import replace

from apiserver.registry import shards
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import Manifest
from reconciler.loading.phases.judgement import Judgement
from reconciler.loading.scheduling import said_of_shard, shard_of


def find_shard(at: Judgement) -> None:
    """The record says by then all that its Workspace does, so that this is looked at as well."""
    said = at.gathered.workspace
    shard = shard_of(at.grounds.world, at.case, said.value if said is not None else None)
    at.record, at.known.shard = replace(at.record, shard=shard), said_of_shard(shard)
    if said is not None and at.gathered.complete and not at.gathered.problems:
        at.gathered.problems.extend(at.grounds.tree_objects.problems(said, at.record))
    if shard == shards.NONE and not at.gathered.problems:
        at.gathered.problems.append(_unscheduled(at.case.path, said))


def _unscheduled(path: str, said: Manifest | None) -> LayoutError:
    selector = shards.selector_of(said.value) if said is not None else None
    remedy = "correct it, or declare such a Shard in root" if selector is not None else "declare one in root"
    place, line = (str(said.origin), said.line) if said is not None else (path, 0)
    return LayoutError(place, line, 0, shards.unmatched(selector), remedy)
