"""The upstream side of syncing: which objects of a namespace go down, read from the store."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from apiserver.model.commits import NONE, CommitRef
from apiserver.model.keys import Key
from apiserver.model.kinds import GroupResource
from apiserver.model.origins import origin_of
from apiserver.registry import tree
from apiserver.registry.builtins.catalogue import ENTRIES
from apiserver.registry.objects import Objects
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Record
from reconciler.controllers.bindings import NAMESPACES, Bindings, NamespaceRole
from reconciler.controllers.failures import Expected
from reconciler.controllers.placements import PLACEMENTS
from reconciler.controllers.situations import Kinds
from reconciler.plan import placement
from reconciler.plan.jobs import JOBS, ended
from reconciler.plan.selection import selectable, selector_of
from reconciler.plan.syncable import syncable

Object = dict[str, Any]

AUTOSCALERS = GroupResource("autoscaling", "horizontalpodautoscalers")
_SCALABLE = {GroupResource(kind.group, kind.resource): kind.kind for kind in ENTRIES.values() if kind.autoscaled}


class Item(NamedTuple):
    """One object upstream, and so one work item. `cluster`: the logical cluster."""

    kind: GroupResource
    cluster: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.cluster}/{self.namespace}/{self.name}"


Declared = Callable[[str, CommitRef, Item], bool]
"""declared(workspace path, commit, item): whether that verified commit, or one after it up to the served one, declared
the object, so that its absence now is a deletion. False also where that cannot be told."""

Withdrawn = Callable[[str, CommitRef, str, Collection[str]], bool]
"""withdrawn(workspace path, commit, namespace, placements): whether the workspace took the namespace away since that
commit, in which these Placements had placed it. False also where that cannot be told."""

Follows = Callable[[CommitRef, CommitRef], bool]
"""follows(commit, older): whether it is `older` or came after it, in the same repository. False also where that cannot
be told."""


@dataclass(frozen=True, slots=True)
class Past:
    """What git says of earlier. Without it only what this process saw being deleted goes, the rest is reported."""

    declared: Declared = lambda *_: False
    withdrawn: Withdrawn = lambda *_: False
    follows: Follows = lambda *_: False


UNKNOWN = Past()


class Outrun(Expected):
    """The store says otherwise by now; the roles will in a moment, and bring the item back."""


def kind_of_storage(storage: str) -> GroupResource:
    """`deployments.apps:<identity>` → (`apps`, `deployments`)."""
    resource, _, group = storage.partition(":")[0].partition(".")
    return GroupResource(group, resource)


@dataclass(frozen=True, slots=True)
class Upstream:
    """What the syncers read of the store. `reached`: the revision up to which changes were handed out."""

    objects: Objects
    catalog: Kinds
    bindings: Bindings
    past: Past
    reached: Callable[[], int]

    def role(self, target: str, cluster: str, namespace: str) -> NamespaceRole | None:
        return self.bindings.roles(cluster, namespace).get(target)

    def reports(self, target: str, cluster: str, namespace: str) -> bool:
        """Whether this target's status is the one that goes up: of several that run a namespace, the first by key."""
        here = [k for k, role in self.bindings.roles(cluster, namespace).items() if role is NamespaceRole.HERE]
        return bool(here) and min(here) == target

    def kind(self, cluster: str, kind: GroupResource, offered: Mapping[GroupResource, str]) -> ServedKind | None:
        """The kind as the workspace stores it, if its objects go down; `offered`: see `goes_down`."""
        found = self.catalog.kinds(cluster).preferred(kind.group, kind.resource)
        return found if found is not None and goes_down(found, offered) else None

    @staticmethod
    def key(kind: ServedKind, item: Item) -> Key:
        return Key(kind.storage, item.cluster, item.namespace, item.name)

    def get(self, kind: ServedKind, item: Item) -> Object | None:
        return self.objects.get(self.key(kind, item))

    def items(
        self, cluster: str, namespace: str, offered: Mapping[GroupResource, str]
    ) -> Iterator[tuple[ServedKind, Item]]:
        """All objects of a namespace whose kind goes down."""
        for kind, record in self._records(cluster, namespace, offered):
            yield kind, Item(kind.group_resource, cluster, namespace, record.key.name)

    def changed_by(self, cluster: str, namespace: str, offered: Mapping[GroupResource, str]) -> set[CommitRef]:
        """The commits that last changed what files declare of these."""
        found = (origin_of(orjson.loads(record.value)) for _, record in self._records(cluster, namespace, offered))
        return {origin.commit for origin in found if origin is not None and origin.commit}

    def _records(
        self, cluster: str, namespace: str, offered: Mapping[GroupResource, str]
    ) -> Iterator[tuple[ServedKind, Record]]:
        seen: set[str] = set()
        for kind in self.catalog.kinds(cluster).all():
            if kind.storage in seen or not kind.storage_version or not goes_down(kind, offered):
                continue
            seen.add(kind.storage)
            for record in self.objects.store.scan(kind.storage, cluster, namespace).records:
                yield kind, record

    def scaled(self, item: Item) -> bool:
        """Whether a HorizontalPodAutoscaler of the namespace sets the object's replicas: then git does not."""
        if item.kind not in _SCALABLE:
            return False
        scaler = self.catalog.kinds(item.cluster).preferred(AUTOSCALERS.group, AUTOSCALERS.resource)
        if scaler is None:
            return False
        found = self.objects.list(scaler.storage, item.cluster, item.namespace)
        return any(scaled_by(obj) == (_SCALABLE[item.kind], item.name) for obj in found)

    def placing(self, target: str, cluster: str, namespace: str) -> tuple[tree.WorkspaceRecord | None, frozenset[str]]:
        """The workspace's record, and which of its Placements have the namespace run on the target by the very commit
        that it names: roles follow the store a moment later. Raises Outrun where none has."""
        while True:
            record = self.workspace(cluster)
            found = self.objects.get(Key(NAMESPACES, cluster, "", namespace))
            labels = selectable(found)[1] if found is not None else {}
            placements = list(self.objects.list(PLACEMENTS, cluster))
            if record == self.workspace(cluster):
                break
        mine = (p for p in placements if placement.recorded(p)[0] == target and selector_of(p).matches(labels))
        names = frozenset(str(p["metadata"]["name"]) for p in mine)
        if found is None or not names:
            raise Outrun(f"namespace {namespace} is not to run here any more")
        return record, names

    def anywhere(self, cluster: str, namespace: str) -> bool:
        """Whether any target is to run the namespace."""
        return NamespaceRole.HERE in self.bindings.roles(cluster, namespace).values()

    def forget(self, kind: ServedKind, item: Item) -> None:
        """Take an object's status away, which nobody will put right any more. How a Job ended stays: it is not run
        again."""

        def bare(obj: Object) -> Object | None:
            over = item.kind == JOBS and ended(obj)
            return None if over else {k: v for k, v in obj.items() if k != "status"}

        if "status" in kind.subresources:
            self.objects.update(self.key(kind, item), bare)

    def workspace(self, cluster: str) -> tree.WorkspaceRecord | None:
        return tree.workspace_of(self.objects.store, cluster)

    def commit(self, cluster: str) -> CommitRef:
        """That which a workspace's content is of; NONE where there is none."""
        record = self.workspace(cluster)
        return record.commit if record is not None else NONE

    def loaded(self) -> bool:
        return tree.fleet(self.objects.store).loaded


def scaled_by(autoscaler: Object) -> tuple[str, str]:
    """Kind and name of what a HorizontalPodAutoscaler scales."""
    target = (autoscaler.get("spec") or {}).get("scaleTargetRef") or {}
    return str(target.get("kind", "")), str(target.get("name", ""))


def goes_down(kind: ServedKind, offered: Mapping[GroupResource, str]) -> bool:
    """`offered`: the resources of the API exports that the sync target supports, with identity hashes."""
    identity = kind.storage.partition(":")[2]
    theirs = offered.get(kind.group_resource, "")
    return bool(kind.storage) and syncable(
        kind.group_resource,
        namespaced=kind.namespaced,
        custom=kind.custom,
        offered=bool(identity) and identity == theirs,
    )
