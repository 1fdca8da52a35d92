"""Which world a request is in: a workspace, every workspace, or an embedded sync target.

A *realm* is one store with its catalog and watch hub: the control plane's, and one for each embedded target. A *world*
is the part of a realm that a request sees. Called by kube.py for each request: point reads, so that every worker sees
at once what the reconciler wrote.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import orjson

from apiserver.auth.accounts import TARGET_PREFIX
from apiserver.auth.policy import ACCESS
from apiserver.auth.user import AccessDecision, Attributes, User
from apiserver.endpoints import systemadmin
from apiserver.endpoints.everywhere import Everywhere
from apiserver.endpoints.heldrights import HeldRights
from apiserver.endpoints.hub import Hub
from apiserver.endpoints.judging import AccessJudge, RealmKinds
from apiserver.endpoints.paths import RequestPath, Scope
from apiserver.endpoints.provider import ProviderPlace, ProvidersKnown, ProviderView
from apiserver.endpoints.schemaview import SchemaView
from apiserver.endpoints.sight import ServiceView
from apiserver.model.errors import StatusError, unavailable
from apiserver.model.keys import Key
from apiserver.model.paths import NOWHERE, SYSTEM_ADMIN, WILDCARD, base, is_cluster
from apiserver.model.remembered import Remembered
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import mounts, sharing
from apiserver.registry.indexes import INACTIVE
from apiserver.registry.kindtable import KindTable
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, fleet_row, workspace_at, workspace_row
from apiserver.storage.protocol import Row, Store

TARGET_CLUSTER = "target"
"""The logical cluster of every key in an embedded target's store."""

_RECORDS, _EACH = 16 * 1024 * 1024, 1024
"""Bytes of workspaces' records that are kept, and of one beside what it says."""


class Realm:
    """One store and what belongs to it."""

    __slots__ = ("authorizer", "catalog", "everywhere", "hub", "store")

    def __init__(self, store: Store, catalog: RealmKinds, authorizer: AccessJudge) -> None:
        self.store = store
        self.catalog = catalog
        self.authorizer = authorizer
        self.everywhere = Everywhere(store)
        self.hub = Hub(store)

    def judged_by(self, authorizer: AccessJudge) -> Realm:
        """The same, where somebody else says who may do what."""
        made = copy(self)
        made.authorizer = authorizer
        return made


class LetsIn(NamedTuple):
    """`who`: what tells those apart to whom it may end at different times."""

    who: str
    still: Callable[[], bool]


class Targets(Protocol):
    """The embedded sync targets of this process (targets.py)."""

    def realm(self, workspace: str, name: str) -> Realm | None:
        """None: there is no such target."""


@dataclass(frozen=True, slots=True)
class RealmWorld:
    """`cluster`: logical cluster name, None for every workspace. `record`: the workspace's, None in other worlds.
    `target`: `<workspace path>:<name>` of an embedded sync target. `hidden`: there is no such workspace, and only
    system:masters see more than that; it says why nothing is written here. `asked`: which one that is, among those that
    are not there. `view`: shows part of what there is, None where all is shown. `lets_in`: whether whoever asks may be
    here still, where that may end; `rights`: those elsewhere that they watch by, if any. `unmounted`: why a mount is
    not served; whoever may enter its parent is told."""

    realm: Realm
    scope: Scope
    cluster: str | None
    record: WorkspaceRecord | None = None
    target: str = ""
    hidden: str = ""
    asked: str = ""
    view: ServiceView | None = None
    lets_in: LetsIn | None = None
    rights: HeldRights | None = None
    unmounted: StatusError | None = None

    @property
    def identity(self) -> str:
        """What no other world is called: ServiceAccounts' tokens and scopes name it so."""
        return f"{TARGET_PREFIX}{self.target}" if self.target else self.name

    @property
    def inactive(self) -> bool:
        """Whether the workspace is marked so, or the one whose view it is looked through. One look into the store for
        each."""
        store, view = self.realm.store, self.view
        if view is not None and store.tally(INACTIVE, view.home) > 0:
            return True
        return self.record is not None and store.tally(INACTIVE, self.record.cluster) > 0

    @property
    def path(self) -> str:
        """The workspace's path; "" in other worlds."""
        return self.record.path if self.record else ""

    def kinds(self) -> KindTable:
        """All that is served here; across workspaces, what any of them serves."""
        if self.view is not None:
            return self.view.kinds()
        return self.realm.everywhere.kinds() if self.cluster is None else self.realm.catalog.kinds(self.cluster)

    @property
    def name(self) -> str:
        """As the authorizer knows it."""
        if self.view is not None:
            return self.view.home
        if self.hidden:
            return f"{NOWHERE}{self.asked}"
        return WILDCARD if self.cluster is None else self.cluster

    def authorize(self, user: User, asked: Attributes) -> AccessDecision:
        """Whether the user may, as they are seen here."""
        if self.view is not None:
            return self.view.authorize(self.realm.authorizer, user, asked)
        if self.unmounted is not None:
            asked = ACCESS
        return self.realm.authorizer.authorize(self.name, user, asked)


@lru_cache(16)
def _fleet(value: bytes) -> FleetRecord:
    return FleetRecord.decode(value)


def fleet(store_realm: Realm) -> FleetRecord:
    found = fleet_row(store_realm.store)
    return _fleet(found) if found is not None else FleetRecord()


class Realms:
    """Finds worlds."""

    def __init__(self, main: Realm, targets: Targets) -> None:
        self.main = main
        self._targets = targets
        self._system: Realm | None = None
        self._providers = ProvidersKnown(main.store)
        self._records: Remembered[str, tuple[Row, WorkspaceRecord]] = Remembered(_RECORDS)

    def world(self, place: RequestPath) -> RealmWorld:
        """Raises StatusError: 404 for what does not exist, 503 for what may still come.

        A workspace without a good commit is found (`unserved` says why it cannot answer): who may know that is decided
        later.
        """
        match place.scope:
            case Scope.EVERY:
                return RealmWorld(self.main, place.scope, None)
            case Scope.TARGET:
                return self._target(place.world)
            case Scope.PROVIDER:
                return self._provider(place.world)
            case Scope.SCHEMAS:
                return self._schemas(place.world)
            case _:
                return self._workspace(place.world)

    def nowhere(self, asked: str = "") -> RealmWorld:
        """A workspace that does not exist, as one to which nobody has access: asking about it takes the same steps, for
        the first time and again. `asked`: what it was called, in whatever letters."""
        text, called = "there is no such workspace", hashlib.sha256(asked.encode(errors="replace")).hexdigest()
        return RealmWorld(self.main, Scope.WORKSPACE, NOWHERE, hidden=text, asked=called)

    def hidden(self, place: RequestPath) -> RealmWorld | None:
        """What system:masters see where no world is found: what is in force everywhere, and logical clusters that are
        not there as empty ones. None: nothing, as of a path that leads to no workspace."""
        if place.scope is not Scope.WORKSPACE or not fleet(self.main).loaded:
            return None
        if place.world == SYSTEM_ADMIN:
            if self._system is None:
                self._system = Realm(*systemadmin.parts())
            return RealmWorld(self._system, place.scope, SYSTEM_ADMIN, hidden=systemadmin.UNWRITABLE)
        if not is_cluster(place.world):
            return None
        text = f'there is no logical cluster "{place.world}": nothing can be written there'
        return RealmWorld(self.main, place.scope, place.world, hidden=text)

    def close(self) -> None:
        """Ends every watch of what is the process' own."""
        for realm in (self.main, self._system):
            if realm is not None:
                realm.hub.close()

    def _target(self, world: str) -> RealmWorld:
        workspace, _, name = world.rpartition(":")
        realm = self._targets.realm(workspace, name) if workspace else None
        if realm is None:
            if not fleet(self.main).loaded:
                raise loading(fleet(self.main))
            raise _unknown(f'embedded sync target "{world}" not found')
        return RealmWorld(realm, Scope.TARGET, TARGET_CLUSTER, target=world)

    def _provider(self, world: str) -> RealmWorld:
        """Which consumer there is is not told before it is known who asks: one that is not there is none, and so is a
        workspace that takes nothing of the export, whatever state it is in."""
        workspace, export, name = world.split("/")
        home, store = self._workspace(workspace), self.main.store
        found = sharing.shared_export(store, home.cluster, export) if home.cluster is not None else None
        if found is None:
            raise _unknown(f'APIExport "{export}" of workspace "{workspace}" not found')

        def view(cluster: str | None) -> ProviderView:
            return ProviderView(store, self.main.catalog, self._providers, ProviderPlace(found, cluster))

        if name == WILDCARD:
            return RealmWorld(self.main, Scope.PROVIDER, None, view=view(None))
        row = workspace_row(store, name)
        if row is not None:
            record = self._record(name, row)
            seen = view(record.cluster)
            if seen.consumer is not None:
                return RealmWorld(self.main, Scope.PROVIDER, record.cluster, record, view=seen)
        return RealmWorld(self.main, Scope.PROVIDER, NOWHERE, view=view(NOWHERE))

    def _schemas(self, world: str) -> RealmWorld:
        consumer, provider = world.split("/")
        home, store = self._workspace(consumer), self.main.store
        row = workspace_row(store, provider) if provider != WILDCARD else None
        there = self._record(provider, row).cluster if row is not None else NOWHERE
        view = SchemaView(store, home.name)
        of_all = provider == WILDCARD or there == home.cluster  # kcp's programs name the consumer once more
        return RealmWorld(self.main, Scope.SCHEMAS, None if of_all else there, view=view)

    def _workspace(self, name: str) -> RealmWorld:
        found = workspace_row(self.main.store, name)
        if found is None:
            at = fleet(self.main)
            if not at.loaded:
                raise loading(at)
            raise _unknown(f'workspace "{name}" not found')
        record = self._record(name, found)
        if record.mounts:
            return self._mounted(record)
        return RealmWorld(self.main, Scope.WORKSPACE, record.cluster, record)

    def _mounted(self, mount: WorkspaceRecord) -> RealmWorld:
        """The workspace that a mount stands for: there, who asks is judged as if they had asked for it by its own name.
        One that is a mount itself is not followed, so nothing goes in circles."""
        store, at = self.main.store, fleet(self.main)
        parent = workspace_at(store, mount.parent)
        if parent is None:
            raise _unknown(f'workspace "{mount.path}" not found')
        found = store.get(Key(WORKSPACES, parent.cluster, "", base(mount.path)))
        reference = mounts.reference_of(orjson.loads(found.value)) if found is not None else None
        if not mount.served or reference is None:
            why = unserved(mount) or loading(at)
            return RealmWorld(self.main, Scope.WORKSPACE, parent.cluster, mount, unmounted=why)
        state = mounts.state_of(store, self.main.catalog.kinds(parent.cluster), parent.cluster, reference)
        name = mounts.workspace_at_url(state.url, at.url)
        row = workspace_row(store, name) if name is not None else None
        if name is None:
            why = _unmounted(mount.path, state)
            return RealmWorld(self.main, Scope.WORKSPACE, parent.cluster, mount, unmounted=why)
        target = self._record(name, row) if row is not None else None
        if target is None or target.mounts:
            return self.nowhere()  # who keeps the object is not to learn which workspaces there are
        return RealmWorld(self.main, Scope.WORKSPACE, target.cluster, target)

    def _record(self, name: str, row: Row) -> WorkspaceRecord:
        """It changes with each commit of its workspace, and lists all errors: only the newest is kept. `name`: as it is
        asked for."""
        known = self._records.get(name)
        if known is not None and known[0] == row:
            return known[1]
        record = WorkspaceRecord.decode(*row)
        self._records.put(name, (row, record), _EACH + 2 * len(row.value))
        return record


def loading(at: FleetRecord) -> StatusError:
    """503: the fleet is not read yet."""
    progress = f" ({at.done} of {at.total} workspaces)" if at.total else ""
    return unavailable(f"the fleet is being loaded{progress}; please try again")


def unserved(record: WorkspaceRecord) -> StatusError | None:
    """Why a workspace cannot answer yet, for who may read it: None if it can."""
    if record.served:
        return None
    if not record.errors:
        return unavailable(f'workspace "{record.path}" is being loaded; please try again')
    told = "; ".join(record.errors)
    return unavailable(f'workspace "{record.path}" has had no good commit yet: {told}', retry_after=5)


def _unmounted(path: str, state: mounts.MountState) -> StatusError:
    """503, but 501 for what this server will not do."""
    if not state.url:
        return unavailable(f'workspace "{path}" is not available: {state.message}', retry_after=5)
    text = f'workspace "{path}" is mounted from another server, which is not supported yet: see docs/kcp.md'
    return StatusError(501, "NotImplemented", text)


def _unknown(message: str) -> StatusError:
    return StatusError(404, "NotFound", message)
