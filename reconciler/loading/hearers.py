"""Who follows from what a workspace offers: whoever takes an API of it, is of one of its types, or waits for a Shard.

Called by steps, which have them judged again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Set
from typing import NamedTuple

import orjson

from apiserver.model import paths
from apiserver.model.commits import NONE, CommitRef
from apiserver.model.keys import Key
from apiserver.model.origins import origin_of
from apiserver.model.paths import ROOT
from apiserver.model.storagenames import TYPES
from apiserver.registry import shards, tree
from apiserver.registry.tree import WorkspaceRecord
from apiserver.registry.workspacetypes import TypeRef, told_of
from apiserver.storage.protocol import Record, Store
from reconciler.loading.world import World


class Hearers(NamedTuple):
    """Of one step."""

    store: Store
    world: World

    def taking(self, provider: str) -> Iterator[str]:
        """The other workspaces with a binding to an export of the one at a path."""
        yield from (path for path in self.world.consumers(provider) if path != provider)

    def typed(self, provider: str, written: Iterable[Key]) -> list[str]:
        """Those that follow from a type among what was written, and those that are held, which may wait for one."""
        changed = {(provider, key.name) for key in written if key.resource == TYPES}
        return self.world.of_types(changed) if changed else []

    def unscheduled(self, provider: str) -> Iterator[str]:
        """Those that no Shard takes follow root's."""
        for path in tree.held(self.store) if provider == ROOT else ():
            record = tree.workspace_at(self.store, path)
            if record is not None and record.shard == shards.NONE:
                yield path

    def waiting(self, turned: Set[str]) -> list[str]:
        """Those that are held and may be so for a mistake of one of these, as what they say of that shows."""
        takers = {path for provider in turned for path in self.world.consumers(provider)}
        found = (tree.workspace_at(self.store, path) for path in tree.held(self.store) if turned)
        return [each.path for each in found if each is not None and (each.path in takers or _typed_by(each, turned))]

    def types_of(self, record: WorkspaceRecord, since: Collection[CommitRef] | None = None) -> Iterator[Key]:
        """The types that a workspace has. `since`: those that came with these commits; None: all."""
        found = self.store.scan(TYPES, record.cluster).records
        yield from (each.key for each in found if since is None or _commit_of(each) in since)


def _typed_by(record: WorkspaceRecord, those: Set[str]) -> bool:
    """Whether the type of a workspace that is held, or the one that it is to have, may be one of theirs. What has none
    yet, or is to have another, may find it in any workspace above it."""
    told = [ref for ref in map(told_of, record.errors) if ref is not None]
    places = [ref.path for ref in (TypeRef.parse(record.type), *told)]
    above = paths.parent(record.path)
    if above is not None and (told or not record.served):
        places += paths.upwards(above)
    return not those.isdisjoint(places)


def _commit_of(record: Record) -> CommitRef:
    """The commit that last changed what a file declares."""
    origin = origin_of(orjson.loads(record.value))
    return origin.commit if origin is not None else NONE
