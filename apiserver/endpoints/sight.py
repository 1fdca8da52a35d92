"""What one request sees of a resource, where that is not all of it: a view of the store for somebody from elsewhere.

Made with the request by the world that it is in, and asked wherever objects are read, listed, watched or written
(views, listing, watch, writes). What is not seen is not there.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from apiserver.auth.user import AccessDecision, Attributes, User
from apiserver.endpoints.judging import AccessJudge
from apiserver.model.keys import Key
from apiserver.registry.kindtable import KindTable
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Change, Page, Record, View

Object = dict[str, Any]

_WORKSPACES = 500
"""How many are looked at in one go of the event loop."""


class ScanPart(NamedTuple):
    """Which part of a scan: as the parameters of `View.scan`."""

    namespace: str | None = None
    after: Key | None = None
    limit: int | None = None
    at: int | None = None


class ServiceView(Protocol):
    """A world that shows part of others to somebody from elsewhere (`/services/…`): whose rights count, which kinds
    there are and what is seen of them. Made for one request."""

    @property
    def home(self) -> str:
        """The logical cluster in which rights are asked about, and whose users come as who they are."""

    def kinds(self) -> KindTable: ...

    def kind(self, group: str, version: str, resource: str) -> ServedKind | None:
        """One of them, as the workspace that is looked at has it. Raises StatusError 404 where it has not."""

    def authorize(self, judge: AccessJudge, user: User, asked: Attributes) -> AccessDecision: ...

    def deciding(self, asked: Attributes) -> Iterable[str]:
        """The logical clusters by whose objects `authorize` decides."""

    def sight(self, kind: ServedKind, verb: str) -> PartialSight:
        """What a request with that verb sees of a kind."""


class PartialSight(Protocol):
    """`token`: what tells it from others of its kind, for what is shared between requests; `since`: the store's
    revision from which on `follow` has to be told. `at`: that of which `clusters` tells, where what is seen is to be
    read as it was then; None for as it is. `clusters`: the logical clusters that something may be seen of, sorted; None
    where that is told object by object."""

    token: Hashable
    since: int
    at: int | None

    @property
    def clusters(self) -> Sequence[str] | None: ...

    def shows(self, key: Key, value: bytes) -> bool:
        """Whether an object is seen, in this state."""

    def cluster_of(self, name: str) -> str | None:
        """Where an object of that name is meant when no workspace is named; None where one has to be."""

    def labels(self, key: Key) -> dict[str, str]:
        """Labels that objects carry for whoever looks so; {} for none."""

    def settle(self, obj: Object, live: Object | None) -> None:
        """Makes of an object, before it is written, one that is seen; in place. `live`: what it replaces. Raises
        StatusError 403, 404."""

    def follow(self, change: Change) -> bool:
        """Takes notice of a change of what is seen, for a watch; False where whoever watches has to begin anew."""


def scan(store: View, clusters: Sequence[str], resource: str, part: ScanPart) -> Page:
    """As `View.scan` over all workspaces, of these alone: a read for each, and so many of them in a page. `Page.more`
    may lie before the first object of a workspace."""
    found: list[Record] = []
    at, looked = part.at, 0
    begin = bisect_left(clusters, part.after.cluster) if part.after is not None else 0
    for cluster in clusters[begin:]:
        left = None if part.limit is None else part.limit - len(found)
        if looked >= _WORKSPACES or left == 0:
            return Page(found, at or store.revision(), Key(resource, cluster, "", ""), 0)
        after = part.after if part.after is not None and part.after.cluster == cluster else None
        page = store.scan(resource, cluster, part.namespace, after=after, limit=left, at=at, count=False)
        at, looked = page.revision, looked + 1
        found += page.records
        if page.more is not None:
            return Page(found, at, page.more, 0)
    return Page(found, at if at is not None else store.revision(), None, 0)
