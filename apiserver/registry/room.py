"""How many objects a workspace may have, and what is told to whoever makes one too many.

Its LogicalCluster says so (marks.MOST_OBJECTS), or else the server, which leaves root alone. All objects count,
computed ones too; Events do not, since they come and go by themselves. What makes an object through the API has the
store look in the very transaction (protocol.CheckNumber), so however many do so at once, none comes out beyond the
limit. Objects that the server itself makes are not refused here: of commits the loader says it (phases.counting), and
what controllers make for others' objects is there with these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.model import marks
from apiserver.model.errors import StatusError, forbidden
from apiserver.model.keys import Key
from apiserver.model.paths import ROOT
from apiserver.model.storagenames import LOGICAL_CLUSTERS
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import CheckNumber, ReadView, TooMany

Object = dict[str, Any]

BESIDES = frozenset({"events"})
_MENTION = f'"{marks.MOST_OBJECTS}"'.encode()


class Room(NamedTuple):
    """Of a workspace that may have `most` objects."""

    cluster: str
    most: int

    @property
    def check(self) -> CheckNumber:
        """What goes with a write that makes an object."""
        return CheckNumber(self.cluster, self.most, BESIDES)

    def look(self, store: ReadView) -> None:
        """Of a write that is not done here. Raises TooMany where there is no room for one more."""
        number = store.number(self.cluster, BESIDES)
        if number >= self.most:
            raise TooMany(self.cluster, number, self.most)


def room_of(store: ReadView, path: str, cluster: str, default: int) -> Room | None:
    """None: it may have any number. `default`: the server's word, 0 for any."""
    found = store.get(Key(LOGICAL_CLUSTERS, cluster, "", "cluster"))
    said = found is not None and _MENTION in found.value
    annotations = orjson.loads(found.value)["metadata"].get("annotations") or {} if said and found is not None else {}
    most = most_of(annotations, path, default)
    return Room(cluster, most) if most else None


def most_of(annotations: Mapping[str, str], path: str, default: int) -> int:
    """How many objects the workspace at `path` may have, 0 for any. `annotations`: its LogicalCluster's."""
    said = annotations.get(marks.MOST_OBJECTS, "")
    if said.isascii() and said.isdigit():
        return int(said)
    return 0 if path == ROOT else default


def refusal(kind: ServedKind, name: str, error: TooMany) -> StatusError:
    """403, in kcp's words."""
    counted = f"{error.number}/{error.most} objects"
    why = f'logical cluster "{error.cluster}" has reached its total object count limit ({counted})'
    return forbidden(kind.resource, kind.group, name, f"{why}; delete objects to free up capacity")
