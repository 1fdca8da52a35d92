"""The whole server as one ASGI application.

Made by serve.py for each worker. The Kubernetes API is mounted on a Starlette application as a bare ASGI application;
since even finding that mount costs more than answering a GET, a dispatcher of a few lines stands in front and looks at
the path first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from starlette.applications import Starlette

from apiserver.auth.authn import Authenticator
from apiserver.auth.rbac import Authorizer
from apiserver.connections import Connections
from apiserver.endpoints.exchange import ASGIScope, Message, Receive, Send
from apiserver.endpoints.git import GitEndpoint, Hosted
from apiserver.endpoints.gitpushes import WrittenPushes
from apiserver.endpoints.ringing import PUSH_PATH, PushWebhook
from apiserver.logs.requestids import HEADER, RequestIds
from apiserver.push import notify_push
from apiserver.registry.holding import check_holder
from apiserver.settings import ServerSettings
from apiserver.shell import PLUGIN_PATH, Shell
from apiserver.storage.protocol import Store

log = logging.getLogger(__name__)

ASGI = Callable[[ASGIScope, Receive, Send], Any]

_SHELL_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/metrics", PLUGIN_PATH})
_GIT = "/git/"
_SLOW_SECONDS = 1.0
_SHOWN = 300
"""Characters of a path."""


class App:
    """Dispatches by path, and names requests."""

    def __init__(
        self,
        settings: ServerSettings,
        store: Store,
        authenticator: Authenticator,
        authorizer: Authorizer,
        kubernetes: ASGI,
    ) -> None:
        """`kubernetes`: the Kubernetes API (endpoints/kube.py)."""
        self._ids = RequestIds()
        self.connections = Connections(settings)
        self._kubernetes = kubernetes
        self._git = GitEndpoint(_hosted(settings), authenticator, authorizer, lambda: check_holder(store))
        self.shell = Starlette()
        secret = settings.webhook_secret_file
        webhook = PushWebhook(secret, settings.data_dir) if secret is not None else None
        self._shell_paths = _SHELL_PATHS | ({PUSH_PATH} if webhook is not None else set())
        Shell(store, authenticator, authorizer, settings, webhook).routes(self.shell)
        self.shell.mount("/git", self._git)
        self.shell.mount("/", kubernetes)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        request, began = self._ids.name(scope), time.perf_counter()
        if path in self._shell_paths:
            await self.shell(scope, receive, _naming(request, send))
        elif path.startswith(_GIT):
            await self._git(scope, receive, send)
        else:
            await self._kubernetes(scope, receive, send)
            if (took := time.perf_counter() - began) > _SLOW_SECONDS and not _is_watch(scope):
                log.info("%s %s took %.1f s", scope.get("method", "WebSocket"), path[:_SHOWN], took)


def _is_watch(scope: ASGIScope) -> bool:
    """One that lasts as long as its client wants."""
    return b"watch=" in scope["query_string"] or "/watch/" in scope["path"]


def _naming(request: str, send: Send) -> Send:
    """What the shell answers is named, too."""

    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (HEADER, request.encode())]
        await send(message)

    return named


def _hosted(settings: ServerSettings) -> Hosted | None:
    if settings.git_dir is None:
        return None
    data_dir = settings.data_dir
    most = settings.max_push_mib * 1024 * 1024
    served = f"refs/heads/{settings.branch}"
    written = WrittenPushes(data_dir, settings.git_dir, served, durable=settings.sync_writes)
    return Hosted(settings.git_dir, lambda: notify_push(data_dir), written, settings.git_concurrency, most)
