"""What writes through the API take away, in the words that allow it: a DELETE is its user's word for that object, an
edit for what it does.

Called by the committer, whose commit says so (plan/deletions), also to a recovery. Which may know of no copy when it
comes to this commit, so what goes itself is named without them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import orjson

from apiserver.model import paths
from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry.catalog import Catalog
from apiserver.registry.intents import Intent
from apiserver.storage.protocol import Store
from reconciler.loading.copies import PLACES, lost_lines, removed
from reconciler.loading.guard import line_of
from reconciler.loading.loader import Proposal
from reconciler.plan.deletions import digest


def losses(store: Store, catalog: Catalog, writes: Iterable[Intent], path_of: Callable[[str], str]) -> set[str]:
    """What a commit of some writes allows. `path_of`: the path of a logical cluster."""
    edits: dict[str, dict[Key, Any]] = {}
    for intent in writes:
        edits.setdefault(intent.key.cluster, {})[intent.key] = _edit(intent)
    said: set[str] = set()
    for cluster, edited in edits.items():
        path = path_of(cluster)
        gone = [line_of(path, key) for key in removed(edited)]
        copies = lost_lines(store, catalog.kinds(cluster), path, edited)
        said |= {digest(lines) for lines in (gone, [*gone, *copies]) if lines}
    return said


def losses_with_workspaces(proposal: Proposal, writes: Iterable[Intent], path_of: Callable[[str], str]) -> set[str]:
    """What besides somebody asks for who deletes a workspace: all that goes with it."""
    ends = (i.key for i in writes if i.value is None and i.key.resource == WORKSPACES)
    gone = {paths.join(path_of(key.cluster), key.name) for key in ends}
    return {refused.digest for path, refused in proposal.refused.items() if path in gone}


def _edit(intent: Intent) -> dict[str, Any] | None:
    """See copies.Edits; of what takes no copies away only whether it goes."""
    if intent.value is None:
        return None
    value: dict[str, Any] = orjson.loads(intent.value) if intent.key.resource in PLACES else {}
    return value
