"""Nothing secret in logs, nor in answers to those who did not send it: tokens, keys, what is in Secrets.

`leaks` is what a whole test has logged, at every level, searched for the words that must not be there.
"""

import base64
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from apiserver.endpoints import reads
from apiserver.endpoints.hub import Cohort

VALUE, BEARER = "s3ntinel-of-a-secret", "s3ntinel-of-a-token"
ENCODED = base64.b64encode(VALUE.encode()).decode()
SECRETS = "/targets/root:edge/api/v1/namespaces/default/secrets"


class Log(logging.Handler):
    """Keeps all that is logged as text, with tracebacks and arguments."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += f"{self.format(record)} {record.args!r}\n"


@pytest.fixture
def leaks(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[..., list[str]]]:
    """`leaks(*more)`: which of the sentinels, and of `more`, stand in the log so far."""
    log = Log()
    for name in ("", *logging.root.manager.loggerDict):
        caplog.set_level(logging.DEBUG, logger=name or None)
    logging.root.addHandler(log)

    def found(*more: str) -> list[str]:
        return [word for word in (VALUE, ENCODED, BEARER, "PRIVATE KEY", *more) if word in log.text]

    yield found
    logging.root.removeHandler(log)
    assert found() == []


def secret(**more: Any) -> Any:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": ENCODED}, **more}


def test_writes_of_secrets_good_and_bad(api: Any, run: Any, leaks: Any) -> None:
    bodies = [
        secret(),
        secret(stringData={"k": VALUE}),
        secret(data={"k": VALUE}),
        secret(data={"k": {"nested": VALUE}}),
        secret(data=VALUE),
        secret(type="kubernetes.io/tls"),
        secret(unknown=VALUE),
        f'{{"data": {{"k": "{ENCODED}", "k": "{VALUE}"}}, '.encode(),
        f"data: [{VALUE}".encode(),
    ]
    for query in ("", "?dryRun=All", "?fieldValidation=Strict"):
        for body in bodies:
            run(api.call("POST", SECRETS + query, body))
            run(api.call("PUT", f"{SECRETS}/s{query}", body))
            run(api.call("PATCH", f"{SECRETS}/s{query}", body, kind="application/merge-patch+json"))
            run(api.call("PATCH", f"{SECRETS}/s?fieldManager=m", body, kind="application/apply-patch+yaml"))


def test_bearer_tokens(api: Any, run: Any, leaks: Any) -> None:
    jwt = f"{BEARER}.{BEARER}.{BEARER}"
    for header in (f"Bearer {jwt}", f"Basic {BEARER}", f"Bearer {BEARER} {BEARER}", f"{BEARER}"):
        run(api.get("/api", authorization=header))
    for token in (jwt, BEARER):
        spec = {"spec": {"token": token}}
        run(api.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", spec))


def test_tokens_that_are_issued(api: Any, run: Any, leaks: Any) -> None:
    api.put(api.manifest("v1 ServiceAccount", "robot", "default"))
    path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
    token = run(api.call("POST", path, {"spec": {}})).json["status"]["token"]
    run(api.call("GET", "/api/v1/configmaps", user=token))
    forged = run(api.call("GET", "/api/v1/configmaps", user=f"{token[:-4]}AAAA"))
    assert forged.status == 401
    assert leaks(token, token.split(".")[2]) == []


def test_errors_that_nobody_expected(
    api: Any, run: Any, leaks: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(asking: Any) -> None:
        try:
            float(VALUE)
        except ValueError as error:
            raise KeyError(ENCODED) from error

    monkeypatch.setattr(reads, "list_", broken)
    reply = run(api.get(SECRETS))
    assert (reply.status, reply.json["reason"]) == (500, "InternalError")
    assert VALUE not in reply.message
    # What helps to find it is there: the kinds and the places.
    for word in ("ValueError", "KeyError", "test_secrecy.py", "broken"):
        assert word in caplog.text


def test_a_watch_that_breaks(api: Any, run: Any, leaks: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, event: Any) -> None:
        raise ValueError(event.change.value.decode())

    async def exercise() -> Any:
        watch = api.watch(f"{SECRETS}?watch=true&resourceVersion={api.target.revision()}")
        await api.call("POST", SECRETS, secret())
        first = await watch.next()
        monkeypatch.setattr(Cohort, "offer", broken)
        await api.call("POST", SECRETS, secret(metadata={"name": "t"}))
        assert await watch.next() is None
        await watch.leave()
        return first

    assert run(exercise())["object"]["data"] == {"k": ENCODED}


def test_who_may_not_read_secrets_learns_nothing_of_them(api: Any, run: Any, leaks: Any) -> None:
    api.put(api.manifest("v1 Secret", "s", "default", data={"k": ENCODED}, type="Opaque"))
    api.allow("ann", {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["configmaps"]})
    base = "/api/v1/namespaces/default/secrets"
    for method, path in (
        ("GET", base), ("GET", f"{base}/s"), ("GET", f"{base}?watch=true"), ("PUT", f"{base}/s"),
        ("PATCH", f"{base}/s"), ("DELETE", f"{base}/s"), ("POST", base),
    ):  # fmt: skip
        reply = run(api.call(method, path, secret(), user="ann"))
        assert reply.status == 403, path
        assert ENCODED not in reply.body.decode()
