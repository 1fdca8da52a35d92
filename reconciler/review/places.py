"""Which sync target each namespace of some workspaces runs on, as plan/placement decides it of what a store holds.

Called by foresight, before and after a change. A target's heartbeat is nobody's here: what is recorded of it counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.registry.catalog import Catalog
from apiserver.registry.indexes import PLACEMENTS
from apiserver.registry.kindtable import KindTable
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.controllers.bindings import NAMESPACES
from reconciler.controllers.placementindex import PlacementIndex
from reconciler.controllers.settings import TargetSettings
from reconciler.controllers.situations import PlacementSources, Situations
from reconciler.controllers.targets import TargetIndex
from reconciler.controllers.uses import Uses
from reconciler.plan import placement as plan
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.syncable import NEVER_NAMESPACES
from reconciler.syncing.exports import offered

Object = dict[str, Any]


class RunsThere(NamedTuple):
    """Where a namespace runs: the target (`root:infra:eu-west`), the Placement that says so, and why."""

    target: str
    placement: str
    why: str


@dataclass(frozen=True, slots=True)
class PlacedNamespaces:
    """By logical cluster and namespace; of targets, by name, the resources that they take (with identities); of
    Placements that do not run as they say, why. `undecided`: whether of some no decision is recorded."""

    places: Mapping[tuple[str, str], tuple[RunsThere, ...]] = field(default_factory=dict)
    accepts: Mapping[str, Mapping[GroupResource, str]] = field(default_factory=dict)
    troubled: Mapping[Key, str] = field(default_factory=dict)
    undecided: bool = False
    kinds: Mapping[str, KindTable] = field(default_factory=dict)
    """By logical cluster, what those serve that have Placements."""

    def at(self, cluster: str, namespace: str) -> tuple[RunsThere, ...]:
        return self.places.get((cluster, namespace), ())


def placed(store: Store, clusters: Collection[str]) -> PlacedNamespaces:
    """`clusters`: the logical clusters of which it is asked; of others, Placements are not looked at."""
    if not store.count(PLACEMENTS):
        return PlacedNamespaces()
    return _Deciding(store).run(clusters)


class _Deciding:
    def __init__(self, store: Store) -> None:
        self._objects, self._catalog = Objects(store), Catalog(store)
        self._targets = TargetIndex(self._objects)
        self._targets.begin()
        places = PlacementSources(self._objects, self._catalog, self._targets.place, Uses(store), lambda _: plan.Seen())
        settings = TargetSettings()
        self._situations = Situations(places, PlacementIndex(store), settings.threshold + settings.tolerance)

    def run(self, clusters: Collection[str]) -> PlacedNamespaces:
        places: dict[tuple[str, str], tuple[RunsThere, ...]] = {}
        accepts: dict[str, Mapping[GroupResource, str]] = {}
        troubled, kinds, undecided = dict[Key, str](), dict[str, KindTable](), False
        for key, placement in self._placements(clusters):
            situation = self._situations.of(key, placement)
            if situation is None:
                continue
            kinds[key.cluster] = self._catalog.kinds(key.cluster)
            undecided |= not plan.recorded(placement)[0]
            outcome = plan.decide(placement, situation)
            told = {each["type"]: each for each in outcome.conditions}
            for kind in ("Scheduled", "Ready"):
                if told[kind]["status"] == "False":
                    troubled[key] = str(told[kind].get("message", ""))
            if outcome.decision is None:
                continue
            name = f"{outcome.decision.target_path}:{outcome.decision.target}"
            accepts.setdefault(name, self._offered(outcome.decision.key))
            place = RunsThere(name, key.name, str(told["Scheduled"].get("message", "")))
            for namespace in self._selected(key.cluster, placement):
                at = (key.cluster, namespace)
                places[at] = (*places.get(at, ()), place)
        return PlacedNamespaces(places, accepts, troubled, undecided, kinds)

    def _placements(self, clusters: Collection[str]) -> Iterator[tuple[Key, Object]]:
        for cluster in sorted(clusters):
            for placement in self._objects.list(PLACEMENTS, cluster):
                yield Key(PLACEMENTS, cluster, "", placement["metadata"]["name"]), placement

    def _selected(self, cluster: str, placement: Object) -> Iterator[str]:
        selector = selector_of(placement)
        for name, labels in map(selectable, self._objects.list(NAMESPACES, cluster)):
            if name not in NEVER_NAMESPACES and selector.matches(labels):
                yield name

    def _offered(self, key: str) -> Mapping[GroupResource, str]:
        target = self._targets.get(key)
        return offered(self._objects, target) if target is not None else {}
