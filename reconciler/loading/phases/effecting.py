"""What writes the objects of a judgement, and knows what a new one gets: shared by the phases that write, and by those
that have to know before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from apiserver.model.keys import Key
from apiserver.model.storagenames import SCHEMAS
from apiserver.registry import codec, keptschemas
from apiserver.storage.protocol import ReadView
from reconciler.loading.changeset import WorkspaceChanges
from reconciler.loading.consumers import is_stored
from reconciler.loading.effects import Effects, Restored
from reconciler.loading.phases.judgement import Judgement

Object = dict[str, Any]


def effects_of(at: Judgement) -> Effects:
    case, site = at.case, at.grounds.site
    former = partial(_former, at.grounds.store)
    changes = WorkspaceChanges(case.path)
    out = Effects(site.fleet, case.path, case.moment, site.moments, at.known, former, case.asked, changes)
    out.said_at = case.sourced.commit
    return out


def restored_of(at: Judgement) -> Restored:
    case, site = at.case, at.grounds.site
    assert case.recorded is not None
    out = Restored(site.fleet, case.path, case.moment, site.moments, at.known, asked=case.asked)
    out.changes, out.recorded = WorkspaceChanges(case.path), case.recorded.residue
    out.said_at = case.sourced.commit
    return out


def uids_of(at: Judgement) -> Callable[[Key], str]:
    """Finds the UID that an object which a file declares has or will have."""
    effects = restored_of(at) if at.case.recorded is not None else effects_of(at)

    def uid(key: Key) -> str:
        there = at.grounds.store.get(key)
        return codec.uid_of(there.value) if there else effects.uid_of_new(key)

    return uid


def _former(store: ReadView, key: Key) -> Object | None:
    """A schema that is put back while others are served with it is the one that went."""
    if key.resource != SCHEMAS:
        return None
    found = (orjson.loads(each.value) for each in keptschemas.kept(store, key.cluster, key.name))
    metadata = next((each["metadata"] for each in found if not is_stored(each)), None)
    return {"metadata": {name: metadata[name] for name in ("uid", "creationTimestamp")}} if metadata else None
