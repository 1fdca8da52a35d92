"""The whole server as one ASGI application.

Made by serve.py for each worker. The Kubernetes API is mounted on a FastAPI application as a bare ASGI application;
since even finding that mount costs more than answering a GET, a dispatcher of a few lines stands in front and looks at
the path first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI

from apiserver.auth.authn import Authenticator
from apiserver.auth.rbac import Authorizer
from apiserver.connections import Connections
from apiserver.endpoints.exchange import ASGIScope, Receive, Send
from apiserver.endpoints.git import GitEndpoint, Hosted
from apiserver.push import notify_push
from apiserver.registry.holding import check_holder
from apiserver.settings import ServerSettings
from apiserver.shell import PLUGIN_PATH, Shell
from apiserver.storage.protocol import Store

ASGI = Callable[[ASGIScope, Receive, Send], Any]

_SHELL_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/metrics", PLUGIN_PATH})
_GIT = "/git/"


class App:
    """Dispatches by path."""

    def __init__(
        self,
        settings: ServerSettings,
        store: Store,
        authenticator: Authenticator,
        authorizer: Authorizer,
        kubernetes: ASGI,
    ) -> None:
        """`kubernetes`: the Kubernetes API (endpoints/kube.py)."""
        self.connections = Connections(settings)
        self._kubernetes = kubernetes
        self._git = GitEndpoint(_hosted(settings), authenticator, authorizer, lambda: check_holder(store))
        self.shell = FastAPI(title="Treeplane", docs_url=None, redoc_url=None, openapi_url=None)
        Shell(store, authenticator, authorizer, settings).routes(self.shell)
        self.shell.mount("/git", self._git)
        self.shell.mount("/", kubernetes)

    async def __call__(self, scope: ASGIScope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if path in _SHELL_PATHS:
            await self.shell(scope, receive, send)
        elif path.startswith(_GIT):
            await self._git(scope, receive, send)
        else:
            await self._kubernetes(scope, receive, send)


def _hosted(settings: ServerSettings) -> Hosted | None:
    if settings.git_dir is None:
        return None
    data_dir = settings.data_dir
    most = settings.max_push_mib * 1024 * 1024
    return Hosted(settings.git_dir, lambda: notify_push(data_dir), settings.git_concurrency, most)
