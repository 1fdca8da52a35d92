"""A server in this thread with the tenants of support.tenants, and what is asked of it.

The real application: tokens, certificates, ServiceAccounts, the shell, the repository's door. `Ground.grown` makes the
fleet once; each test then works on a copy of it, since requests change what there is.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from support.apifleet import WORKSPACES, ApiFleet
from support.fleetrepo import TREEPLANE_YAML, FleetRepo
from support.tenants import (
    ANN,
    BEA,
    FINALIZERS,
    TOKENS,
    Words,
    crd,
    definition,
    of_ann,
    of_bea,
    of_guest,
    stored,
    thing,
)

from apiserver.app import App
from apiserver.auth.accounts import Accounts, Issuer
from apiserver.auth.authn import Authenticator
from apiserver.auth.peer import Peer
from apiserver.auth.pki import TokenSigner, ensure_keys
from apiserver.auth.rbac import Authorizer
from apiserver.endpoints.homes import homes
from apiserver.endpoints.kube import KubernetesAPI
from apiserver.endpoints.targets import EmbeddedTargets
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.registry.builtins.served import target_builtins
from apiserver.registry.catalog import Catalog
from apiserver.settings import ServerSettings
from apiserver.storage.protocol import Put
from apiserver.stores import open_at
from reconciler.loading.heads import BranchSettings
from reconciler.loading.loader import Loader

Object = dict[str, Any]

URL = "https://fleet.example.org"
ISSUER = "https://kcp.default.svc"
PADDING = Key("configmaps", "paddingcluster00", "default", "padding")
"""An object of nobody's."""
_TURNS = 50


class Sent(NamedTuple):
    """A request as it stands on the wire: `path` percent-encoded, headers in any letters, as often as they come."""

    method: str = "GET"
    path: str = "/"
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    peer: Peer | None = None

    @property
    def watches(self) -> bool:
        return self.method in ("GET", "HEAD") and ("watch" in self.query or "/watch/" in self.path)

    def scope(self) -> Object:
        headers = [(key.lower().encode("latin-1"), value.encode("latin-1")) for key, value in self.headers]
        return {
            "type": "http", "http_version": "1.1", "method": self.method, "scheme": "https", "root_path": "",
            "path": unquote(self.path), "raw_path": self.path.encode(), "query_string": self.query.encode("latin-1"),
            "headers": headers, "client": ("192.0.2.1", 1), "server": ("fleet.example.org", 443),
            "extensions": {"tls": self.peer},
        }  # fmt: skip


class Got(NamedTuple):
    """An answer, a watch's events included."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes


def bearer(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {token}"


class Tenancy(ApiFleet):
    """The fleet in `directory`, gone on with where it is there. `writes`: where those of the API go in ordinary
    workspaces."""

    def __init__(self, directory: Path, writes: str = "Store") -> None:
        directory.mkdir(exist_ok=True)
        super().__init__(directory, FleetRepo(directory / "fleet.git"))
        self._writes = writes
        self._runner = asyncio.Runner()
        if writes == "Commit":
            self.serve()

    def close(self) -> None:
        self._targets.close()
        super().close()
        self._runner.close()

    def new_loader(self, branch: BranchSettings | None = None) -> Loader:
        return super().new_loader(branch or BranchSettings(url=URL))

    def new_app(self) -> KubernetesAPI:
        keys, tokens = ensure_keys(self.directory / "keys"), self.directory / "tokens.csv"
        tokens.write_text(TOKENS)
        settings = ServerSettings(self.directory, keys.directory, external_url=URL, git_dir=self.repo.path)
        catalog, authorizer = Catalog(self.store), Authorizer(self.store)
        self._targets = EmbeddedTargets(
            self.store,
            self.directory / "targets",
            lambda at: open_at(at, sync=False),
            lambda store: Catalog(store, target_builtins()),
        )
        accounts = Accounts(TokenSigner(keys), Issuer(ISSUER, (ISSUER,)), homes(self.store, catalog, self._targets))
        self.authenticator = Authenticator(tokens, accounts, anonymous=True)
        kube = KubernetesAPI(self.store, catalog, self.authenticator, authorizer, settings, self._targets, accounts)
        self.server = App(settings, self.store, self.authenticator, authorizer, kube)
        return kube

    def send(self, sent: Sent, meanwhile: Callable[[], object] = lambda: None) -> Got:
        """`meanwhile`: what happens while a watch is open."""
        return self._runner.run(asyncio.wait_for(self._send(sent, meanwhile), 60))

    async def _send(self, sent: Sent, meanwhile: Callable[[], object]) -> Got:
        waiting = [{"type": "http.request", "body": sent.body, "more_body": False}]
        found: Object = {"body": b""}
        left = asyncio.Event()

        async def receive() -> Any:
            if waiting:
                return waiting.pop()
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found["status"], found["headers"] = message["status"], tuple(message["headers"])
            else:
                found["body"] += message.get("body", b"")

        task = asyncio.ensure_future(self.server(sent.scope(), receive, send))
        if sent.watches:
            await self._watched(task, meanwhile)
            left.set()
        await task
        return Got(found["status"], found["headers"], found["body"])

    async def _watched(self, task: asyncio.Future[None], meanwhile: Callable[[], object]) -> None:
        """Until all there is to be said is said."""
        hub = self.app._realms.main.hub
        while not task.done() and hub.count == 0:
            await asyncio.sleep(0.001)
        meanwhile()
        while not task.done() and hub.count and hub.position < self.store.revision():
            await asyncio.sleep(0.001)
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    # -- how it came to be

    def plant(self) -> None:
        """ann's part."""
        self.commit({"treeplane.yaml": TREEPLANE_YAML, **of_ann(self._writes)})
        assert not self.held(), self.held()
        self.store.write(tree.put_troubles({"Held": "something else"})).result()
        self.settle()
        secret = thing("v1", "Secret", "hers", "default", data={"k": "aGVycw=="})
        self.do("POST", "root:ann", "/api/v1/namespaces/default/secrets", secret)
        self.made("root:ann:made", ANN, "lab")
        for rest, obj in stored():
            self.do("POST", "root:ann:made", rest, obj)
            self.settle()

    def invade(self, words: Words, *, consumes: bool) -> None:
        """bea's part: files, and what is made of them and beside them through the API."""
        if consumes:  # in a commit of its own: what ann sees of it is the same, whatever bea's words are
            self.commit(of_guest())
        self.commit(of_bea(words, consumes=consumes))
        assert self.held().keys() == {f"root:bee:{words('bad')}"}, self.held()
        self.store.write(tree.put_troubles({"Held": f"commit 0 is held: {words('trouble')}"})).result()
        self.settle()
        secret = thing("v1", "Secret", words("secret"), words("space"), data={words("key"): words.encoded("inside")})
        self.do("POST", "root:bee", f"/api/v1/namespaces/{words('space')}/secrets", secret, user=BEA)
        self.made(f"root:bee:{words('waits')}", BEA, "gold")
        ending = f"root:bee:{words('ending')}"
        self.made(ending, BEA, "lab")
        kept = thing("v1", "ConfigMap", words("kept"), finalizers=FINALIZERS)
        self.do("POST", ending, "/api/v1/namespaces/default/configmaps", kept, user=BEA)
        self.do("DELETE", "root:bee", f"{WORKSPACES}/{words('ending')}", user=BEA)
        going = crd(definition(f"{words('gone')}.example.io", words.kind("going"), words("text"), words("field")))
        group, names = going["spec"]["group"], going["spec"]["names"]
        self.do("POST", "root:bee", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", going, user=BEA)
        last = thing(f"{group}/v1", names["kind"], words("last"), finalizers=FINALIZERS)
        self.settle()
        self.do("POST", "root:bee", f"/apis/{group}/v1/{names['plural']}", last, user=BEA)
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        self.do("DELETE", "root:bee", f"{definitions}/{going['metadata']['name']}", user=BEA)
        assert self.call("GET", "root", f"{WORKSPACES}/~", user=BEA).status == 429
        self.settle()
        self.do("GET", "root", f"{WORKSPACES}/~", user=BEA)

    def do(self, method: str, path: str, rest: str, body: Any = b"", user: str = ANN) -> Any:
        reply = self.call(method, path, rest, body, user=user)
        assert reply.status < 300, reply.message
        return reply.json

    def made(self, path: str, user: str, kind: str) -> None:
        reply = self.make(path, {"type": {"name": kind, "path": "root"}}, user)
        assert reply.status == 201, reply.message

    def reach(self, revision: int) -> None:
        """Writes what is nobody's, up to a revision."""
        left = revision - self.store.revision()
        self.store.write(*(pad(str(n)) for n in range(left))).result()
        assert self.store.revision() == revision


def pad(text: str) -> Put:
    return Put(PADDING._replace(name=f"padding{text}"), b"{}")


def copied(at: Path, to: Path) -> Path:
    shutil.copytree(at, to, symlinks=True)
    return to
