"""The Kubernetes API in-process: real stores in tmp_path, real authorization, callers named by a header.

`api` is a fleet with the workspaces root, root:shop (logical cluster `shopcluster00000`) and root:broken, which never
had a good commit, and the embedded sync target `edge` of root. `run` runs a coroutine.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from apiserver.auth.accounts import Accounts, Issuer
from apiserver.auth.pki import TokenSigner, ensure_keys
from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import AUTHENTICATED, MASTERS, User
from apiserver.endpoints.homes import homes
from apiserver.endpoints.kube import KubernetesAPI
from apiserver.endpoints.realms import Realm
from apiserver.model.commits import own
from apiserver.model.errors import unauthorized
from apiserver.model.keys import Key
from apiserver.registry import codec
from apiserver.registry.builtins.served import target_builtins
from apiserver.registry.catalog import Catalog
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, placed, put_fleet, put_workspace
from apiserver.settings import ServerSettings
from apiserver.storage.lmdb import open_store
from apiserver.storage.protocol import Delete, Put, Store
from apiserver.stores import DECLARED

SHOP = "shopcluster00000"
RBAC = "rbac.authorization.k8s.io"
EDGE = "/targets/root:edge"

Object = dict[str, Any]


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> str:
        return self.json["message"]


class Callers:
    """Stands in for the Authenticator: `authorization: Bearer ann` is ann; without one, an administrator.
    ServiceAccount tokens are what they are."""

    def __init__(self) -> None:
        self.accounts: Accounts | None = None

    def authenticate(self, scope: Any, *, basic: bool = False) -> User:
        for name, value in scope["headers"]:
            if name == b"authorization":
                found = self.review(value.decode().removeprefix("Bearer "))
                if found is None:
                    raise unauthorized()
                return found[0]
        return User("admin", (MASTERS, AUTHENTICATED))

    def review(self, token: str, audiences: Any = ()) -> tuple[User, list[str]] | None:
        if token.count(".") == 2 and self.accounts:
            return self.accounts.authenticate(token, audiences)
        return None if token == "nobody" else (User(token, (AUTHENTICATED,)), list(audiences))


class OneTarget:
    """The embedded sync target root:edge."""

    def __init__(self, realm: Realm) -> None:
        self._realm = realm

    def realm(self, workspace: str, name: str) -> Realm | None:
        return self._realm if (workspace, name) == ("root", "edge") else None


def manifest(kind: str, name: str, namespace: str = "", cluster: str = "root", **content: Any) -> Object:
    """As the store has it. `kind`: `v1 ConfigMap`. `labels`, `annotations`: metadata's."""
    api_version, kind = kind.split()
    annotations = {"kcp.io/cluster": cluster, **content.pop("annotations", {})}
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
    if namespace:
        metadata["namespace"] = namespace
    if "labels" in content:
        metadata["labels"] = content.pop("labels")
    return {"kind": kind, "apiVersion": api_version, "metadata": {**metadata, "annotations": annotations}, **content}


class Watch:
    """An open watch: `await next()` gives the next event, None when the stream has ended."""

    def __init__(self, api: KubernetesAPI, path: str, headers: dict[str, str]) -> None:
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.chunks = 0
        self.status = 0
        self.stalled: asyncio.Event | None = None
        self._rest = b""
        self._gone = asyncio.Event()
        self.task = asyncio.ensure_future(api(_scope("GET", path, headers), self._receive, self._send))

    async def _receive(self) -> Any:
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            return
        if self.stalled is not None:
            await self.stalled.wait()
        self.chunks += bool(message["body"])
        *lines, self._rest = (self._rest + message["body"]).split(b"\n")
        for line in lines:
            self.events.put_nowait(orjson.loads(line))
        if not message.get("more_body"):
            if self._rest:
                self.events.put_nowait(orjson.loads(self._rest))
            self.events.put_nowait(None)

    async def next(self) -> Any:
        return await asyncio.wait_for(self.events.get(), 10)

    async def seen(self, count: int) -> list[tuple[str, str]]:
        """Type and name of the next events."""
        found = [await self.next() for _ in range(count)]
        return [(e["type"], e["object"]["metadata"].get("name", "")) for e in found]

    async def leave(self) -> None:
        self._gone.set()
        await self.task


def _scope(method: str, path: str, headers: dict[str, str]) -> Object:
    path, _, query = path.partition("?")
    return {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
        "extensions": {},
    }


class API:
    """A server and its stores."""

    manifest = staticmethod(manifest)
    SHOP = SHOP
    EDGE = EDGE

    def __init__(self, directory: Path) -> None:
        self.store: Store = open_store(directory / "store", declared=DECLARED, sync=False)
        self.target: Store = open_store(directory / "edge", declared=DECLARED, sync=False)
        realm = Realm(self.target, Catalog(self.target, target_builtins()), Authorizer(self.target, "target:root:edge"))
        settings = ServerSettings(directory, directory / "keys")
        targets, catalog, callers = OneTarget(realm), Catalog(self.store), Callers()
        issuer = Issuer("https://kcp.default.svc", ("https://kcp.default.svc",))
        signer = TokenSigner(ensure_keys(directory / "keys"))
        callers.accounts = Accounts(signer, issuer, homes(self.store, catalog, targets))
        self.app = KubernetesAPI(
            self.store,
            catalog,
            callers,  # type: ignore[arg-type]
            Authorizer(self.store),
            settings,
            targets,
            callers.accounts,
        )
        self.hub = self.app._realms.main.hub

    def close(self) -> None:
        self.app.close()
        self.store.close()
        self.target.close()

    def put(self, *objects: Object, store: Store | None = None) -> int:
        """Stores objects as they are (cluster from their annotation); the last revision."""
        return (store or self.store).write(*(Put(key_of(o), codec.encode(o)) for o in objects)).result(10)[-1]

    def delete(self, obj: Object) -> int:
        return self.store.write(Delete(key_of(obj))).result(10)[-1]

    def put_fleet(self, **fields: Any) -> None:
        self.store.write(put_fleet(FleetRecord("fleet", **fields))).result(10)

    def put_workspace(self, path: str, cluster: str, **fields: Any) -> None:
        record = WorkspaceRecord(path, cluster, path.rpartition(":")[0], **fields)
        self.store.write(put_workspace(record), placed(record)).result(10)

    def allow(self, user: str, *rules: Object, cluster: str = "root") -> None:
        """Access to the workspace, and `rules`."""
        access = {"verbs": ["access"], "nonResourceURLs": ["/"]}
        role = manifest(f"{RBAC}/v1 ClusterRole", user, cluster=cluster, rules=[access, *rules])
        binding = manifest(
            f"{RBAC}/v1 ClusterRoleBinding",
            user,
            cluster=cluster,
            roleRef={"apiGroup": RBAC, "kind": "ClusterRole", "name": user},
            subjects=[{"kind": "User", "apiGroup": RBAC, "name": user}],
        )
        self.put(role, binding)

    async def call(
        self, method: str, path: str, body: Any = b"", *, kind: str = "", user: str = "", **headers: str
    ) -> Reply:
        """`kind`: the Content-Type. Header names have `_` for `-`."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        sent = {k.replace("_", "-"): v for k, v in headers.items()}
        if kind:
            sent["content-type"] = kind
        if user:
            sent["authorization"] = f"Bearer {user}"
        waiting = [{"type": "http.request", "body": data, "more_body": False}]
        found: Object = {"body": b""}

        async def receive() -> Any:
            return waiting.pop() if waiting else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found["status"], found["headers"] = message["status"], message["headers"]
            else:
                found["body"] += message["body"]

        await self.app(_scope(method, path, sent), receive, send)
        return Reply(found["status"], {k.decode(): v.decode() for k, v in found["headers"]}, found["body"])

    async def get(self, path: str, **headers: str) -> Reply:
        return await self.call("GET", path, **headers)

    def watch(self, path: str, **headers: str) -> Watch:
        return Watch(self.app, path, headers)


def key_of(obj: Object) -> Key:
    metadata = obj["metadata"]
    group, _, _ = obj["apiVersion"].rpartition("/")
    plural = obj["kind"].lower() + ("es" if obj["kind"].endswith("s") else "s")
    resource = f"{plural}.{group}" if group else plural
    cluster = metadata["annotations"]["kcp.io/cluster"]
    return Key(resource, cluster, metadata.get("namespace", ""), metadata["name"])


@pytest.fixture
def api(tmp_path: Path) -> Iterator[API]:
    made = API(tmp_path)
    made.put_fleet(loaded=True)
    made.put_workspace("root", "root", directory="workspaces/root")
    made.put_workspace("root:shop", SHOP, directory="workspaces/root/shop", commit=own("c0ffee" * 6 + "c0ff"))
    made.put_workspace("root:broken", "broken0000000000", served=False, errors=["workspaces/root/broken/a.yaml:3: bad"])
    made.put(
        manifest("v1 Namespace", "default", labels={"kubernetes.io/metadata.name": "default"}),
        manifest("v1 Namespace", "default", cluster=SHOP),
        manifest("v1 ConfigMap", "a", "default", data={"k": "1"}, labels={"app": "a"}),
        manifest("v1 ConfigMap", "b", "default", data={"k": "2"}, labels={"app": "b"},
                 annotations={"treeplane.dev/source-path": "workspaces/root/b.yaml"}),
        manifest("v1 ConfigMap", "c", "other", data={"k": "3"}, labels={"app": "a"}),
        manifest("v1 ConfigMap", "s", "default", SHOP, data={"k": "4"}, labels={"app": "a"}),
    )  # fmt: skip
    made.put(manifest("v1 Namespace", "default", cluster="target"), store=made.target)
    yield made
    made.close()


@pytest.fixture
def api_at(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], API]:
    """Makes further ones, with nothing but root in them; whoever asks closes them."""

    def make() -> API:
        made = API(tmp_path_factory.mktemp("api"))
        made.put_fleet(loaded=True)
        made.put_workspace("root", "root", directory="workspaces/root")
        return made

    return make


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    def runner(coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(asyncio.wait_for(coroutine, 60))

    return runner
