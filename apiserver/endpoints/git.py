"""The hosted repository at /git/fleet.git, for clone, fetch and push over git's smart HTTP protocol.

Mounted by app.py. Whoever asks is authenticated as for the API (git may send a token as a Basic password) and needs
`get` (fetch) or `update` (push) on the URL /git/fleet.git in the workspace root. What a push may not do is in
githooks.py; gitservice.py does the protocol.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from apiserver import gitvouch
from apiserver.auth.authn import Authenticator
from apiserver.auth.denial import denial
from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import SERVICE_ACCOUNT_PREFIX, Attributes, User
from apiserver.endpoints.exchange import TEXT, ASGIScope, Exchange, Headers, Receive, Send
from apiserver.endpoints.gitplaces import Places
from apiserver.endpoints.gitpushes import WrittenPush, WrittenPushes
from apiserver.endpoints.gitservice import PUSH, SERVICES, GitService, advertise, call
from apiserver.endpoints.pushhooks import ANYONES, LONGEST_PUSHER, PROPOSES, PUSHER
from apiserver.logs.requestids import REQUEST_ID
from apiserver.metrics.definition import OTHER
from apiserver.metrics.requests import GIT_REQUESTS
from apiserver.model.errors import StatusError
from apiserver.model.hostedrepository import URL, VERB
from apiserver.model.paths import ROOT
from apiserver.model.proposals import spelled
from apiserver.pushlog import Pusher

_CHALLENGE: Headers = [(b"www-authenticate", b'Basic realm="treeplane: the password is a token"')]
_PROTOCOL = re.compile(r"[a-z0-9=:.-]{1,64}")
_ASKS_TO_PUSH = f"service=git-{PUSH}".encode()
_LARGEST = 128 * 1024 * 1024
"""Bytes of the largest object that a push may hold, and of anything else that git keeps in memory at once."""


class Hosted(NamedTuple):
    """The repository. `pushed` is called after each push, in the event loop; `written`: where it is noted who pushes;
    `concurrency` bounds git's processes, half of which may be one user's; `most`: bytes of a push."""

    git_dir: Path
    pushed: Callable[[], None]
    written: WrittenPushes
    concurrency: int = 8
    most: int = 100 * 1024 * 1024


class GitEndpoint:
    """An ASGI application for everything under /git/."""

    def __init__(
        self,
        hosted: Hosted | None,
        authenticator: Authenticator,
        authorizer: Authorizer,
        may_push: Callable[[], None] = lambda: None,
    ) -> None:
        """`hosted` None: this server hosts no repository, and says so. `may_push` raises StatusError while no push is
        taken, whoever asks."""
        self._hosted = hosted
        self._may_push = may_push
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._written = hosted.written if hosted else None
        self._places = Places(hosted.concurrency if hosted else 1)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        exchange, user, service = Exchange(scope, receive, send), User(""), OTHER
        try:
            user = self._authenticator.authenticate(dict(exchange.scope), basic=True)
            service = _asked(exchange)
            await self._serve(exchange, user, service)
        except StatusError as error:
            await self._note(exchange, user, error)
            # Plain text: git shows it to its user line by line.
            extra = _CHALLENGE if error.code == 401 else []
            await exchange.answer(error.code, f"{error.message}\n".encode(), TEXT, extra)
        finally:
            GIT_REQUESTS.add(service, str(exchange.status))

    def _proposes(self, user: User) -> str:
        """For the hooks: on which branches of proposals the user may push. A ServiceAccount has none: its name is that
        of others in other workspaces."""
        if self._authorizer.authorize(ROOT, user, Attributes(VERB, path=URL)).allowed:
            return ANYONES
        return "" if user.name.startswith(SERVICE_ACCOUNT_PREFIX) else spelled(user.name)

    def _push(self, exchange: Exchange, service: str, user: User) -> WrittenPush | None:
        if service != PUSH or self._written is None:
            return None
        return WrittenPush(self._written, _who(exchange, user))

    async def _note(self, exchange: Exchange, user: User, error: StatusError) -> None:
        """Somebody who wanted to push was not let in. git first asks without credentials, which is no push."""
        asks = exchange.path.endswith(f"/git-{PUSH}") or exchange.scope["query_string"] == _ASKS_TO_PUSH
        if asks and self._written is not None and (user.name or exchange.header(b"authorization")):
            await self._written.refused(_who(exchange, user), error.message)

    async def _serve(self, exchange: Exchange, user: User, service: str) -> None:
        asked = Attributes("update" if service == PUSH else "get", path=URL)
        decision = self._authorizer.authorize(ROOT, user, asked)
        if not decision.allowed:
            raise denial(user, asked, decision.reason)
        if service == PUSH:
            self._may_push()
        if self._hosted is None:
            raise StatusError(404, "NotFound", "this server hosts no repository: push to the one that it follows")
        git_dir = self._hosted.git_dir.resolve()
        environment = _environment(exchange, git_dir, user, self._hosted.most)
        if service == PUSH:
            environment |= {PUSHER: _pusher(user), PROPOSES: self._proposes(user)}
        serving = GitService(service, git_dir, environment, self._hosted.most)
        async with self._places.one(user.name):
            if exchange.method == "GET":
                await advertise(exchange, serving)
                return
            try:
                await call(exchange, serving, self._push(exchange, service, user))
            finally:
                if service == PUSH:
                    self._hosted.pushed()


def _asked(exchange: Exchange) -> str:
    """The service. Raises StatusError for all but the smart protocol."""
    path = exchange.path.removeprefix(URL)
    if path == exchange.path or not path.startswith("/"):
        raise StatusError(404, "NotFound", f"there is no repository here: it is {URL}")
    program = exchange.parameter("service") if path == "/info/refs" else path[1:]
    service = program.removeprefix("git-")
    method = "GET" if path == "/info/refs" else "POST"
    if service == program or service not in SERVICES:
        raise StatusError(404, "NotFound", f"{path}: only git's smart HTTP protocol is spoken here")
    if exchange.method != method:
        raise StatusError(405, "MethodNotAllowed", f"{path}: only {method}")
    return service


def _who(exchange: Exchange, user: User) -> Pusher:
    """Where a proxy says for whom it comes, that is the client."""
    host = (exchange.scope.get("client") or ("",))[0]
    return Pusher(user.name, user.groups, host, exchange.scope.get(REQUEST_ID, ""))


def _pusher(user: User) -> str:
    """For the hooks: one line. In ASCII, since what a name holds shall not depend on how anybody reads it. Raises
    StatusError for a user of whom there is too much to say: that nothing is said means a push by a path."""
    found = json.dumps(user.as_json(), separators=(",", ":"))
    if len(found) > LONGEST_PUSHER:
        text = f"who pushes is recorded, and your groups and the like are more than {LONGEST_PUSHER >> 10} KiB"
        raise StatusError(403, "Forbidden", f"{text}: push as a user with fewer")
    return found


def _environment(exchange: Exchange, git_dir: Path, user: User, most: int) -> dict[str, str]:
    """Built from nothing, so that neither the server's environment nor a header steers git."""
    # The settings of the machine and of whoever runs the server do not count; these do.
    settings = {
        "safe.directory": str(git_dir),
        "receive.fsckObjects": "true",
        "receive.maxInputSize": str(most),
        # All of an object is in memory once, so that the bound below holds for each, however small it is packed.
        "core.bigFileThreshold": "1g",
        "core.packedGitWindowSize": "32m",
        "core.packedGitLimit": "256m",
        # Fetched it may be: histories of the status branch that were ended stand there.
        "receive.hideRefs": "refs/treeplane",
        # Kept as a pack, however small: git then says what is missing in it, or how large it may be.
        "receive.unpackLimit": "1",
        **gitvouch.SETTINGS,
    }
    found = {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_ALLOC_LIMIT": str(max(most, _LARGEST)),
        # As git's own HTTP server names who pushed, in reflogs.
        "GIT_COMMITTER_NAME": user.name,
        "GIT_COMMITTER_EMAIL": f"{user.name}@http.{(exchange.scope.get('client') or ('',))[0]}",
    }
    for number, (key, value) in enumerate(settings.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    protocol = exchange.header(b"git-protocol")
    if _PROTOCOL.fullmatch(protocol):
        found["GIT_PROTOCOL"] = protocol
    return found
