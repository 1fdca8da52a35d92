"""What a server has besides the Kubernetes API: health of the process, metrics, the hosted repository, and
kubectl's plugin for whoever has none.

A FastAPI application, used by app.py; the Kubernetes API hangs below it as a bare ASGI application.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from apiserver.auth.authn import Authenticator
from apiserver.auth.denial import denial
from apiserver.auth.rbac import Authorizer
from apiserver.auth.user import AUTHENTICATED, Attributes
from apiserver.connections import Connections
from apiserver.endpoints.errors import as_status
from apiserver.endpoints.health import trouble
from apiserver.endpoints.listcounts import ListCounts
from apiserver.endpoints.ringing import PUSH_PATH, PushWebhook
from apiserver.model.errors import StatusError, not_found, unauthorized
from apiserver.model.paths import ROOT
from apiserver.registry import announced
from apiserver.registry.tree import fleet, troubles
from apiserver.storage.protocol import Store

PLUGIN_PATH = "/plugins/kubectl-ws"


@dataclass(slots=True)
class Counters:
    """Of one process, since its start."""

    requests: int = 0
    active: int = 0
    watches: int = 0
    started: float = field(default_factory=time.time)


class Told(NamedTuple):
    """What /metrics is made of."""

    counters: Counters
    connections: Connections
    lists: ListCounts


class Shell:
    """Answers for the server itself."""

    def __init__(
        self,
        store: Store,
        authenticator: Authenticator,
        authorizer: Authorizer,
        told: Told,
        plugin: Path,
        webhook: PushWebhook | None,
    ) -> None:
        """`plugin`: the file of kubectl's plugin, which need not be there. `webhook`: None for none."""
        self._store = store
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._told = told
        self._plugin = plugin
        self._webhook = webhook

    def routes(self, app: FastAPI) -> None:
        for path in ("/healthz", "/livez"):
            app.add_api_route(path, self.alive, methods=["GET", "HEAD"], response_class=PlainTextResponse)
        app.add_api_route("/readyz", self.ready, methods=["GET", "HEAD"], response_class=PlainTextResponse)
        app.add_api_route("/metrics", self.metrics, response_class=PlainTextResponse)
        app.add_api_route(PLUGIN_PATH, self.plugin, methods=["GET", "HEAD"])
        if self._webhook is not None:
            app.add_api_route(PUSH_PATH, self._webhook.ring, methods=["POST"])
        app.add_exception_handler(StatusError, refuse)
        app.add_exception_handler(Exception, failed)

    async def alive(self, request: Request) -> PlainTextResponse:
        """Asked by probes, which have no credentials; it tells nothing but that the process answers."""
        text = f"[+]ping ok\n{request.url.path[1:]} check passed\n" if "verbose" in request.query_params else "ok"
        return PlainTextResponse(text)

    async def ready(self, request: Request) -> PlainTextResponse:
        """Whether the fleet's first load is complete. What is wrong with the fleet is told by its kind: probes have no
        credentials, and reads go on."""
        at = fleet(self._store)
        state = "ok" if at.loaded else f"failed: the fleet is being loaded ({at.done} of {at.total} workspaces)"
        verdict = f"readyz check {'passed' if at.loaded else 'failed'}\n"
        wrong = trouble(troubles(self._store), texts=False)
        followed = f"[-]fleet {wrong}" if wrong else "[+]fleet ok"
        text = f"[+]ping ok\n[{'+' if at.loaded else '-'}]load {state}\n{followed}\n{verdict}"
        brief = at.loaded and "verbose" not in request.query_params
        return PlainTextResponse("ok" if brief else text, 200 if at.loaded else 500)

    async def metrics(self, request: Request) -> PlainTextResponse:
        """Prometheus' text format, for whom RBAC of root gives `get` on /metrics; who scrapes needs no access to it."""
        user = self._authenticator.authenticate(dict(request.scope))
        asked = Attributes("get", path="/metrics")
        decision = self._authorizer.authorize(ROOT, user, asked, deep=True)
        if not decision.allowed:
            raise denial(user, asked, decision.reason)
        return PlainTextResponse(self._exposition(), media_type="text/plain; version=0.0.4")

    def plugin(self, request: Request) -> Response:
        """kubectl's plugin as one file, for whoever is known here, whatever they may do: it is the same for all, and
        holds nothing of the fleet."""
        if AUTHENTICATED not in self._authenticator.authenticate(dict(request.scope)).groups:
            raise unauthorized()
        try:
            content = self._plugin.read_bytes()
        except FileNotFoundError:
            raise not_found("plugins", "", self._plugin.name) from None
        return Response(content, media_type="application/octet-stream")

    def _exposition(self) -> str:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        counters, connections, lists = self._told
        # Workers share the port, so a scrape meets any of them: the label tells which.
        label = f'{{worker="{os.getpid()}"}}'
        lines = [
            *_metric("treeplane_requests_total", "counter", "Requests answered.", label, counters.requests),
            *_metric("treeplane_requests_active", "gauge", "Requests under way.", label, counters.active),
            *_metric("treeplane_watches", "gauge", "Open watches.", label, counters.watches),
            *_metric("treeplane_connections", "gauge", "Open connections.", label, connections.count),
            *_metric(
                "treeplane_connections_refused_total",
                "counter",
                "Connections beyond the bound of their address.",
                label,
                connections.turned_away,
            ),
            *_metric("process_cpu_seconds_total", "counter", "CPU time.", label, usage.ru_utime + usage.ru_stime),
            *_metric("process_start_time_seconds", "gauge", "Start, since 1970.", label, counters.started),
            *_metric("process_resident_memory_peak_bytes", "gauge", "Peak.", label, usage.ru_maxrss * 1024),
            *_metric("treeplane_store_revision", "gauge", "The store's revision.", "", self._store.revision()),
            *_announcing(announced.failing(self._store)),
            *lists.lines(str(os.getpid())),
        ]
        return "\n".join(lines) + "\n"


def _announcing(failing: Mapping[str, str]) -> list[str]:
    """Nothing where nobody is told of commits."""
    name = "treeplane_announcing_fails"
    lines = [f'{name}{{to="{who}"}} {int(bool(text))}' for who, text in failing.items()]
    help_ = "Whether a forge, or who is notified, cannot be told what became of commits."
    return [f"# HELP {name} {help_}", f"# TYPE {name} gauge", *lines] if lines else []


def _metric(name: str, kind: str, meaning: str, label: str, value: float) -> tuple[str, str, str]:
    return f"# HELP {name} {meaning}", f"# TYPE {name} {kind}", f"{name}{label} {value}"


async def failed(_: Request, error: Exception) -> Response:
    """Whatever goes wrong, told as everywhere."""
    found = as_status(error)
    return JSONResponse(found.as_status(), found.code)


async def refuse(_: Request, error: Any) -> Response:
    """A StatusError as JSON."""
    return JSONResponse(error.as_status(), error.code)
