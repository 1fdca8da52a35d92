"""Which namespaces with state an edit of their workspace takes from where they run. Pure.

For whoever judges commits: such an edit is carried out, and volumes go with the copies, so it counts as a deletion that
has to be allowed. What is done in other workspaces moves no such namespace (plan/placement.py) and needs no judging.

An edit of a Placement's locations counts whether or not it would choose another target, which depends on what other
workspaces say at that moment. A namespace that goes altogether is a deletion by itself, and not listed here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from apiserver.model.selectors import LabelSelector
from reconciler.plan import ownedits, placement
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.syncable import NEVER_NAMESPACES

Object = dict[str, Any]


class StateLoss(NamedTuple):
    """`target`: key of the sync target on which `placement` had the namespace run."""

    namespace: str
    placement: str
    target: str
    how: Literal["moved", "withdrawn"]


@dataclass(frozen=True, slots=True)
class PlacedContent:
    """A workspace's Placements by name, and its namespaces' labels."""

    placements: Mapping[str, Object]
    namespaces: Mapping[str, Mapping[str, str]]

    @staticmethod
    def of(placements: Iterable[Object], namespaces: Iterable[Object]) -> PlacedContent:
        """From objects, stored or declared."""
        found = dict(selectable(namespace) for namespace in namespaces)
        return PlacedContent({str(p["metadata"]["name"]): p for p in placements}, found)


def losses(before: PlacedContent, after: PlacedContent, stateful: Collection[str]) -> list[StateLoss]:
    """By namespace and Placement. `before`: as stored, decisions included; `after`: as the edit leaves it, decisions do
    not matter; `stateful`: names of namespaces with state."""
    chosen = (set(stateful) & before.namespaces.keys() & after.namespaces.keys()) - NEVER_NAMESPACES
    return [loss for namespace in sorted(chosen) for loss in _of_namespace(namespace, before, after)]


def _of_namespace(namespace: str, before: PlacedContent, after: PlacedContent) -> Iterator[StateLoss]:
    was, now = before.namespaces[namespace], after.namespaces[namespace]
    ran = {name: target for name, target, selector in _decided(before) if selector.matches(was)}
    selected = {name for name, p in after.placements.items() if selector_of(p).matches(now)}
    stays = {target for name, target in ran.items() if name in selected and not _relocated(name, before, after)}
    for name, target in sorted(ran.items()):
        if target not in stays:
            yield StateLoss(namespace, name, target, "moved" if name in selected else "withdrawn")


def _decided(content: PlacedContent) -> Iterator[tuple[str, str, LabelSelector]]:
    for name, obj in content.placements.items():
        target = placement.recorded(obj)[0]
        if target:
            yield name, target, selector_of(obj)


def _relocated(name: str, before: PlacedContent, after: PlacedContent) -> bool:
    """Whether the edit says anew where the Placement's namespaces run, or lets them go from there."""
    was, now = before.placements[name], after.placements[name]
    if ownedits.made_from(was) != ownedits.made_from(now):
        return True
    target = placement.recorded_target(was)
    return ownedits.may_leave(now, target) and not ownedits.may_leave(was, target)
