"""GitHub, GitLab and Gitea on loopback, as far as comments on a pull request and statuses of commits go: paths, pages,
headers and status codes as their APIs document them. Each class says in how far its forge differs."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple
from urllib.parse import parse_qs, urlsplit

from apiserver.auth.pki import Keys

TOKEN = "forge-token-of-the-bot"


class User(NamedTuple):
    id: int
    name: str


BOT, STRANGER = User(7, "treeplane-bot"), User(8, "stranger")


class Said(NamedTuple):
    """An answer. `body`: JSON, or bytes as they are."""

    status: int
    body: Any
    headers: Mapping[str, str] = MappingProxyType({})


class Asked(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]


@dataclass
class FakeForge:
    """`faults`: what is answered first, whatever is asked, to these methods alone. `lost`: of so many POSTs the comment
    is made and the answer is not. `page`: comments at most in one page."""

    forge: ClassVar[str]
    root: ClassVar[str]
    collection: ClassVar[str]
    single: ClassVar[str]
    statuses: ClassVar[str] = "/repos/shop/fleet/statuses/"
    bad: ClassVar[str] = "failure"
    edit: ClassVar[str] = "PATCH"
    login: ClassVar[str] = "login"
    author: ClassVar[str] = "user"
    nobody: ClassVar[str]

    comments: list[dict[str, Any]] = field(default_factory=list)
    stated: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Commits, and the statuses that they got."""
    faults: list[tuple[str, Said]] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    lost: int = 0
    page: int = 100
    user: User = BOT
    url: str = ""

    def add(self, user: User, body: str, **more: Any) -> dict[str, Any]:
        made = {
            "id": 1000 + len(self.comments),
            self.author: {"id": user.id, self.login: user.name},
            "body": body,
            **self.told(1000 + len(self.comments)),
            **more,
        }
        self.comments.append(made)
        return made

    def told(self, number: int) -> dict[str, Any]:
        return {"html_url": f"{self.url}/shop/fleet/pull/12#issuecomment-{number}"}

    def bodies(self) -> list[str]:
        return [each["body"] for each in self.comments]

    def writes(self) -> list[str]:
        return [each.method for each in self.asked if each.method != "GET"]

    def answer(self, asked: Asked, sent: Any) -> Said:
        for fault in self.faults:
            if asked.method in fault[0].split("|"):
                self.faults.remove(fault)
                return fault[1]
        if asked.headers.get("authorization") != f"Bearer {TOKEN}":
            return Said(401, {"message": self.nobody})
        path, query = asked.path.partition("?")[0], parse_qs(urlsplit(asked.path).query)
        match asked.method, path.removeprefix(self.root):
            case "GET", "/user":
                return self.me()
            case "GET", self.collection:
                return self.listed({key: values[0] for key, values in query.items()})
            case "POST", self.collection:
                made = self.add(self.user, sent["body"])
                if self.lost:
                    self.lost -= 1
                    return Said(502, b"<html>Bad Gateway</html>")
                return Said(201, made)
            case "POST", one if one.startswith(self.statuses):
                return self.status(one.removeprefix(self.statuses), sent)
            case self.edit, one if one.startswith(self.single):
                return self.edited(one.removeprefix(self.single), sent["body"])
        return Said(404, {"message": "Not Found"})

    def me(self) -> Said:
        return Said(200, {"id": self.user.id, self.login: self.user.name})

    def status(self, commit: str, sent: dict[str, Any]) -> Said:
        """What a forge would refuse, this one does."""
        known = {"state", "context", "description", "target_url"}
        fits = len(sent["context"]) <= 255 and len(sent["description"]) <= 140
        if sent.keys() - known or sent["state"] not in ("success", self.bad) or not fits or len(commit) != 40:
            return Said(422, {"message": "Validation Failed"})
        self.stated.append((commit, sent))
        return Said(201, {"id": len(self.stated), **sent})

    def newest(self, commit: str) -> dict[str, str]:
        """By context the state of a commit."""
        return {sent["context"]: sent["state"] for at, sent in self.stated if at == commit}

    def edited(self, number: str, body: str) -> Said:
        found = next((each for each in self.comments if str(each["id"]) == number), None)
        if found is None:
            return Said(404, {"message": "Not Found"})
        found["body"] = body
        return Said(200, found)

    def listed(self, query: dict[str, str]) -> Said:
        return self._page(self.comments, query)

    def _page(self, found: list[dict[str, Any]], query: dict[str, str]) -> Said:
        size = min(int(query.get("per_page", 30)), self.page)
        page = int(query.get("page", 1))
        last = max(1, -(-len(found) // size))
        link = f'<http://elsewhere.invalid/?page={page - 1}>; rel="prev"' if page > 1 else ""
        if page < last:
            # Nobody is to go there: it is asked for by its number.
            following = f'<http://elsewhere.invalid/?page={page + 1}>; rel="next"'
            link = ", ".join(filter(None, [link, following, f'<http://elsewhere.invalid/?page={last}>; rel="last"']))
        return Said(200, found[(page - 1) * size : page * size], {"Link": link} if link else {})


class FakeGitHub(FakeForge):
    """A workflow's token, and any app's, gets 403 for its user; GraphQL tells it."""

    forge = "github"
    root = "/api/v3"
    collection = "/repos/shop/fleet/issues/12/comments"
    single = "/repos/shop/fleet/issues/comments/"
    nobody = "Bad credentials"
    app = False
    graphql: Said | None = None

    def me(self) -> Said:
        if self.app:
            return Said(403, {"message": "Resource not accessible by integration"})
        return super().me()

    def answer(self, asked: Asked, sent: Any) -> Said:
        if (asked.method, asked.path) != ("POST", "/api/graphql"):
            return super().answer(asked, sent)
        assert "viewer" in sent["query"]
        viewer = {"login": self.user.name, "databaseId": self.user.id}
        return self.graphql or Said(200, {"data": {"viewer": viewer}})


class FakeGitLab(FakeForge):
    """Notes: the newest first unless asked otherwise, those of the system among them, without a URL. What begins with a
    slash is a command, and no note."""

    forge = "gitlab"
    root = "/api/v4"
    collection = "/projects/shop%2Ffleet/merge_requests/12/notes"
    single = "/projects/shop%2Ffleet/merge_requests/12/notes/"
    edit = "PUT"
    statuses = "/projects/shop%2Ffleet/statuses/"
    bad = "failed"
    login = "username"
    author = "author"
    nobody = "401 Unauthorized"

    def told(self, number: int) -> dict[str, Any]:
        return {"system": False, "noteable_iid": 12}

    def listed(self, query: dict[str, str]) -> Said:
        found = self.comments if query.get("sort") == "asc" else self.comments[::-1]
        return self._page(found, query)


class FakeGitea(FakeForge):
    """All comments at once, whatever page is asked for."""

    forge = "gitea"
    root = "/api/v1"
    collection = "/repos/shop/fleet/issues/12/comments"
    single = "/repos/shop/fleet/issues/comments/"
    nobody = "invalid username, password or token"

    def listed(self, query: dict[str, str]) -> Said:
        return Said(200, self.comments, {"X-Total-Count": str(len(self.comments))})


FAKES: tuple[type[FakeForge], ...] = (FakeGitHub, FakeGitLab, FakeGitea)


class _Handler(BaseHTTPRequestHandler):
    fake: FakeForge

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        sent = json.loads(self.rfile.read(length)) if length else None
        headers = {key.lower(): value for key, value in self.headers.items()}
        asked = Asked(self.command, self.path, headers)
        self.fake.asked.append(asked)
        said = self.fake.answer(asked, sent)
        body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
        self.send_response(said.status)
        for key, value in {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            **said.headers,
        }.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_PATCH = _serve

    def handle(self) -> None:
        with suppress(ssl.SSLError, ConnectionError):  # who does not trust the certificate
            super().handle()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(fake: FakeForge, keys: Keys | None = None) -> Iterator[FakeForge]:
    """With `keys` over TLS."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": fake}))
    server.daemon_threads = True
    if keys is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(keys.server.certificate, keys.server.key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    fake.url = f"{'https' if keys else 'http'}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
