"""Each answer says what its request is called, and what is logged about the request says so, too."""

from __future__ import annotations

import http.client
import logging
import math
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from apiserver import app
from apiserver.endpoints.errors import answer
from apiserver.endpoints.exchange import Exchange
from apiserver.logs.requestids import REQUEST
from apiserver.model.errors import StatusError
from apiserver.storage.protocol import NoSpace

Ask = Callable[..., http.client.HTTPResponse]


async def asked(scope: Any, receive: Any, send: Any) -> None:
    """In place of the Kubernetes API: what the path names happens."""
    exchange = Exchange(scope, receive, send)
    kinds: dict[str, Exception] = {
        "/fault": ValueError("s3cret"), "/full": NoSpace("s3cret"),
        "/later": StatusError(503, "ServiceUnavailable", "s3cret"), "/refused": StatusError(403, "Forbidden", "s3cret"),
    }  # fmt: skip
    if (error := kinds.get(scope["path"])) is not None:
        await answer(exchange, error)
        return
    await exchange.answer(200, b"{}")


@pytest.fixture
def ask(running: Any) -> Ask:
    def get(path: str, **headers: str) -> http.client.HTTPResponse:
        context = ssl.create_default_context(cafile=running.keys.ca)
        connection = http.client.HTTPSConnection("127.0.0.1", running.settings.port, context=context, timeout=30)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()})
            found = connection.getresponse()
            found.read()
            return found
        finally:
            connection.close()

    return get


pytestmark = pytest.mark.parametrize("running", [{"app": asked}], indirect=True)


@pytest.mark.parametrize("path", ["/", "/fault", "/healthz", "/metrics", "/git/fleet.git/info/refs"])
def test_every_answer_is_named(ask: Ask, path: str) -> None:
    found = [ask(path).getheader("Audit-Id"), ask(path).getheader("Audit-Id")]
    assert all(found)
    assert found[0] != found[1]
    assert ask(path, Audit_Id="mine-1").getheader("Audit-Id") == "mine-1"
    assert ask(path, X_Request_Id="mine-2").headers.get_all("Audit-Id") == ["mine-2"]
    assert ask(path, Audit_Id="not mine").getheader("Audit-Id") != "not mine"


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int, str]]:
    """The request, the level and the text of each record, as they come."""
    found: list[tuple[str, int, str]] = []

    class Seen(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            found.append((REQUEST.get(), record.levelno, record.getMessage()))
            return True

    caplog.set_level(logging.INFO, "apiserver")
    caplog.handler.addFilter(Seen())
    return found


def test_what_fails_is_logged_with_its_request(
    ask: Ask, logged: list[tuple[str, int, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "_SLOW_SECONDS", math.inf)  # or what took long would be logged besides
    for path in ("/", "/refused", "/later", "/full", "/fault"):
        ask(path, Audit_Id=f"of-{path[1:]}")
    assert [(request, level) for request, level, _ in logged] == [
        ("of-later", logging.INFO), ("of-full", logging.WARNING), ("of-fault", logging.ERROR),
    ]  # fmt: skip
    assert [text for _, _, text in logged][:2] == [
        "GET /later: 503 ServiceUnavailable",
        "GET /full: 507 InsufficientStorage",
    ]
    assert "ValueError" in logged[2][2]


def test_what_takes_long_is_logged(
    ask: Ask, logged: list[tuple[str, int, str]], monkeypatch: pytest.MonkeyPatch, eventually: Any
) -> None:
    monkeypatch.setattr(app, "_SLOW_SECONDS", 0.0)
    ask("/slow?watch=true", Audit_Id="watch-1")
    ask(f"/slow{'x' * 1000}?token=s3cret", Audit_Id="slow-1")
    eventually(lambda: logged)  # it is answered before
    ((request, level, text),) = logged
    assert (request, level, text.partition(" took ")[0]) == ("slow-1", logging.INFO, f"GET /slow{'x' * 295}")
