"""What initializers and terminators see and do: `/services/{initializing,terminating}workspaces/<name>/clusters/…`.

Called by kube for such a request. Across workspaces (`*`) a program sees the LogicalClusters that wait for it, and
nothing else; in one of these also what is in it, as far as it may. It says that it is done by taking its own name out
of the LogicalCluster's status, and from then on the workspace is closed to it, open watches included.

Whoever may act as a program has its verb on the WorkspaceType that it is called by; to all others every name answers
alike.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import orjson

from apiserver.auth.actingfor import ActingFor
from apiserver.auth.denial import denial
from apiserver.auth.rules import compiled
from apiserver.auth.user import Attributes, User
from apiserver.endpoints import discovery, reads
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.errors import NoSuchPath
from apiserver.endpoints.finishing import Done, finish
from apiserver.endpoints.paths import RequestPath, RequestRoute
from apiserver.endpoints.realms import LetsIn, Realms, RealmWorld
from apiserver.endpoints.watch import watch
from apiserver.model import paths
from apiserver.model.errors import Cause, StatusError, invalid, method_not_allowed, not_found
from apiserver.model.keys import Key
from apiserver.model.storagenames import LOGICAL_CLUSTERS, TYPES
from apiserver.registry.indexes import AWAITING
from apiserver.registry.kinds import common_builtins
from apiserver.registry.kindtable import KindTable
from apiserver.registry.lifecycles import LIFECYCLES, Lifecycle, type_of
from apiserver.registry.served import ServedKind
from apiserver.storage.protocol import Change, Store

Object = dict[str, Any]

_GROUP, _VERSION, _RESOURCE = "core.kcp.io", "v1alpha1", "logicalclusters"
_BY_VIEW = {each.view: each for each in LIFECYCLES}


class Program(NamedTuple):
    """An initializer or a terminator. `name`: `<logical cluster>:<type>`."""

    lifecycle: Lifecycle
    name: str

    @staticmethod
    def of(place: RequestPath) -> Program:
        return Program(_BY_VIEW[place.view], place.program)

    @property
    def home(self) -> str:
        """The logical cluster that has its type; one that nobody has where its name is none."""
        return type_of(self.name)[0] or paths.NOWHERE

    def attributes(self) -> Attributes:
        """What somebody has to be allowed who acts as it."""
        name = type_of(self.name)[1]
        return Attributes(self.lifecycle.verb, "tenancy.kcp.io", "v1alpha1", "workspacetypes", "", "", name)

    def denied(self, realms: Realms, user: User) -> StatusError | None:
        """What somebody is told who may not act as it."""
        decision = realms.main.authorizer.authorize(self.home, user, self.attributes())
        return None if decision.allowed else denial(user, self.attributes(), decision.reason)

    def world(self, realms: Realms, place: RequestPath) -> RealmWorld:
        """Where it is for a request. Raises StatusError for a workspace that does not wait for it, or is none: 403, but
        404 where its LogicalCluster is named, which is not among those that the program sees."""
        world = _world(realms, place)
        if world is None:
            raise self._absent(place)
        if world.cluster is None:
            return world
        still = partial(self.is_awaited, world.realm.store, world.cluster)
        if not still():
            raise self._absent(place)
        return replace(world, lets_in=LetsIn(f"{self.lifecycle.word} {self.name}", still))

    def inside(self, world: RealmWorld) -> RealmWorld:
        """The same for what is in the workspace: with the rights that it has there. Raises StatusError 403."""
        assert world.cluster is not None
        granted = self._granted(world.realm.store)
        said = f'{self.lifecycle.word} "{self.name}" denied by {self.lifecycle.permissions}'
        judge = ActingFor(world.realm.authorizer, world.cluster, granted, said)
        return replace(world, realm=world.realm.judged_by(judge))

    def is_awaited(self, store: Store, cluster: str) -> bool:
        record = store.get(Key(LOGICAL_CLUSTERS, cluster, "", "cluster"))
        return record is not None and self.lifecycle.awaits(orjson.loads(record.value), self.name)

    def _granted(self, store: Store) -> tuple[Any, ...] | None:
        """The rules of its type. Of a type that is gone nobody knows them: 403 then."""
        cluster, name = type_of(self.name)
        record = store.get(Key(TYPES, cluster, "", name))
        if record is None:
            raise StatusError(403, "Forbidden", f'{self.lifecycle.word} "{self.name}": its WorkspaceType is gone')
        said = (orjson.loads(record.value).get("spec") or {}).get(self.lifecycle.permissions)
        return compiled(said) if said else None

    def _absent(self, place: RequestPath) -> StatusError:
        return not_found(_RESOURCE, _GROUP, place.name) if is_own(place) and place.name else self._closed()

    def _closed(self) -> StatusError:
        text = f'{self.lifecycle.word} "{self.name}" cannot access this workspace'
        return StatusError(403, "Forbidden", text)


class ProgramSight:
    """The LogicalClusters that wait for a program now. Which these are, an index tells as of the moment at which a list
    or a watch reads them then; what comes later stands in the log."""

    def __init__(self, program: Program, store: Store) -> None:
        self._program, self._index = program, AWAITING[program.lifecycle.word]
        self.token: Hashable = (program.lifecycle.word, program.name)
        with store.view() as view:
            self.since = view.revision()
            self.at: int | None = self.since
            found = view.indexed(self._index, program.name, whole=True)
            self.clusters: Sequence[str] = sorted(entry.key.cluster for entry in found)

    def shows(self, key: Key, value: bytes) -> bool:  # noqa: ARG002
        return self._index.hint in value and self._program.lifecycle.awaits(orjson.loads(value), self._program.name)

    def cluster_of(self, name: str) -> str | None:  # noqa: ARG002
        return None

    def labels(self, key: Key) -> dict[str, str]:  # noqa: ARG002
        return {}

    def settle(self, obj: Object, live: Object | None) -> None:
        """Nothing but its own name is written, and that is not done here (finishing)."""

    def follow(self, change: Change) -> bool:  # noqa: ARG002
        return True


def is_own(place: RequestPath) -> bool:
    """Whether a request is answered here, and not as one for what is in a workspace."""
    named = (place.group, place.version, place.resource) == (_GROUP, _VERSION, _RESOURCE)
    return place.world == paths.WILDCARD or (place.route is RequestRoute.RESOURCE and named)


async def serve(program: Program, asking_of: Callable[[ServedKind], Asking], verb: str) -> None:
    """Raises StatusError. `asking_of`: the request, once it is known for which kind."""
    kind = common_builtins().by_resource(_GROUP, _VERSION, _RESOURCE)
    assert kind is not None
    asking = asking_of(kind)
    place = asking.place
    if place.route is not RequestRoute.RESOURCE:
        await _discover(asking)
        return
    if (place.group, place.version, place.resource) != (_GROUP, _VERSION, _RESOURCE) or place.namespace:
        raise NoSuchPath
    if verb in ("get", "list", "watch"):
        if place.subresource not in ("", "status"):
            raise NoSuchPath
        seen = replace(asking, sight=ProgramSight(program, asking.world.realm.store))
        await {"get": reads.get, "list": reads.list_, "watch": watch}[verb](seen)
        return
    if verb not in ("update", "patch") or place.subresource != "status" or asking.world.cluster is None:
        raise method_not_allowed()
    await finish(asking, verb, partial(_done, program))


async def _discover(asking: Asking) -> None:
    """The older form alone, of the one kind."""
    exchange, place = asking.exchange, asking.place
    if exchange.method not in ("GET", "HEAD"):
        raise method_not_allowed()
    if place.route not in (RequestRoute.API, RequestRoute.APIS, RequestRoute.GROUP, RequestRoute.VERSION):
        raise NoSuchPath
    verbs = frozenset({"get", "list", "watch"})
    table = KindTable([replace(asking.kind, verbs=verbs, subresources=frozenset({"status"}))])
    await discovery.serve_plain(exchange, table, place)


def _done(program: Program, live: Object, new: Object) -> list[Done]:
    """See finishing.Judge: it may say that it is done itself, and nothing else. Raises StatusError 403 and 422."""
    word, field = program.lifecycle.word, program.lifecycle.field
    before, status = program.lifecycle.left(live), new.get("status") or {}
    after = status.get(field) or []
    if not program.lifecycle.awaits(live, program.name):
        raise program._closed()
    rest = {**live["status"], field: None} == {**status, field: None}
    if rest and after == before:
        return []
    if not rest or after != [each for each in before if each != program.name]:
        text = f'Invalid value: {orjson.dumps(after).decode()}: only removing the "{program.name}" {word} is supported'
        raise invalid("LogicalCluster", _GROUP, "cluster", [Cause("FieldValueInvalid", text, f"status.{field}")])
    return [(program.lifecycle, program.name)]


def _world(realms: Realms, place: RequestPath) -> RealmWorld | None:
    try:
        return realms.world(place)
    except StatusError as error:
        if error.code == 503:
            raise
        return None
