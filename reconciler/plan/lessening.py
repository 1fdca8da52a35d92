"""What an export takes back with the schemas that it offers by now: where these take less than those that a binding is
bound to.

Pure. A provider's commit that does so is held (loading/providing). A request that does cannot be, so consumers that
were bound through the API keep what they have as long as objects stand against it (controllers/apibindings). Either way
the export may name the change, and then it counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.plan.exports import Turn
from reconciler.plan.narrowing import ALLOWED, change_named, moved, narrower_resource, shown


def taken_back(turn: Turn) -> Iterator[tuple[str, str]]:
    """The store's names of resources of which less is taken, with what to say where there are objects. Under another
    scope or kind none of them could be reached any more, so that is nothing which an export may allow."""
    before = {turn.former.storage(schema): schema for schema in turn.former.schemas}
    for schema in turn.export.schemas:
        storage = turn.export.storage(schema)
        old = before.get(storage)
        if old is None:
            continue
        lost, change = moved(old["spec"], schema["spec"]), change_named(old, schema)
        why = narrower_resource(old["spec"], schema["spec"])
        if lost or (why and change not in turn.export.allows):
            text = f"takes less than {old['metadata']['name']} does ({shown(lost or why)}), and there are objects: "
            allow = "" if lost else f', or have the export allow it (its annotation {ALLOWED}: "{change}")'
            yield storage, f"{text}delete them{allow}"
