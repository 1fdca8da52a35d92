"""The hosted repository at /git/fleet.git, for clone, fetch and push over git's smart HTTP protocol.

Mounted by app.py. Whoever asks is authenticated as for the API (git may send a token as a Basic password) and needs
`get` (fetch) or `update` (push) on the URL /git/fleet.git in the workspace root. What a push may not do is in
githooks.py. `git http-backend` does the protocol.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from apiserver.auth.authn import Authenticator
from apiserver.auth.denial import denial
from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import Attributes, User
from apiserver.endpoints.cgi import Backend
from apiserver.endpoints.exchange import TEXT, ASGIScope, Exchange, Headers, Receive, Send
from apiserver.model.errors import StatusError
from apiserver.model.paths import ROOT

URL = "/git/fleet.git"
_CHALLENGE: Headers = [(b"www-authenticate", b'Basic realm="treeplane: the password is a token"')]
_PROTOCOL = re.compile(r"[a-z0-9=:.-]{1,64}")
_PUSH = "git-receive-pack"
_SERVICES = {"git-upload-pack", _PUSH}


class Hosted(NamedTuple):
    """The repository. `pushed` is called after each push, in the event loop; `concurrency` bounds git's processes."""

    git_dir: Path
    pushed: Callable[[], None]
    concurrency: int = 8


class GitEndpoint:
    """An ASGI application for everything under /git/."""

    def __init__(self, hosted: Hosted | None, authenticator: Authenticator, authorizer: Authorizer) -> None:
        """`hosted` None: this server hosts no repository, and says so."""
        self._hosted = hosted
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._places = asyncio.Semaphore(hosted.concurrency if hosted else 1)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        exchange = Exchange(scope, receive, send)
        try:
            await self._serve(exchange)
        except StatusError as error:
            # Plain text: git shows it to its user line by line.
            extra = _CHALLENGE if error.code == 401 else []
            await exchange.answer(error.code, f"{error.message}\n".encode(), TEXT, extra)

    async def _serve(self, exchange: Exchange) -> None:
        user = self._authenticator.authenticate(dict(exchange.scope), basic=True)
        path, service = _asked(exchange)
        asked = Attributes("update" if service == _PUSH else "get", path=URL)
        decision = self._authorizer.authorize(ROOT, user, asked)
        if not decision.allowed:
            raise denial(user, asked, decision.reason)
        if self._hosted is None:
            raise StatusError(404, "NotFound", "this server hosts no repository: push to the one that it follows")
        pushing = exchange.method == "POST" and service == _PUSH
        environment = _environment(exchange, self._hosted.git_dir, path, user)
        async with self._places:
            try:
                await Backend(exchange, environment, finish=pushing).run()
            finally:
                if pushing:
                    self._hosted.pushed()


def _asked(exchange: Exchange) -> tuple[str, str]:
    """The path inside the repository and the service. Raises StatusError for all but the smart protocol."""
    path = exchange.path.removeprefix(URL)
    if path == exchange.path or not path.startswith("/"):
        raise StatusError(404, "NotFound", f"there is no repository here: it is {URL}")
    service = exchange.parameter("service") if path == "/info/refs" else path[1:]
    method = "GET" if path == "/info/refs" else "POST"
    if service not in _SERVICES:
        raise StatusError(404, "NotFound", f"{path}: only git's smart HTTP protocol is spoken here")
    if exchange.method != method:
        raise StatusError(405, "MethodNotAllowed", f"{path}: only {method}")
    return path, service


def _environment(exchange: Exchange, git_dir: Path, path: str, user: User) -> dict[str, str]:
    """Built from nothing, so that neither the server's environment nor a header steers git."""
    # The settings of the machine and of whoever runs the server do not count; these do.
    settings = {"safe.directory": str(git_dir.resolve()), "http.getanyfile": "false", "receive.fsckObjects": "true"}
    found = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_PROJECT_ROOT": str(git_dir.resolve()),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": path,
        "REQUEST_METHOD": exchange.method,
        "QUERY_STRING": exchange.scope["query_string"].decode("latin-1"),
        "CONTENT_TYPE": exchange.header(b"content-type"),
        "REMOTE_USER": user.name,
        "REMOTE_ADDR": (exchange.scope.get("client") or ("",))[0],
    }
    for number, (key, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    if length := exchange.header(b"content-length"):
        found["CONTENT_LENGTH"] = length
    if encoding := exchange.header(b"content-encoding"):
        found["HTTP_CONTENT_ENCODING"] = encoding
    protocol = exchange.header(b"git-protocol")
    if _PROTOCOL.fullmatch(protocol):
        found["GIT_PROTOCOL"] = protocol
    return found
