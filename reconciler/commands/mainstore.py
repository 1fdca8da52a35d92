"""The fleet's store as the reconciler's process opens it: one that is behind what the status branch recorded of it is
not believed.

Called by reconcile, once it is known what is gone on from, and before anything is served.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from apiserver.model.counts import counted
from apiserver.registry import tree
from apiserver.storage.protocol import Store
from apiserver.stores import open_serving
from reconciler.commands.start import Beginning
from reconciler.loading import behind

log = logging.getLogger(__name__)


def open_for(
    directory: Path, beginning: Beginning, *, sync: bool, loading: Callable[[Store], Store] = lambda store: store
) -> tuple[Store, str]:
    """The store, and what the user should know of it ("": nothing). Its revision is no smaller than what is recorded.
    `loading`: as who loads writes to it.

    Each status commit says which revision it recorded, and a store never goes back: one with a smaller revision was put
    there from somewhere, or the machine lost what it had not written yet. Not so one that shows what another server
    recorded, whose revisions are its own.
    """
    store = open_serving(directory, sync=sync)
    recorded = beginning.recorded.facts().revision if beginning.recorded is not None else 0
    if store.revision() >= recorded:
        return store, ""
    said, fleet = "", tree.fleet(store)
    if not (beginning.holder or beginning.taken or fleet.shown or fleet.holder):
        said = _forgotten(loading(store), recorded)
    store.close()
    return open_serving(directory, sync=sync, start=recorded), said


def _forgotten(store: Store, recorded: int) -> str:
    at = store.revision()
    gone, kept = behind.forget(store)
    if not gone and not kept:
        return ""
    objects = counted(
        kept,
        "object that only the store knows of stays as it was",
        "objects that only the store knows of stay as they were",
    )
    said = (
        f"the store stands at revision {at}, and the status branch recorded {recorded}: it is older, as from a backup. "
        f"It is recovered from git and the status branch; {objects} "
        "then, and what was written to such since is lost"
    )
    log.info("%s", said)  # it is told by whoever opens it
    return said
