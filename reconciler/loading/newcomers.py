"""Workspaces that appear, or come back as they appeared, and stand alone: what all of a type have in common is known,
and what their files declare is made object by object, without asking what the rest of a workspace says.

Called by phases.appearing, first of all for a workspace of which nothing is stored. Whoever brings kinds, namespaces or
bindings, whatever is wrong with a workspace, and all that was not met before, is left to the phases, which come to the
same for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from apiserver.model import paths
from apiserver.model.commits import NONE
from apiserver.model.identity import logical_cluster_name
from apiserver.model.keys import Key
from apiserver.registry import shards
from apiserver.registry.builtins.catalogue import kinds_having
from apiserver.registry.kinds import KUBERNETES, builtins_of
from apiserver.registry.mounts import reference_of
from apiserver.registry.tree import WorkspaceRecord, placed, put_workspace
from apiserver.registry.workspacetypes import ResolvedType
from reconciler.layout.source import Piece
from reconciler.layout.workspacedir import WorkspaceDir
from reconciler.loading.appearing import put_namespace, put_new
from reconciler.loading.case import Case, Verdict
from reconciler.loading.changeset import ChangeKind, WorkspaceChanges
from reconciler.loading.clusterobject import no_line
from reconciler.loading.effects import Effects
from reconciler.loading.render import Renderer
from reconciler.loading.scheduling import said_of_shard, shard_of
from reconciler.loading.site import Site
from reconciler.loading.workspacetype import RememberedType, said_of
from reconciler.loading.world import World
from reconciler.plan import system
from reconciler.plan.summary import Summary

_CONCERN_OTHERS = kinds_having(lambda kind: kind.defines_kinds or kind.offered or kind.by_directory or kind.contains)
"""Kinds of which an object means something for others, whatever its group."""
_DEFAULT = ("", "default")


class Newcomers:
    """Of one step."""

    def __init__(self, site: Site, world: World) -> None:
        self._site, self._world = site, world

    def verdict(self, case: Case) -> Verdict | None:
        """What the phases come to; None where only they can tell. Raises Waits, as they do."""
        place, above = case.directory, paths.parent(case.path)
        parent = self._world.record(above) if above is not None else None
        if place is None or parent is None or system.manifests(case.path):
            return None
        elsewhere = case.pinned.there or case.sourced.there
        if elsewhere or case.problems or case.trespasses or case.secrets or case.asked or parent.mounts:
            return None
        said = self._site.sources.workspace(case.tree, place)
        if said is None or said.problems or self._site.sources.stated_uid(case.tree, place):
            return None
        [manifest] = said.manifests
        if reference_of(manifest.value) is not None:
            return None
        has = RememberedType(case.recorded).former(manifest.value, None) if case.recorded is not None else None
        kind = self._world.type_of(manifest.value, case.path, has)
        if case.vouched not in ("", str(kind.ref)):
            return None
        if kind.error or kind.bindings or kind.builtins == KUBERNETES or has not in (None, kind.ref):
            return None
        site, origin = self._site, case.origin
        shard = shard_of(self._world, case, manifest.value)
        if shard == shards.NONE:
            return None
        known = Summary(origin, origin, type=said_of(kind.ref, manifest.value), shard=said_of_shard(shard))
        known.initializers, known.terminators = [*kind.initializers], [*kind.terminators]
        if case.recorded is not None and not (case.recorded.plain and case.recorded.summary == known):
            return None
        # One that comes back unchanged since it appeared is made as it was made then.
        moment = case.moment if origin == case.moment.commit else site.moments.at(origin, case.moment.time)
        effects = Effects(site.fleet, case.path, moment, site.moments, known, changes=WorkspaceChanges(case.path))
        record, table = new_record(site, case, kind, served=True, shard=shard), builtins_of(kind.builtins, case.path)
        if not put_namespace(record, table, effects):
            return None
        if not _put_own(site.sources.of(case.tree, place).pieces(), Renderer(table, record.cluster, no_line), effects):
            return None
        if not put_new(record, parent.cluster, manifest, effects, _digest(place)):
            return None
        if 0 < site.most_objects < len(effects.changes.objects):
            return None  # the phases say why
        changes = effects.changes
        changes.became, changes.new = ChangeKind.CREATED, True
        changes.also += (placed(record), put_workspace(record, known.as_json()))
        return Verdict(record, changes, alone=True)


def new_record(
    site: Site, case: Case, kind: ResolvedType, *, served: bool, shard: str = shards.USUAL
) -> WorkspaceRecord:
    """The record of a workspace that appears, or, at recovery, appeared at its origin. `served`: it is good."""
    origin, first = case.origin, case.recorded.summary.first if case.recorded is not None else ""
    known = case.recorded.summary.appeared if case.recorded is not None else 0
    moment = site.moments.at(origin, case.moment.time)
    return WorkspaceRecord(
        path=case.path,
        cluster=logical_cluster_name(site.fleet, first or case.path, origin),
        parent=paths.parent(case.path) or "",
        type=str(kind.ref),
        builtins=kind.builtins,
        writes=kind.writes,
        **given_by(kind),
        served=served,
        commit=origin if served else NONE,
        head=case.moment.commit if served else NONE,
        origin=origin,
        origin_time=known or moment.time,
        directory=case.stands,
        shard=shard,
    )


def given_by(kind: ResolvedType) -> Mapping[str, Any]:
    """What a record says of its type beside how it is called."""
    programs = {"initializers": [*kind.initializers], "terminators": [*kind.terminators]}
    return {"labels": dict(kind.labels), **programs}


def _digest(place: WorkspaceDir) -> str:
    """Of what its workspace.yaml says."""
    return f"{place.manifest.name} {place.manifest.id}" if place.manifest is not None else ""


def _put_own(pieces: Iterable[Piece], renderer: Renderer, effects: Effects) -> bool:
    """Writes what the workspace's files declare; False where that is to be looked at in full."""
    seen: set[Key] = set()
    for piece in pieces:
        if piece.problems or piece.generator:
            return False
        for manifest in piece.manifests:
            plain = manifest.sealed is None and manifest.gvk.kind not in _CONCERN_OTHERS
            declared = renderer.render(manifest)[0] if plain else None
            if declared is None or declared.key in seen or declared.key.namespace not in _DEFAULT:
                return False
            seen.add(declared.key)
            effects.put(declared, None, None, None)
    return True
