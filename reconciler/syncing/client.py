"""The connection to a sync target: the only door to the `kubernetes` package.

Its configuration and authentication are used (client certificates, tokens, exec plugins, proxies); requests go straight
through its connection pool, bytes in and bytes out, since its typed models cost more than the request itself. Knows
paths and verbs, and nothing of what is synced. Safe from every thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3
import yaml
from kubernetes import config
from kubernetes.client import ApiClient, Configuration

from apiserver.model.kinds import GroupResource
from apiserver.model.marks import FIELD_MANAGER
from reconciler.controllers.runtime import Expected
from reconciler.syncing.errors import Refused, Unreachable, Unusable

Object = dict[str, Any]

_APPLY = "application/apply-patch+yaml"
_DISCOVERY = ",".join(
    f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")
)
_CONNECTIONS = 64
_VERBS = frozenset({"list", "watch", "patch", "delete"})


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Seconds. `connect`, `answer`: of one request. `ping`: of a heartbeat. `watch`: how long a watch is asked for;
    one that hears nothing for `quiet` seconds is opened anew (targets send bookmarks about every minute)."""

    connect: float = 5.0
    answer: float = 15.0
    ping: float = 5.0
    watch: int = 300
    quiet: float = 150.0


@dataclass(frozen=True, slots=True)
class Discovery:
    """What a target serves: namespaced resources that can be synced, with versions (preferred first), and the resource
    of each (group, kind)."""

    versions: Mapping[GroupResource, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[tuple[str, str], GroupResource] = field(default_factory=dict)


def path(kind: GroupResource, version: str, namespace: str = "", name: str = "") -> str:
    """`/apis/apps/v1/namespaces/x/deployments/y`."""
    base = f"/apis/{kind.group}/{version}" if kind.group else f"/api/{version}"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"{base}{scope}/{kind.resource}" + (f"/{name}" if name else "")


class Client:
    """One target. `connect` is the way in."""

    def __init__(self, configuration: Configuration, settings: ClientSettings | None = None) -> None:
        configuration.connection_pool_maxsize = _CONNECTIONS
        configuration.retries = False
        self.settings = settings or ClientSettings()
        self._configuration = configuration
        self._pool = ApiClient(configuration).rest_client.pool_manager
        self._watches: set[urllib3.BaseHTTPResponse] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.discovery = Discovery()
        self.barred: Callable[[], str] = lambda: ""
        """Why nothing may be written just now, "" if it may."""

    def ping(self) -> None:
        self._request("GET", "/version", timeout=self.settings.ping)

    def served(self) -> Mapping[GroupResource, tuple[str, ...]]:
        """Asks the target what it serves, and remembers it in `discovery`."""
        self.discovery = discovered(self._request("GET", p, accept=_DISCOVERY) for p in ("/api", "/apis"))
        return self.discovery.versions

    def get(self, where: str) -> Object | None:
        try:
            return self._request("GET", where)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def list(self, where: str, selector: str = "", limit: int = 500) -> tuple[list[Object], str]:
        """All objects (without apiVersion and kind) and the resourceVersion to watch from."""
        items: list[Object] = []
        query = {"labelSelector": selector, "limit": str(limit)}
        while True:
            page = self._request("GET", where, query)
            items += page.get("items") or []
            token = page["metadata"].get("continue")
            if not token:
                return items, str(page["metadata"].get("resourceVersion", ""))
            query["continue"] = token

    def apply(self, where: str, body: bytes, *, dry_run: bool = False) -> Object:
        """Server-side apply, as field manager `treeplane`, by force; the object as it is then."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        if dry_run:
            query["dryRun"] = "All"
        return self._request("PATCH", where, query, body, content_type=_APPLY)

    def create(self, where: str, body: bytes) -> Object:
        return self._request("POST", where, {"fieldManager": FIELD_MANAGER}, body)

    def delete(self, where: str, uid: str) -> None:
        """This very object, its dependents in the background; one that is gone already is none of an error."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            self._request("DELETE", where, None, orjson.dumps(options))
        except Refused as error:
            if error.code != 404:
                raise

    def watch(self, where: str, selector: str, revision: str) -> Iterator[tuple[str, Object]]:
        """(type, object) of each event, bookmarks and errors included, until the target or `close` ends it."""
        query = {
            "watch": "true",
            "labelSelector": selector,
            "resourceVersion": revision,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(self.settings.watch),
        }
        timeout = urllib3.Timeout(connect=self.settings.connect, read=self.settings.quiet)
        response = self._send("GET", where, query, None, {}, timeout, stream=True)
        try:
            with self._lock:
                if self._closed:
                    return
                self._watches.add(response)
            if response.status >= 400:
                raise _refused(response.status, response.read(), where)
            for line in response:
                if line.strip():
                    event = orjson.loads(line)
                    yield event["type"], event["object"]
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            if not self._closed:
                raise Unreachable(_why(error)) from None
        finally:
            with self._lock:
                self._watches.discard(response)
            response.close()
            response.release_conn()

    def close(self) -> None:
        """End watches under way; later requests fail."""
        with self._lock:
            self._closed = True
            watches = list(self._watches)
        for response in watches:
            with contextlib.suppress(OSError, ValueError, RuntimeError):
                response.shutdown()
        self._pool.clear()

    def _request(
        self,
        method: str,
        where: str,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        content_type: str = "application/json",
        accept: str = "application/json",
        timeout: float = 0.0,
    ) -> Object:
        if method != "GET":
            why = self.barred()
            if why:
                raise Expected(why)
        limit = urllib3.Timeout(connect=timeout or self.settings.connect, read=timeout or self.settings.answer)
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = content_type
        response = self._send(method, where, query, body, headers, limit)
        if response.status >= 400:
            raise _refused(response.status, response.data, where)
        try:
            found: Object = orjson.loads(response.data)
        except ValueError:
            raise Unreachable(f"{method} {where} was not answered with JSON") from None
        return found

    def _send(
        self,
        method: str,
        where: str,
        query: Mapping[str, str] | None,
        body: bytes | None,
        headers: dict[str, str],
        timeout: urllib3.Timeout,
        *,
        stream: bool = False,
    ) -> urllib3.BaseHTTPResponse:
        if self._closed:
            raise Unreachable("the connection was closed")
        wanted = {k: v for k, v in (query or {}).items() if v}
        url = self._configuration.host + where + ("?" + urlencode(wanted) if wanted else "")
        try:
            sent = {**headers, **self._authentication(), "User-Agent": "treeplane"}
            return self._pool.request(
                method, url, body=body, headers=sent, timeout=timeout, retries=False, preload_content=not stream
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(_why(error)) from None

    def _authentication(self) -> dict[str, str]:
        """The Authorization header; an exec plugin's token is fetched anew when it has expired."""
        settings: list[Any] = list(self._configuration.auth_settings().values())
        return {s["key"]: s["value"] for s in settings if s["in"] == "header" and s["value"]}


def connect(kubeconfig: bytes, settings: ClientSettings | None = None) -> Client:
    """From a kubeconfig (YAML or JSON), its current context. Raises Unusable."""
    try:
        content = yaml.safe_load(kubeconfig)
        configuration = Configuration()
        load: Callable[..., None] = config.load_kube_config_from_dict
        load(content, client_configuration=configuration, persist_config=False)
    except Exception as error:  # the loader raises whatever its parts raise; their texts may quote credentials
        raise Unusable(f"the kubeconfig cannot be used ({type(error).__name__})") from None
    configuration.host = configuration.host.rstrip("/")
    return Client(configuration, settings)


def discovered(documents: Iterator[Object]) -> Discovery:
    """From aggregated discovery (`/api` and `/apis`)."""
    versions: dict[GroupResource, tuple[str, ...]] = {}
    kinds: dict[tuple[str, str], GroupResource] = {}
    for document in documents:
        for group in document.get("items") or ():
            name = (group.get("metadata") or {}).get("name", "")
            for version in group.get("versions") or ():
                for resource in version.get("resources") or ():
                    if resource.get("scope") != "Namespaced" or not set(resource.get("verbs") or ()) >= _VERBS:
                        continue
                    found = GroupResource(name, resource["resource"])
                    versions[found] = (*versions.get(found, ()), version["version"])
                    kinds.setdefault((name, resource["responseKind"]["kind"]), found)
    return Discovery(versions, kinds)


def _refused(code: int, data: bytes, where: str) -> Refused:
    try:
        status = orjson.loads(data)
        reason, message = str(status.get("reason") or code), str(status.get("message", ""))
    except (ValueError, AttributeError):
        reason, message = f"HTTP {code}", ""
    # What an API server says about a Secret may quote it.
    return Refused(code, reason, "" if "/secrets" in where else message)


def _why(error: Exception) -> str:
    """A short, stable text: addresses of objects and ports of ours would make every failure look new."""
    inner: BaseException = error
    while isinstance(getattr(inner, "reason", None), BaseException):
        inner = inner.reason  # type: ignore[attr-defined]
    text = str(inner).lower()
    if isinstance(inner, urllib3.exceptions.NewConnectionError) or "refused" in text:
        return "connection refused" if "refused" in text else "no connection"
    if isinstance(inner, (urllib3.exceptions.TimeoutError, TimeoutError)) or "timed out" in text:
        return "timed out"
    if "certificate" in text:
        return "its certificate is not trusted"
    return f"connection broken ({type(inner).__name__})"
