"""One resource request, resolved: what every verb's endpoint starts from. Made by kube.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from apiserver.auth.accounts import Accounts
from apiserver.auth.scopes import in_scope
from apiserver.auth.user import User
from apiserver.endpoints.kubeexchange import KubeExchange
from apiserver.endpoints.lanes import lane_of, lanes
from apiserver.endpoints.paths import RequestPath
from apiserver.endpoints.realms import RealmWorld
from apiserver.endpoints.sight import PartialSight, ScanPart, scan
from apiserver.endpoints.views import KindView
from apiserver.model.errors import StatusError, not_found
from apiserver.model.keys import Key
from apiserver.registry.kinds import common_builtins
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Page, Record

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Asking:
    """`bearer`: the user as they came, or whom they act for. `kind`: what the path's resource is in this world."""

    exchange: KubeExchange
    bearer: User
    world: RealmWorld
    place: RequestPath
    kind: ServedKind
    review_token: Callable[[str, Sequence[str]], tuple[User, list[str]] | None]
    """Whose bearer token a text is and for which audiences, for TokenReview."""
    accounts: Accounts | None
    """Who issues ServiceAccount tokens."""
    sight: PartialSight | None = None
    """What is seen of the kind, where that is not all of it."""

    @property
    def user(self) -> User:
        """As this world sees them (auth/scopes.py)."""
        return in_scope(self.bearer, self.world.identity) if self.bearer.extra else self.bearer

    def key_of(self, obj: dict[str, Any]) -> Key:
        """Under which an object of the kind that is asked for is stored."""
        metadata = obj["metadata"]
        return Key(self.kind.storage, self.world.cluster or "", metadata.get("namespace", ""), metadata["name"])

    @property
    def view(self) -> KindView:
        kind, realm = self.kind, self.world.realm
        if self.world.cluster is not None or not kind.custom or common_builtins().of_storage(kind.storage):
            return KindView(kind, realm.store, None, self.sight)

        def own(cluster: str) -> ServedKind | None:
            found = realm.catalog.kinds(cluster).by_resource(kind.group, kind.version, kind.resource)
            return found if found is not None and found.storage == kind.storage else None

        return KindView(kind, realm.store, own, self.sight)

    def scan(self, part: ScanPart, *, count: bool = False) -> Page:
        """Objects of the kind, in key order, as far as they may be seen. Raises the store's Compacted."""
        store, resource, clusters = self.world.realm.store, self.kind.storage, self.clusters
        if clusters is not None and self.sight is not None:
            return scan(store, clusters, resource, part if part.at is not None else part._replace(at=self.sight.at))
        namespace, after, limit, at = part
        return store.scan(resource, self.world.cluster, namespace, after=after, limit=limit, at=at, count=count)

    @property
    def clusters(self) -> Sequence[str] | None:
        """The workspaces to look into, where it is not one and not all."""
        return self.sight.clusters if self.sight is not None and self.world.cluster is None else None

    def inside(self) -> Asking:
        """The same as it is asked in the workspace itself: what a question is answered by is that one's."""
        if self.world.view is None:
            return self
        return replace(self, world=replace(self.world, view=None), sight=None)

    def sees(self, record: Record) -> bool:
        return self.sight is None or self.sight.shows(record.key, record.value)

    @property
    def namespace(self) -> str | None:
        """To scan in: None for all, "" for cluster-scoped kinds is None too (they have but one)."""
        return self.place.namespace or None

    async def convert(self, work: Callable[[], T]) -> T:
        """Does what may need the kind's webhook, without holding up anybody else."""
        return await lanes.run(lane_of(self.world.realm.store, self.world.cluster, self.kind), work)

    def key(self) -> Key:
        """Of the object that the path names. Across workspaces there is none."""
        cluster = self.world.cluster
        if cluster is None and self.sight is not None:
            cluster = self.sight.cluster_of(self.place.name)
        if cluster is None:
            raise self.absent()
        namespace = self.place.namespace if self.kind.namespaced else ""
        return Key(self.kind.storage, cluster, namespace, self.place.name)

    def absent(self) -> StatusError:
        return not_found(self.kind.resource, self.kind.group, self.place.name)
