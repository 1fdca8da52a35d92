"""A small server with a few workspaces, for programs that a user runs: real TLS, made-up answers.

For unit tests of the plugins. It asks for the administrator's certificate.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from apiserver.auth.pki import Keys

Object = dict[str, Any]
Reply = tuple[int, Object]

TREE = {"root": ["shop", "infra"], "root:shop": ["web", "db"], "root:shop:web": ["deep"], "root:infra": []}
UNIVERSAL = {"path": "root", "name": "universal"}


class Fake(BaseHTTPRequestHandler):
    """`fresh()` is a class of its own, since a server makes an instance for each connection."""

    tree: dict[str, list[str]]
    denied: set[str]
    """Paths that answer 403, whether there is something or not. What root:infra is may not be read."""
    wildcard = True
    """Whether `*` may be listed."""
    asked: list[str]
    """Paths of the requests so far."""
    made: dict[str, Object]
    """Workspaces that were made."""
    phases: list[str]
    """Which those still pass; they stay in the last."""
    refused = ""
    """What the server says to whoever makes something."""
    objects: dict[str, Object]
    """What is there besides, by `resource/name`, in each workspace."""
    statuses: dict[str, Object]
    """What workspaces say of themselves, by path."""
    placements: list[Object]
    home: list[Reply]
    """The answers to who asks for the user's own workspace; the last one stays."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.asked.append(url.path)
        _, _, workspace, rest = url.path.split("/", 3)
        self._reply(self._answer(workspace, rest, parse_qs(url.query)))

    def do_POST(self) -> None:
        body = self._body()
        workspace, resource = self.path.split("/")[2], self.path.rpartition("/")[2]
        name = body["metadata"]["name"]
        key = f"{resource}/{name}"
        if self.refused:
            self._reply((403, {"message": self.refused}))
        elif name in self.made or key in self.objects:
            said = f'{resource} "{name}" already exists'
            self._reply((409, {"reason": "AlreadyExists", "message": said}))
        elif resource == "workspaces":
            body["spec"]["type"] = {**UNIVERSAL, **body["spec"].get("type", {})}
            self.made[name] = body
            self.tree[workspace].append(name)
            self._reply((201, {**body, "status": {"phase": self.phases[0]}}))
        else:
            self.objects[key] = body
            self._reply((201, {**body, "status": {"phase": self.phases[0]}}))

    def do_PUT(self) -> None:
        key = "/".join(self.path.split("/")[-2:])
        self.objects[key] = self._body()
        self._reply((200, self.objects[key]))

    def _body(self) -> Object:
        found: Object = json.loads(self.rfile.read(int(self.headers["content-length"])))
        return found

    def _reply(self, answer: Reply) -> None:
        assert self.connection.getpeercert()["subject"][-1][0][1] == "kcp-admin"  # type: ignore[attr-defined]
        status, body = answer
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _paths(self) -> set[str]:
        return {"root", *(f"{parent}:{name}" for parent, names in self.tree.items() for name in names)}

    def _answer(self, workspace: str, rest: str, query: dict[str, list[str]]) -> Reply:
        if workspace == "*" and rest.endswith("/placements"):
            return (200, {"items": self.placements}) if self.wildcard else (403, {})
        if workspace == "*":
            return self._everything(query) if self.wildcard else (403, {})
        path = {"c-root-shop": "root:shop"}.get(workspace, workspace)
        if path in self.denied:
            return 403, {}
        if path not in self._paths():
            return 404, {}
        if rest == "apis":
            return 200, {}
        if path == "root:infra":
            return 403, {}
        if rest.endswith("/placements"):
            here = {"kcp.io/cluster": cluster(path)}
            return 200, {"items": [each for each in self.placements if each["metadata"]["annotations"] == here]}
        if rest.endswith("/logicalclusters/cluster"):
            annotations = {
                "kcp.io/path": path,
                "kcp.io/cluster": cluster(path),
                "internal.tenancy.kcp.io/type": "root:universal",
            }
            return 200, {"metadata": {"annotations": annotations}}
        return self._object(path, *rest.split("/")[3:])

    def _object(self, path: str, resource: str, name: str = "") -> Reply:
        if name == "~":
            return self.home.pop(0) if len(self.home) > 1 else self.home[0]
        if name in self.made:
            return 200, self._passing(self.made[name])
        if resource == "workspaces":
            names = self.tree.get(path, [])
            one = (200, self._workspace(path, name)) if name in names else (404, {"message": f'"{name}" not found'})
            return one if name else (200, {"items": [self._workspace(path, each) for each in names]})
        if name:
            found = self.objects.get(f"{resource}/{name}")
            return (200, self._passing(found)) if found else (404, {"message": f'{resource} "{name}" not found'})
        return 200, {"items": [obj for key, obj in self.objects.items() if key.startswith(f"{resource}/")]}

    def _passing(self, obj: Object) -> Object:
        """One phase further each time; one that has a status says what it is."""
        phase = self.phases.pop(0) if len(self.phases) > 1 else self.phases[0]
        lacks = {"type": "WorkspaceInitialized", "status": "False", "message": "an initializer is still at work"}
        return {"status": {"phase": phase, "conditions": [lacks]}, **obj}

    def _workspace(self, parent: str, name: str) -> Object:
        metadata = {"name": name, "annotations": {"kcp.io/cluster": cluster(parent)}}
        status = self.statuses.get(f"{parent}:{name}", {})
        return {
            "metadata": metadata,
            "spec": {"cluster": cluster(f"{parent}:{name}"), "type": UNIVERSAL},
            "status": status,
        }

    def _everything(self, query: dict[str, list[str]]) -> Reply:
        """Two to a page."""
        found = [self._workspace(parent, name) for parent, names in self.tree.items() for name in names]
        at = int(query.get("continue", ["0"])[0])
        more = {"continue": str(at + 2)} if at + 2 < len(found) else {}
        return 200, {"metadata": more, "items": found[at : at + 2]}

    def log_message(self, *arguments: object) -> None:
        pass


def cluster(path: str) -> str:
    """The name of its logical cluster."""
    return f"c-{path.replace(':', '-')}"


def fresh() -> type[Fake]:
    tree = {parent: list(names) for parent, names in TREE.items()}
    said: Object = {"tree": tree, "denied": set(), "asked": [], "made": {}, "phases": ["Ready"], "objects": {}}
    said |= {"statuses": {}, "placements": []}
    return type("Configured", (Fake,), {**said, "home": [(404, {})]})


@contextmanager
def serving(keys: Keys, fake: type[Fake]) -> Iterator[str]:
    """The server's URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), fake)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=keys.ca)
    context.load_cert_chain(keys.server.certificate, keys.server.key)
    context.verify_mode = ssl.CERT_REQUIRED
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
