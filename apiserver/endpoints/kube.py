"""The Kubernetes API as one bare ASGI application: paths → authentication → world → authorization → verb.

Mounted by the app shell beside its FastAPI routes, since a route costs several times what a whole GET does here. Every
error of every layer below becomes an answer here (errors.py).
"""

from __future__ import annotations

from dataclasses import replace

from apiserver.auth.accounts import Accounts
from apiserver.auth.authn import Authenticator
from apiserver.auth.denial import denial
from apiserver.auth.impersonation import impersonated
from apiserver.auth.scopes import home_of, in_scope
from apiserver.auth.user import Attributes, User
from apiserver.endpoints import discovery, homeworkspaces, lifecycleviews, nodeless, openapi
from apiserver.endpoints.answerable import LONGEST_WARNING, require_answerable
from apiserver.endpoints.asking import Asking
from apiserver.endpoints.atcommit import NOT_HERE, READING, PastReader, warnings
from apiserver.endpoints.commitasking import HEADER, CommitQuestion
from apiserver.endpoints.commitviews import CommitViews
from apiserver.endpoints.counting import RequestCounts
from apiserver.endpoints.errors import NoSuchPath, answer
from apiserver.endpoints.exchange import ASGIScope, Receive, Send
from apiserver.endpoints.health import health
from apiserver.endpoints.heldrights import HeldRights
from apiserver.endpoints.inflight import InFlight, deadline
from apiserver.endpoints.issuer import issuer
from apiserver.endpoints.judging import AccessJudge, RealmKinds
from apiserver.endpoints.kindof import kind_of, reader_of
from apiserver.endpoints.kubeexchange import KubeExchange
from apiserver.endpoints.lifecycleviews import Program, is_own
from apiserver.endpoints.metrics import metrics, no_metrics
from apiserver.endpoints.paths import RequestPath, RequestRoute, Scope, parse
from apiserver.endpoints.realms import Realm, Realms, RealmWorld, Targets, fleet, loading
from apiserver.endpoints.reconciling import reconcile
from apiserver.endpoints.requested import at_home, attributes, renamed, verb_of, waits
from apiserver.endpoints.sockets import SocketExchange
from apiserver.endpoints.statuses import status
from apiserver.endpoints.version import server_version
from apiserver.endpoints.writes import Writes
from apiserver.model.errors import StatusError, forbidden, method_not_allowed
from apiserver.model.paths import ROOT
from apiserver.model.storagenames import WORKSPACES
from apiserver.registry import oldgroups
from apiserver.registry.kinds import KUBERNETES
from apiserver.registry.served import ServedKind
from apiserver.registry.subresources import CONNECTIONS
from apiserver.settings import ServerSettings
from apiserver.storage.protocol import Store

_LATER = "/services/"
"""Views that clients of kcp may look for."""

_OF_PROCESS = frozenset({
    RequestRoute.HEALTH, RequestRoute.ISSUER, RequestRoute.JWKS, RequestRoute.METRICS, RequestRoute.STATUS,
    RequestRoute.RECONCILE,
})  # fmt: skip
"""What says something of the server, and nothing of a world."""

_TROUBLE = Attributes("get", "core.kcp.io", "v1alpha1", "logicalclusters", name="cluster")
"""What somebody may read who is told, in root, what is wrong with the fleet: that may name any workspace, and root is
open to everybody in some fleets."""


class KubernetesAPI:
    """An ASGI application. One per process: it owns the watch hub of `store`."""

    def __init__(
        self,
        store: Store,
        catalog: RealmKinds,
        authenticator: Authenticator,
        authorizer: AccessJudge,
        settings: ServerSettings,
        targets: Targets,
        accounts: Accounts | None = None,
        commits: CommitViews | None = None,
    ) -> None:
        """`accounts` None: this server issues no ServiceAccount tokens; `commits` None: it reads no commits."""
        self.settings = settings
        self._counts = RequestCounts()
        self._authenticator = authenticator
        self._accounts = accounts
        self._commits = commits
        self._inflight = InFlight(settings.max_requests, settings.max_requests_per_user)
        self._realms = Realms(Realm(store, catalog, authorizer), targets)
        self._writes = Writes(self._realms.main.store, settings.disabled_admission, settings.most_objects)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        """`scope["path"]` is the whole path from the server's root; other scopes than http and websocket end."""
        if scope["type"] not in ("http", "websocket"):
            return
        make = KubeExchange if scope["type"] == "http" else SocketExchange
        exchange = make(scope, receive, send)
        began = self._counts.begin(exchange)
        try:
            await self._serve(exchange)
        except ConnectionError:
            return
        except Exception as error:
            await answer(exchange, error)
        finally:
            self._counts.end(exchange, began)

    def end_watches(self) -> None:
        """Of the control plane's store; other requests go on. For a process that is told to stop."""
        self._realms.close()

    def close(self) -> None:
        """Ends every watch and the threads of writes, and closes what was opened of commits."""
        self._realms.close()
        if self._commits is not None:
            self._commits.close()
        self._writes.close()

    async def _serve(self, exchange: KubeExchange) -> None:
        place = parse(exchange.path)
        exchange.place = place
        try:
            user = self._authenticator.authenticate(exchange.scope)  # type: ignore[arg-type]
        except StatusError:
            if place.route is not RequestRoute.HEALTH or exchange.method not in ("GET", "HEAD"):
                raise
            # Probes have no credentials. They learn about the process, not which workspaces there are.
            await health(exchange, place, self._realms, brief=True)
            return
        if place.route is RequestRoute.NESTED:
            raise NoSuchPath
        if user.extra:
            place = at_home(exchange.path, place, home_of(user))
        if waits(exchange, place):
            await self._judged(exchange, place, user)
            return
        with self._inflight.slot(user, deadline(exchange, self.settings.request_seconds)):
            await self._judged(exchange, place, user)

    async def _judged(self, exchange: KubeExchange, place: RequestPath, user: User) -> None:
        """Which world, as whom, and the answer."""
        if place.view:
            await self._seen_by_program(exchange, place, user)
            return
        if place.at:
            await self._at_commit(exchange, place, user)
            return
        world = self._world(exchange, place, user)
        await self._asked(exchange, place, world, self._acting(exchange, world, user))

    async def _asked(self, exchange: KubeExchange, place: RequestPath, world: RealmWorld, bearer: User) -> None:
        """May they, and the answer."""
        asked, place = place, renamed(world, place)
        user = in_scope(bearer, world.identity) if bearer.extra else bearer
        verb = verb_of(exchange, place)
        exchange.place, exchange.verb = place, verb
        decision = world.authorize(user, attributes(place, verb))
        if not decision.allowed:
            # In the caller's words: how a workspace spells a group says that it is there.
            await self._refuse(exchange, place, denial(user, attributes(asked, verb), decision.reason))
            return
        require_answerable(exchange, world, place)
        if place.route is RequestRoute.RESOURCE:
            kind = kind_of(world, place)
            exchange.kind = kind
            if asked.group != place.group:
                kind = oldgroups.spelled(kind, asked.group)
            sight = None
            if world.view is not None:
                sight = world.view.sight(kind, verb)
                if verb == "watch":
                    world = replace(world, rights=_held(world, user, attributes(place, verb)))
            asking = Asking(exchange, bearer, world, place, kind, self._authenticator.review, self._accounts, sight)
            await self._resource(asking, verb)
            return
        await self._other(exchange, world, place, user)

    async def _seen_by_program(self, exchange: KubeExchange, place: RequestPath, user: User) -> None:
        """Through the view of an initializer or a terminator."""
        program, realms = Program.of(place), self._realms
        judge, home = realms.main.authorizer, program.home
        bearer = impersonated(user, exchange.headers, home, lambda a: judge.authorize(home, user, a))
        user = in_scope(bearer, home) if bearer.extra else bearer
        denied = program.denied(realms, user)
        if denied is not None:
            await self._refuse(exchange, place, denied)
            return
        world = program.world(realms, place)
        if verb_of(exchange, place) == "watch":
            rights = HeldRights.of(realms.main.store, [home], lambda: program.denied(realms, user) is None)
            world = replace(world, rights=rights)
        if not is_own(place):
            await self._asked(exchange, place, program.inside(world), bearer)
            return

        def asking(kind: ServedKind) -> Asking:
            return Asking(exchange, bearer, world, place, kind, self._authenticator.review, self._accounts)

        await lifecycleviews.serve(program, asking, verb_of(exchange, place))

    async def _at_commit(self, exchange: KubeExchange, place: RequestPath, user: User) -> None:
        """As a commit has it."""
        try:
            now = self._realms.world(place)
        except StatusError:
            now = self._realms.nowhere(place.world)
        if now.unmounted is not None:  # who may enter its parent is told why, and may read nothing by that
            now = self._realms.nowhere(place.world)
        asked = attributes(renamed(now, place), verb := verb_of(exchange, place))
        reader = PastReader(self._realms, now, self._acting(exchange, now, user), asked)
        decision = reader.own()
        if not (decision.allowed or reader.everywhere()):
            await self._refuse(exchange, place, denial(reader.bearer, attributes(place, verb), decision.reason))
            return
        if verb not in READING:
            raise method_not_allowed("commits are read only, and nothing changes in them: get and list")
        if now.inactive:
            raise StatusError(403, "Forbidden", "logical cluster is marked inactive")
        if place.route in NOT_HERE or self._commits is None:
            raise NoSuchPath
        children = f"{place.resource}.{place.group}" == WORKSPACES
        question = CommitQuestion(place.at, reader.path(place), reader.bearer.name, children)
        async with self._commits.found(question) as found:
            exchange.said.append((HEADER, found.filled.commit.encode()))
            world = reader.world(found, place, own=decision.allowed)
            exchange.warnings += [text[:LONGEST_WARNING] for text in warnings(found, world)]
            require_answerable(exchange, world, place)
            await self._read(exchange, world, renamed(world, place), reader.bearer, place.group)

    async def _read(
        self, exchange: KubeExchange, world: RealmWorld, place: RequestPath, user: User, group: str
    ) -> None:
        """Answers a request that is allowed and reads. `group`: as it was asked for."""
        if place.route is not RequestRoute.RESOURCE:
            await self._other(exchange, world, place, user)
            return
        kind = kind_of(world, place)
        if group != place.group:
            kind = oldgroups.spelled(kind, group)
        _warn_of(kind, exchange)
        asking = Asking(exchange, user, world, place, kind, self._authenticator.review, self._accounts)
        await reader_of(asking, verb_of(exchange, place))(asking)

    def _world(self, exchange: KubeExchange, place: RequestPath, user: User) -> RealmWorld:
        """Only system:masters, asking for themselves, are told that there is no such workspace: to others it is one
        without access, and all that follows is done as for such a one."""
        try:
            return self._realms.world(place)
        except StatusError:
            told = user.is_master and not exchange.header(b"impersonate-user")
            found = self._realms.hidden(place) if told else self._realms.nowhere(place.world)
            if found is None:
                raise
            return found

    async def _refuse(self, exchange: KubeExchange, place: RequestPath, denied: StatusError) -> None:
        """What may not be is told alike whether or not there is something: of health, which is everybody's, what probes
        are told; else 403, but 503 as long as nobody's rights are known."""
        if place.route is RequestRoute.HEALTH and exchange.method in ("GET", "HEAD"):
            await health(exchange, place, self._realms, brief=True)
            return
        at = fleet(self._realms.main)
        raise denied if at.loaded else loading(at)

    @staticmethod
    def _acting(exchange: KubeExchange, world: RealmWorld, user: User) -> User:
        """Whom the caller acts for."""
        judge = world.realm.authorizer
        return impersonated(user, exchange.headers, world.identity, lambda a: judge.authorize(world.name, user, a))

    async def _resource(self, asking: Asking, verb: str) -> None:
        kind, place, exchange = asking.kind, asking.place, asking.exchange
        _warn_of(kind, exchange)
        if place.subresource in CONNECTIONS and place.subresource in kind.subresources:
            await nodeless.connect(asking, verb)
            return
        if homeworkspaces.is_asked_for(asking, verb):
            await homeworkspaces.get(asking)
            return
        if verb in ("get", "list", "watch"):
            if kind.resource == "pods" and verb != "get":
                nodeless.seek(asking)
            if verb == "watch":
                self._counts.waits(exchange)
            await reader_of(asking, verb)(asking)
            return
        if asking.world.cluster is None:
            raise method_not_allowed("only reading is possible in the `*` logical cluster")
        if asking.world.hidden and kind.storage:
            raise forbidden(kind.resource, kind.group, place.name, asking.world.hidden)
        await self._writes.serve(asking, verb)

    async def _other(self, exchange: KubeExchange, world: RealmWorld, place: RequestPath, user: User) -> None:
        if world.view is not None and place.route in _OF_PROCESS:
            raise NoSuchPath if exchange.method in ("GET", "HEAD") else method_not_allowed()
        if place.route is RequestRoute.RECONCILE:
            await reconcile(exchange, world, self.settings.data_dir)
            return
        if exchange.method not in ("GET", "HEAD"):
            raise method_not_allowed()
        match place.route:
            case RequestRoute.HEALTH:
                texts = world.path == ROOT and world.authorize(user, _TROUBLE).allowed
                await health(exchange, place, self._realms, whole=_is_whole(world), texts=texts)
            case RequestRoute.SERVER_VERSION:
                await server_version(exchange)
            case RequestRoute.ISSUER | RequestRoute.JWKS:
                await issuer(exchange, place, self._accounts, self.settings.url)
            case RequestRoute.OPENAPI_V2 | RequestRoute.OPENAPI_V3 | RequestRoute.OPENAPI_DOCUMENT:
                await openapi.serve(exchange, world, place)
            case RequestRoute.INDEX | RequestRoute.API | RequestRoute.APIS | RequestRoute.GROUP | RequestRoute.VERSION:
                await discovery.serve(exchange, world, place)
            case RequestRoute.METRICS:
                is_cluster = world.scope is Scope.TARGET or _is_whole(world)
                await (metrics(exchange, world) if is_cluster else no_metrics(exchange))
            case RequestRoute.STATUS:
                await status(exchange, world, self.settings)
            case _:
                if exchange.path.startswith(_LATER):
                    view = "/".join(exchange.path.split("/")[:3])
                    raise StatusError(501, "NotImplemented", f"{view} is not supported yet: see docs/kcp.md")
                raise NoSuchPath


def _held(world: RealmWorld, user: User, asked: Attributes) -> HeldRights:
    """By which somebody looks through a view: asked about again while they do."""
    assert world.view is not None

    def hold() -> bool:
        return not world.inactive and world.authorize(user, asked).allowed

    return HeldRights.of(world.realm.store, world.view.deciding(asked), hold)


def _warn_of(kind: ServedKind, exchange: KubeExchange) -> None:
    if kind.deprecated and kind.deprecation_warning:
        exchange.warnings.append(kind.deprecation_warning)


def _is_whole(world: RealmWorld) -> bool:
    """Whether it is a workspace with all of Kubernetes' kinds."""
    return world.record is not None and world.record.builtins == KUBERNETES
