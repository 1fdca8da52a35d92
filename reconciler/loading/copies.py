"""Which copies on clusters an edit of a workspace takes away, though their objects stay.

Called by guard, for what a commit says, and by committer, for what is to become one: both count the same. Namespaces
that hold state go from where they run when their own Placement or their labels are edited (plan/statefuledits), and
their volumes with them. Nothing is looked at for an edit of anything else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from apiserver.model.keys import Key
from apiserver.registry.kinds import KindTable
from apiserver.storage.protocol import Record, Store
from reconciler.plan import placement, statefuledits
from reconciler.plan.deletions import Line
from reconciler.plan.state import STATEFUL

Object = dict[str, Any]
Edits = Mapping[Key, Object | None]
"""Objects of one workspace as they will be, None for those that go."""

PLACEMENTS, NAMESPACES = "placements.scheduling.kcp.io", "namespaces"
PLACES = frozenset({PLACEMENTS, NAMESPACES})
"""Resources whose edits may take copies away."""


class Copy(NamedTuple):
    """`record`: the object that it is a copy of; `why`: how it would be lost, in words."""

    line: Line
    record: Record
    why: str


def left(store: Store, cluster: str, edits: Edits) -> dict[str, str]:
    """The namespaces that go from where they run, each with how, in words; whether they hold state or not."""
    if PLACES.isdisjoint(key.resource for key in edits):
        return {}
    placements = _stored(store, PLACEMENTS, cluster)
    if not any(placement.recorded(obj)[0] for obj in placements.values()):
        return {}
    namespaces = _stored(store, NAMESPACES, cluster)
    before = statefuledits.PlacedContent.of(placements.values(), namespaces.values())
    after = statefuledits.PlacedContent.of(
        _edited(placements, PLACEMENTS, edits), _edited(namespaces, NAMESPACES, edits)
    )
    found: dict[str, str] = {}
    for loss in statefuledits.losses(before, after, before.namespaces.keys()):
        found.setdefault(loss.namespace, _told(loss, before.placements[loss.placement]))
    return found


def copies(store: Store, kinds: KindTable, path: str, cluster: str, namespaces: Mapping[str, str]) -> Iterator[Copy]:
    """Of what holds state in these namespaces (see `left`) of the workspace at `path`, which serves `kinds`."""
    for resource in STATEFUL if namespaces else ():
        kind = kinds.preferred(resource.group, resource.resource)
        storage = kind.storage if kind is not None else ""
        for namespace, how in namespaces.items() if storage else ():
            for record in store.scan(storage, cluster, namespace).records:
                line = Line(path, storage.partition(":")[0], namespace, record.key.name, copy=True)
                yield Copy(line, record, how)


def lost_lines(store: Store, kinds: KindTable, path: str, edits: Edits) -> list[Line]:
    """The lines of all copies that edits of one workspace take away. What goes itself takes its copy along, and is
    none."""
    cluster = next((key.cluster for key in edits), "")
    found, gone = copies(store, kinds, path, cluster, left(store, cluster, edits)), removed(edits)
    return [copy.line for copy in found if copy.record.key not in gone]


def removed(edits: Edits) -> Collection[Key]:
    """What goes itself."""
    return {key for key, value in edits.items() if value is None}


def _stored(store: Store, resource: str, cluster: str) -> dict[Key, Object]:
    return {record.key: orjson.loads(record.value) for record in store.scan(resource, cluster).records}


def _edited(stored: Mapping[Key, Object], resource: str, edits: Edits) -> Iterable[Object]:
    new = {**stored, **{key: value for key, value in edits.items() if key.resource == resource}}
    return [value for value in new.values() if value is not None]


def _told(loss: statefuledits.StateLoss, obj: Object) -> str:
    where = placement.recorded_target(obj) or f"the sync target with key {loss.target}"
    text = f"namespace {loss.namespace} runs on {where} by Placement {loss.placement}, "
    if loss.how == "moved":
        return f"{text}whose edit takes it elsewhere, and volumes do not move with it"
    return f"{text}which would select it no more, and its volumes there go with its copies"
