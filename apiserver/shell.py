"""What a server has besides the Kubernetes API: health of the process, metrics, the hosted repository, and
kubectl's plugin for whoever has none.

A Starlette application, used by app.py; the Kubernetes API hangs below it as a bare ASGI application.
"""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from apiserver.auth.authn import Authenticator
from apiserver.auth.denial import denial
from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import AUTHENTICATED, Attributes
from apiserver.endpoints.errors import as_status
from apiserver.endpoints.health import trouble
from apiserver.endpoints.ringing import PUSH_PATH, PushWebhook
from apiserver.model.errors import StatusError, not_found, unauthorized
from apiserver.model.paths import ROOT
from apiserver.registry.tree import fleet, troubles
from apiserver.scrape.answer import scraped
from apiserver.settings import ServerSettings
from apiserver.storage.protocol import Store

PLUGIN_PATH = "/plugins/kubectl-ws"
_TOLD = Attributes("get", path="/readyz/fleet")
"""Who may look at that check alone is told what is wrong."""


class Shell:
    """Answers for the server itself."""

    def __init__(
        self,
        store: Store,
        authenticator: Authenticator,
        authorizer: Authorizer,
        settings: ServerSettings,
        webhook: PushWebhook | None = None,
    ) -> None:
        """`webhook`: None for none."""
        self._store = store
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._settings = settings
        self._webhook = webhook

    def routes(self, app: Starlette) -> None:
        for path in ("/healthz", "/livez"):
            app.add_route(path, self.alive)
        app.add_route("/readyz", self.ready)
        app.add_route("/metrics", self.metrics)
        app.add_route(PLUGIN_PATH, self.plugin)
        if self._webhook is not None:
            app.add_route(PUSH_PATH, self._webhook.ring, methods=["POST"])
        app.add_exception_handler(StatusError, refuse)
        app.add_exception_handler(Exception, failed)

    async def alive(self, request: Request) -> PlainTextResponse:
        """Asked by probes, which have no credentials; it tells nothing but that the process answers."""
        text = f"[+]ping ok\n{request.url.path[1:]} check passed\n" if "verbose" in request.query_params else "ok"
        return PlainTextResponse(text)

    async def ready(self, request: Request) -> PlainTextResponse:
        """Whether the fleet's first load is complete: told to everybody, since probes have no credentials. How far it
        is, and what is wrong with the fleet, by its kind, is for whom RBAC of root gives `get` on /readyz/fleet. Reads
        go on whatever is wrong."""
        at = fleet(self._store)
        code, verdict = (200, "passed") if at.loaded else (500, "failed")
        if "verbose" not in request.query_params:
            return PlainTextResponse(
                "ok" if at.loaded else f"readyz check {verdict}: the fleet is being loaded\n", code
            )
        if not self._is_told(request):
            told = f"[+]ping ok\nreadyz check {verdict}: all else is told to whom root gives `get` on {_TOLD.path}\n"
            return PlainTextResponse(told, code)
        state = "ok" if at.loaded else f"failed: the fleet is being loaded ({at.done} of {at.total} workspaces)"
        wrong = trouble(troubles(self._store), texts=False)
        followed = f"[-]fleet {wrong}" if wrong else "[+]fleet ok"
        text = f"[+]ping ok\n[{'+' if at.loaded else '-'}]load {state}\n{followed}\nreadyz check {verdict}\n"
        return PlainTextResponse(text, code)

    def _is_told(self, request: Request) -> bool:
        try:
            user = self._authenticator.authenticate(dict(request.scope))
        except StatusError:
            return False
        return self._authorizer.authorize(ROOT, user, _TOLD, deep=True).allowed

    async def metrics(self, request: Request) -> Response:
        """Prometheus' text format, for whom RBAC of root gives `get` on /metrics; who scrapes needs no access to it."""
        user = self._authenticator.authenticate(dict(request.scope))
        asked = Attributes("get", path="/metrics")
        decision = self._authorizer.authorize(ROOT, user, asked, deep=True)
        if not decision.allowed:
            raise denial(user, asked, decision.reason)
        kind, text = await asyncio.to_thread(scraped, self._store, self._settings)
        return Response(text, headers={"content-type": kind.decode()})

    def plugin(self, request: Request) -> Response:
        """kubectl's plugin as one file, for whoever is known here, whatever they may do: it is the same for all, and
        holds nothing of the fleet."""
        if AUTHENTICATED not in self._authenticator.authenticate(dict(request.scope)).groups:
            raise unauthorized()
        try:
            content = self._settings.plugin_file.read_bytes()
        except FileNotFoundError:
            raise not_found("plugins", "", self._settings.plugin_file.name) from None
        return Response(content, media_type="application/octet-stream")


async def failed(_: Request, error: Exception) -> Response:
    """Whatever goes wrong, told as everywhere."""
    found = as_status(error)
    return JSONResponse(found.as_status(), found.code)


async def refuse(_: Request, error: Any) -> Response:
    """A StatusError as JSON."""
    return JSONResponse(error.as_status(), error.code)
