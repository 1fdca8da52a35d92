"""A loaded fleet with the Kubernetes API in front of it and controllers behind: what a client writes, and what becomes
of it.

For unit tests: the store of a LoadedFleet, requests in this thread, no server. Who calls is named: `admin` is an
administrator of everything, everybody else has what RBAC grants.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from support.commitfleet import CommitFleet
from support.fleetrepo import FleetRepo
from support.settling import Settling

from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import AUTHENTICATED, MASTERS, User
from apiserver.endpoints.kube import KubernetesAPI
from apiserver.registry.catalog import Catalog
from apiserver.settings import ServerSettings

Object = dict[str, Any]

ADMIN = "admin"
WORKSPACES = "/apis/tenancy.kcp.io/v1alpha1/workspaces"
LAB_TYPE = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: WorkspaceType
metadata: {name: lab}
spec: {writes: Store}
"""
LAB_YAML = """\
apiVersion: tenancy.kcp.io/v1alpha1
kind: Workspace
metadata: {annotations: {treeplane.dev/protected: "false"}}
spec: {type: {name: lab, path: root}}
"""
WIDGETS: Object = {
    "apiVersion": "apis.kcp.io/v1alpha1",
    "kind": "APIResourceSchema",
    "metadata": {"name": "v1.widgets.example.io"},
    "spec": {
        "group": "example.io",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"type": "object"}}],
    },
}


class Reply(NamedTuple):
    status: int
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def message(self) -> str:
        return str(self.json.get("message", ""))


class _Callers:
    """`authorization: Bearer ann` is ann."""

    def authenticate(self, scope: Any, *, basic: bool = False) -> User:
        name = next(
            value.decode().removeprefix("Bearer ") for key, value in scope["headers"] if key == b"authorization"
        )
        return User(name, (MASTERS, AUTHENTICATED) if name == ADMIN else (AUTHENTICATED,))

    def review(self, token: str, audiences: Any = ()) -> None:
        return None


class _NoTargets:
    def realm(self, workspace: str, name: str) -> None:
        return None


class ApiFleet(CommitFleet):
    """`call("POST", "root:a", "/api/v1/…", {…}, user="ann")`."""

    def __init__(self, directory: Path, repo: FleetRepo | None = None, keys: Path | None = None) -> None:
        super().__init__(directory, repo, keys)
        self._settling = Settling()
        self.app = self.new_app()

    def new_app(self) -> KubernetesAPI:
        """What answers requests."""
        return KubernetesAPI(
            self.store,
            Catalog(self.store),
            _Callers(),  # type: ignore[arg-type]
            Authorizer(self.store),
            ServerSettings(self.directory, self.directory / "keys"),
            _NoTargets(),
        )

    def close(self) -> None:
        self.app.close()
        super().close()

    def call(
        self,
        method: str,
        path: str,
        rest: str,
        body: Any = b"",
        *,
        user: str = ADMIN,
        kind: str = "application/json",
        accept: str = "",
    ) -> Reply:
        """In the workspace at `path`. `kind`: the Content-Type; `accept`: what is to be answered, if not JSON."""
        return self.ask(method, f"/clusters/{path}{rest}", body, user=user, kind=kind, accept=accept)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = b"",
        *,
        user: str = ADMIN,
        kind: str = "application/json",
        accept: str = "",
    ) -> Reply:
        """The same of any path of the server."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        headers = [(b"authorization", f"Bearer {user}".encode()), (b"content-type", kind.encode())]
        headers += [(b"accept", accept.encode())] * bool(accept)
        return asyncio.run(asyncio.wait_for(self._call(method, path, data, headers), 60))

    async def _call(self, method: str, path: str, data: bytes, headers: list[tuple[bytes, bytes]]) -> Reply:
        where, _, query = path.partition("?")
        scope = {"type": "http", "method": method, "path": where, "query_string": query.encode(), "headers": headers,
                 "extensions": {}}  # fmt: skip
        waiting = [{"type": "http.request", "body": data, "more_body": False}]
        found: Object = {"body": b""}

        async def receive() -> Any:
            return waiting.pop() if waiting else await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                found["status"] = message["status"]
            else:
                found["body"] += message["body"]

        await self.app(scope, receive, send)
        return Reply(found["status"], found["body"])

    def settle(self) -> None:
        """Controllers, and the loader where they ask it, do all there is to do."""
        self._settling(self)

    def restart(self, *, killed: bool) -> None:
        self._settling.restart(self, killed=killed)
        self.committer = self.new_committer()

    def make(self, path: str, spec: Object | None = None, user: str = ADMIN) -> Reply:
        """Makes a workspace through the API, and has it settle."""
        parent, _, name = path.rpartition(":")
        body = {
            "apiVersion": "tenancy.kcp.io/v1alpha1",
            "kind": "Workspace",
            "metadata": {"name": name},
            "spec": spec or {},
        }
        reply = self.call("POST", parent, WORKSPACES, body, user=user)
        self.settle()
        return reply

    def unmake(self, path: str, user: str = ADMIN) -> Reply:
        parent, _, name = path.rpartition(":")
        reply = self.call("DELETE", parent, f"{WORKSPACES}/{name}", user=user)
        self.settle()
        return reply
