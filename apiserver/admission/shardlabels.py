"""Labels and annotations of the Shard that ships, through the API where writes go to the store.

Called by the endpoints. New workspaces choose a Shard by its labels, and none that is annotated unschedulable; where
workspaces are made through the API, so is that said. What git declares is judged by what git says of Shards
(loading/world). All else of a Shard comes with commits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from apiserver.admission.writes import refusal
from apiserver.model import marks
from apiserver.model.storagenames import SHARDS
from apiserver.registry.served import ServedKind
from apiserver.registry.shards import with_addresses
from apiserver.registry.tree import WorkspaceRecord, fleet
from apiserver.storage.protocol import View

Object = dict[str, Any]

_CHANGES = ("update", "patch")
_BESIDE = ("labels", "annotations", "managedFields", "resourceVersion", "generation")


class ShardLabels(NamedTuple):
    """Of the workspace root, whose record this is."""

    store: View
    record: WorkspaceRecord
    kind: ServedKind

    @staticmethod
    def concern(kind: ServedKind, writes: str) -> bool:
        return kind.storage == SHARDS and writes == "Store"

    def admit(self, verb: str, name: str, live: Object | None) -> None:
        """See rest_options.Admit."""
        ships = live is not None and (live["metadata"].get("annotations") or {}).get(marks.ORIGIN) == marks.SYSTEM
        if not ships or verb not in _CHANGES:
            raise refusal(self.kind, self.record, name, live, "this object is")

    def vet(self, new: Object, live: Object | None) -> None:
        """See rest_options.Vet. The server's addresses, which it is read with, may be sent back."""
        if live is not None and new.get("spec") == with_addresses(live, fleet(self.store).url)["spec"]:
            new["spec"] = live.get("spec") or {}
        if live is None or _rest(new) != _rest(live):
            raise refusal(self.kind, self.record, str(new["metadata"].get("name", "")), live)


def _rest(obj: Object) -> Object:
    """What is not to change."""
    return {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k not in _BESIDE}}
