"""Which Shard a workspace that is judged is on.

Called by newcomers and phases.scheduling. It is chosen when the workspace appears; from then on the workspace stays
there, whatever becomes of the Shard or of what workspace.yaml says. Until it is served, it is where it would be.
"""

from __future__ import annotations

from typing import Any

from apiserver.registry.shards import USUAL
from reconciler.loading.case import Case, was_served
from reconciler.loading.world import World
from reconciler.plan import system


def shard_of(world: World, case: Case, manifest: dict[str, Any] | None) -> str:
    """Its name, shards.NONE where there is none. `manifest`: what workspace.yaml says. Asks `world`, which may have to
    judge root first."""
    if system.manifests(case.path):
        return USUAL  # what all others build on
    if case.recorded is not None and was_served(case.recorded):
        return case.recorded.summary.shard or USUAL
    if case.recorded is None and case.record is not None and case.record.served:
        return case.record.shard
    return world.shard_of(manifest)


def said_of_shard(shard: str) -> str:
    """As Summary.shard holds it."""
    return "" if shard == USUAL else shard
