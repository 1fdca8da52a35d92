"""A sync target's API: paths, verbs and errors, over https.py's bytes. Knows nothing of what is synced.

What a target answers is another's word: it is checked for its shape and its size before anybody builds on it. Safe from
every thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

import orjson

from apiserver.metrics.clusters import LATENCY, REQUESTS
from apiserver.model.kinds import GroupResource
from apiserver.model.marks import FIELD_MANAGER
from apiserver.registry.outbound import EVERYWHERE, Outbound
from reconciler.controllers.failures import Expected
from reconciler.controllers.targets import Denied, Kubeconfig
from reconciler.syncing import kubeconfig as reading
from reconciler.syncing.answers import Discovery, checked, checked_page, discovered, refused
from reconciler.syncing.errors import Excessive, TargetRefused, TargetUnreachable
from reconciler.syncing.https import HTTPLimits, Https, Request, TargetAnswer, endless

Object = dict[str, Any]

_JSON, _APPLY = "application/json", "application/apply-patch+yaml"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_DISCOVERY = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_NAMESPACES = "/api/v1/namespaces"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_MAY_WRITE = orjson.dumps(
    {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "namespaces"}},
    }
)


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Seconds. `answer`: of one request. `ping`: of one request of a heartbeat. `watch`: how long a watch is asked for,
    and `late` how much longer it may last (one that hears nothing for a while is opened anew, see Limits; targets send
    bookmarks about every minute). `page`: objects asked for at once; `objects`: that a list has at most."""

    answer: float = 15.0
    ping: float = 5.0
    watch: int = 300
    late: float = 30.0
    page: int = 500
    objects: int = 500_000
    limits: HTTPLimits = field(default_factory=HTTPLimits)


@dataclass(frozen=True, slots=True)
class _How:
    """Of a request. `kind`: of its body; `seconds`: 0 for the usual ones; `writes`: unless it is a GET; `last`: also
    when the rest is finished."""

    kind: str = _JSON
    accept: str = _JSON
    seconds: float = 0.0
    writes: bool = True
    last: bool = False


class TargetPage(NamedTuple):
    """A part of a list: objects (without apiVersion and kind). `size`: bytes of all of them; `revision`: to watch from,
    "" unless it is the last part."""

    items: list[Object]
    size: int
    revision: str = ""


class TargetEvent(NamedTuple):
    """Of a watch, bookmarks and errors included. `size`: bytes."""

    kind: str
    object: Object
    size: int = 0


def path(kind: GroupResource, version: str, namespace: str = "", name: str = "") -> str:
    """`/apis/apps/v1/namespaces/x/deployments/y`."""
    base = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{base}{scope}/{kind.resource}" + (f"/{name}" if name else "")


class TargetClient:
    """One target. `connect` is the way in. Every call raises Denied, Unreachable and Refused."""

    given: Kubeconfig | None = None
    """What it was connected with, or goes on with."""

    def __init__(self, https: Https, settings: ClientSettings) -> None:
        self.settings = settings
        self._https = https
        self._watches: set[TargetAnswer] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.discovery = Discovery()
        self.barred: Callable[[], str] = lambda: ""
        """Why nothing may be written just now, "" if it may."""
        self.embedded = False
        """Whether this very server plays the cluster."""
        self.left: Callable[[], float] = endless
        """Seconds within which a write that is begun now has to be over."""

    def ping(self) -> None:
        """Not `/version`, which many clusters answer to everybody: whether our rights stand."""
        with _let_in():
            how = _How(seconds=self.settings.ping, writes=False)
            self._request("GET", _NAMESPACES, {"limit": "1", "resourceVersion": "0"}, how=how)
            review = self._request("POST", _REVIEWS, body=_MAY_WRITE, how=how)
        allowed = review.get("status")
        if not isinstance(allowed, dict) or allowed.get("allowed") is not True:
            raise Denied("Forbidden", "its credentials may not create namespaces there: give them that right")

    def goes_on(self, kubeconfig: Kubeconfig) -> bool:
        """See controllers/targets."""
        before = self.given
        if before is None or replace(before, data=b"") != replace(kubeconfig, data=b""):
            return False
        try:
            old, new = reading.read(before.data), reading.read(kubeconfig.data)
        except Denied:
            return False
        if not new.token or replace(old, token="") != replace(new, token=""):
            return False
        self._https.token(new.token)
        self.given = kubeconfig
        return True

    def served(self) -> Mapping[GroupResource, tuple[str, ...]]:
        """Asks the target what it serves, and remembers it in `discovery`."""
        with _let_in():
            self.discovery = discovered(self._request("GET", p, how=_How(accept=_DISCOVERY)) for p in ("/api", "/apis"))
        return self.discovery.versions

    def get(self, where: str) -> Object | None:
        try:
            return checked(self._request("GET", where))
        except TargetRefused as error:
            if error.code == 404:
                return None
            raise

    def metadata(self, where: str) -> Object | None:
        """An object without what it holds."""
        try:
            return checked(self._request("GET", where, how=_How(accept=_METADATA)))
        except TargetRefused as error:
            if error.code == 404:
                return None
            raise

    def list(self, where: str, selector: str = "") -> Iterator[TargetPage]:
        """All objects, in parts. Raises Excessive for more of them than any cluster has."""
        limit, count = self.settings.page, 0
        query = {"labelSelector": selector}
        while True:
            query["limit"] = str(limit)
            try:
                data = self._asked("GET", where, query, None, _How())
            except Excessive:
                if limit == 1:
                    raise
                limit = max(1, limit // 8)  # some large objects
                continue
            page = checked_page(data, where)
            count += len(page.items)
            if count > self.settings.objects:
                raise Excessive(f"it lists more than {self.settings.objects} objects at {where}")
            if not page.token:
                yield TargetPage(page.items, len(data), page.revision)
                return
            if not page.items:
                raise TargetUnreachable(f"GET {where} was answered with nothing, and more of it")
            yield TargetPage(page.items, len(data))
            query["continue"] = page.token

    def revision(self, where: str, fields: str) -> str:
        """To watch from what is there now, whatever that is."""
        query = {"limit": "1", "fieldSelector": fields}
        data = self._asked("GET", where, query, None, _How())
        return checked_page(data, where).revision

    def apply(self, where: str, body: bytes, *, dry_run: bool = False) -> Object:
        """Server-side apply, as field manager `treeplane`, by force; the object as it is then."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        return checked(self._request("PATCH", where, query, body, _How(kind=_APPLY)))

    def create(self, where: str, body: bytes) -> Object:
        return checked(self._request("POST", where, {"fieldManager": FIELD_MANAGER}, body))

    def delete(self, where: str, uid: str) -> None:
        """This very object, its dependents in the background; one that is gone already is none of an error."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            self._request("DELETE", where, None, orjson.dumps(options))
        except TargetRefused as error:
            if error.code != 404:
                raise

    def token(self, namespace: str, name: str, seconds: int) -> str:
        """A new token of a ServiceAccount, for about so long: the target may give a shorter one. Text and nothing
        more; whether it is one, the caller finds out."""
        where = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        wanted = {"expirationSeconds": seconds}
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": wanted}
        status = self._request("POST", where, None, orjson.dumps(body)).get("status")
        found = status.get("token") if isinstance(status, dict) else None
        if not isinstance(found, str) or not found:
            raise TargetUnreachable("it answered a request for a token with something else")
        return found

    def leased(self, method: str, where: str, body: bytes | None = None) -> Object:
        """A request about the Lease, which decides whether anything else may be written. Also after `finish`."""
        how = _How(seconds=self.settings.ping, writes=False, last=True)
        return checked(self._request(method, where, None, body, how))

    def watch(self, where: str, selector: str, revision: str, fields: str = "") -> Iterator[TargetEvent]:
        """Until the target or `close` ends it. `selector`: of labels; `fields`: of fields."""
        query = {
            "watch": "true",
            "labelSelector": selector,
            "fieldSelector": fields,
            "resourceVersion": revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self.settings.watch),
        }
        seconds = self.settings.watch + self.settings.late
        with self._sent(Request("GET", _url(where, query), seconds, headers={"Accept": _JSON})) as answer:
            try:
                with self._lock:
                    if self._closed:
                        return
                    self._watches.add(answer)
                if answer.status >= 300:
                    raise refused(answer.status, answer.whole(), where)
                for line in answer.lines():
                    if line.strip():
                        yield _event(line, where)
            except TargetUnreachable:
                if not self._closed:
                    raise
            finally:
                with self._lock:
                    self._watches.discard(answer)

    def finish(self) -> None:
        """End watches under way; later requests fail, but for those about the Lease."""
        with self._lock:
            self._closed = True
            watches = list(self._watches)
        for answer in watches:
            answer.abort()

    def close(self) -> None:
        """`finish`, and let go of the connections."""
        self.finish()
        self._https.close()

    def _request(
        self,
        method: str,
        where: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        how: _How = _How(),
    ) -> Object:
        try:
            found = orjson.loads(self._asked(method, where, query, body, how))
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise TargetUnreachable(f"{method} {where} was not answered with a JSON object")
        return found

    def _asked(self, method: str, where: str, query: Mapping[str, str] | None, body: bytes | None, how: _How) -> bytes:
        writes = method != "GET" and how.writes
        if writes:
            why = self.barred()
            if why:
                raise Expected(why)
        headers = {"Accept": how.accept} | ({"Content-Type": how.kind} if body is not None else {})
        left = self.left if writes else endless
        request = Request(method, _url(where, query or {}), how.seconds or self.settings.answer, body, headers, left)
        began, code = time.monotonic(), 0
        try:
            with self._sent(request, last=how.last) as answer:
                data, code = answer.whole(), answer.status
        finally:
            LATENCY.took(time.monotonic() - began, method)
            REQUESTS.add(method, str(code))
        if code >= 300:
            raise refused(code, data, where)
        return data

    def _sent(self, request: Request, *, last: bool = False) -> TargetAnswer:
        if self._closed and not last:
            raise TargetUnreachable("the connection was closed")
        return self._https.ask(request)


@contextmanager
def _let_in() -> Iterator[None]:
    """Who is not let in can do nothing about it by trying again."""
    try:
        yield
    except TargetRefused as error:
        if error.code == 401:
            raise Denied("Unauthorized", f"it does not accept the kubeconfig's credentials ({error})") from None
        if error.code == 403:
            raise Denied("Forbidden", f"its credentials lack rights there ({error})") from None
        raise


def connect(given: Kubeconfig, settings: ClientSettings | None = None) -> TargetClient:
    """Connects at the first request. Raises Unusable."""
    settings = settings or ClientSettings()
    access = reading.read(given.data)
    outbound = Outbound(EVERYWHERE if given.anywhere else ())
    client = TargetClient(Https(access, outbound, settings.limits, given.remedy, given.first), settings)
    client.embedded, client.given = given.embedded, given
    return client


def _url(where: str, query: Mapping[str, str]) -> str:
    wanted = {k: v for k, v in query.items() if v}
    return where + ("?" + urlencode(wanted) if wanted else "")


def _event(line: bytes, where: str) -> TargetEvent:
    try:
        event = orjson.loads(line)
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            return TargetEvent(kind, obj)
        if kind == "BOOKMARK":
            return TargetEvent(kind, {"metadata": {"resourceVersion": str(obj["metadata"]["resourceVersion"])[:100]}})
        return TargetEvent(str(kind), checked(obj), len(line))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise TargetUnreachable(f"a watch of {where} was not answered with events") from None
