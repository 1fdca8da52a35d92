"""Connections to sync targets that lie, hang or let nobody in: each request ends, and nothing grows without end."""

from __future__ import annotations

import base64
import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from support.liar import Asked, Handler, Liar, answer, refuse, stream

from apiserver.registry.outbound import EVERYWHERE, Outbound
from reconciler.controllers.failures import Expected
from reconciler.controllers.targets import Denied, Kubeconfig
from reconciler.syncing.client import ClientSettings, TargetClient, connect
from reconciler.syncing.errors import Excessive, TargetRefused, TargetUnreachable, Unusable
from reconciler.syncing.https import HTTPLimits

PATIENT = ClientSettings(
    answer=60.0, ping=60.0, watch=60, late=0.0, page=16, objects=1000,
    limits=HTTPLimits(connect=60.0, quiet=60.0, answer=20_000, line=5_000),
)  # fmt: skip
"""For targets that answer: how long that takes is up to the machine."""
QUICK = replace(PATIENT, answer=0.5, ping=0.5, watch=1, limits=replace(PATIENT.limits, connect=2.0, quiet=0.4))
"""For targets that never end."""
MAPS = "/api/v1/configmaps"
SOON = 15.0
"""Seconds within which whatever a target does has to be over. What is silent is so for longer."""
SILENCE = 60.0


@pytest.fixture
def liar(tmp_path: Path) -> Iterator[Callable[..., Liar]]:
    made: list[Liar] = []

    def start(handler: Handler, **more: Any) -> Liar:
        made.append(Liar(tmp_path / "keys", handler, **more))
        return made[-1]

    yield start
    for each in made:
        each.close()


@pytest.fixture
def client(liar: Callable[..., Liar]) -> Iterator[Callable[..., TargetClient]]:
    made: list[TargetClient] = []

    def start(handler: Handler, settings: ClientSettings = PATIENT) -> TargetClient:
        made.append(connect(liar(handler).trusted(), settings))
        return made[-1]

    yield start
    for each in made:
        each.close()


def item(name: str = "a", **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": "u", "resourceVersion": "1"}, **more}


def page(*items: Any, token: str = "", revision: str = "7") -> dict[str, Any]:
    return {"metadata": {"continue": token, "resourceVersion": revision}, "items": list(items)}


# -- which way out ----------------------------------------------------------------------------------------------------


def test_each_connection_goes_to_an_address_that_was_checked(liar: Callable[..., Liar]) -> None:
    inside = liar(lambda asked: answer(asked, item()))
    remedy = "start it with --trust-targets root:infra"
    refused = connect(Kubeconfig(inside.kubeconfig(), remedy=remedy), PATIENT)
    with pytest.raises(Denied, match=r"`server` 127\.0\.0\.1 is not allowed.*--trust-targets root:infra") as raised:
        refused.get(MAPS)
    assert raised.value.reason == "AddressRefused"
    assert inside.asked == []


def test_a_name_that_stands_for_another_address_the_second_time(
    liar: Callable[..., Liar], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pool keeps connections; each new one looks the name up once, checks it, and connects to what it checked."""
    inside = liar(lambda asked: answer(asked, item(), "200 OK\r\nConnection: close"))
    found = iter(["127.0.0.1", "169.254.169.254"])
    asked: list[str] = []
    real = socket.getaddrinfo

    def resolve(host: str, port: int, *more: Any, **named: Any) -> Any:
        asked.append(host)
        return real(host if host[0].isdigit() else next(found), port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr("reconciler.syncing.client.Outbound", lambda _: Outbound(["127.0.0.0/8"]))
    server = {"server": f"https://rebind.example:{inside.port}", "tls-server-name": "localhost"}
    content = inside.kubeconfig(cluster=server)
    made = connect(Kubeconfig(content), PATIENT)
    assert made.get(MAPS) is not None
    with pytest.raises(Denied, match=r"rebind\.example is not allowed"):
        made.get(MAPS)
    assert asked == ["rebind.example", "127.0.0.1", "rebind.example"], "what was checked is what is connected to"


def test_nothing_of_this_machine_is_asked(
    liar: Callable[..., Liar], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No proxy, no kubeconfig, no .netrc; and no credentials but the Secret's."""
    target = liar(lambda asked: answer(asked, item(said=asked.headers)))
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password mine\n")
    (tmp_path / ".netrc").chmod(0o600)
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("SSL_CERT_FILE", str(target.keys.ca))
    found = connect(target.trusted(), PATIENT).get(MAPS)
    assert found is not None
    assert found["said"]["authorization"] == "Bearer s3cr3t"


def test_no_library_reads_kubeconfigs_for_us() -> None:
    """They run programs and read files, as they should on a user's own machine."""
    product = [p for room in ("apiserver", "reconciler") for p in (Path(__file__).parents[4] / room).rglob("*.py")]
    assert len(product) > 300
    assert not [str(p) for p in product if re.search(r"^\s*(from|import) (kubernetes|requests)\b", p.read_text(), re.M)]


def test_a_token_is_asked_for_and_gone_on_with(liar: Callable[..., Liar]) -> None:
    given = {"status": {"token": "n3w", "expirationTimestamp": "2030-01-01T00:00:00Z"}}
    asked: list[Asked] = []

    def says(one: Asked) -> None:
        asked.append(one)
        answer(one, given if one.method == "POST" else item(said=one.headers))

    target = liar(says)
    made = connect(target.trusted(), PATIENT)
    assert made.token("treeplane-system", "treeplane", 3600) == "n3w"
    assert asked[0].path == "/api/v1/namespaces/treeplane-system/serviceaccounts/treeplane/token"
    assert json.loads(asked[0].body)["spec"] == {"expirationSeconds": 3600}
    before = target.trusted()
    other = replace(before, data=before.data.replace(b"s3cr3t", b"n3w"))
    assert made.goes_on(other)
    found = made.get(MAPS)
    assert found is not None
    assert found["said"]["authorization"] == "Bearer n3w"
    for strange in (
        replace(other, anywhere=False),
        replace(other, data=other.data.replace(b"127.0.0.1", b"127.0.0.2")),
        replace(other, data=b"{}"),
    ):
        assert not made.goes_on(strange)
    made.barred = lambda: "no Lease"
    with pytest.raises(Expected, match="no Lease"):
        made.token("treeplane-system", "treeplane", 3600)


@pytest.mark.parametrize("body", [{}, {"status": "x"}, {"status": {"token": 7}}, {"status": {"token": ""}}])
def test_what_is_no_answer_to_a_request_for_a_token(client: Callable[[Handler], TargetClient], body: Any) -> None:
    with pytest.raises(TargetUnreachable, match="something else"):
        client(lambda asked: answer(asked, body)).token("a", "b", 600)


def test_redirects_are_not_followed(client: Callable[[Handler], TargetClient]) -> None:
    def elsewhere(asked: Asked) -> None:
        asked.send(b"HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n")

    made = client(elsewhere)
    with pytest.raises(TargetRefused, match="it redirects"):
        made.get(MAPS)
    with pytest.raises(TargetRefused, match="it redirects"):
        list(made.watch(MAPS, "", "1"))


# -- who is let in ----------------------------------------------------------------------------------------------------


def rights(asked: Asked, *, code: int = 0, allowed: bool = True) -> None:
    """`/version` is everybody's; the rest is not."""
    if asked.path == "/version":
        answer(asked, {"gitVersion": "v1.36.3"})
    elif code:
        refuse(asked, code, {401: "Unauthorized", 403: "Forbidden", 500: "InternalError"}[code], "no")
    elif asked.path.startswith("/apis/authorization.k8s.io"):
        answer(asked, {"status": {"allowed": allowed}}, "201 Created")
    else:
        answer(asked, page())


@pytest.mark.parametrize(
    ("how", "reason"),
    [({"code": 401}, "Unauthorized"), ({"code": 403}, "Forbidden"), ({"allowed": False}, "Forbidden")],
)
def test_a_heartbeat_notices_lost_rights(client: Callable[[Handler], TargetClient], how: Any, reason: str) -> None:
    made = client(lambda asked: rights(asked, **how))
    with pytest.raises(Denied) as raised:
        made.ping()
    assert raised.value.reason == reason
    client(rights).ping()


def test_a_target_in_trouble_is_not_one_that_refuses(client: Callable[[Handler], TargetClient]) -> None:
    with pytest.raises(TargetRefused) as raised:
        client(lambda asked: rights(asked, code=500)).ping()
    assert not isinstance(raised.value, Denied)


def test_certificates(liar: Callable[..., Liar], tmp_path: Path) -> None:
    target = liar(rights)
    other = Liar(tmp_path / "other", rights)
    other.close()
    foreign = base64.b64encode(other.keys.ca.read_bytes()).decode()
    for cluster in ({"certificate-authority-data": foreign}, {"tls-server-name": "another.example"}):
        with pytest.raises(Denied, match="its certificate is not trusted") as raised:
            connect(Kubeconfig(target.kubeconfig(cluster=cluster), anywhere=True), PATIENT).ping()
        assert raised.value.reason == "CertificateRefused"
    connect(Kubeconfig(target.kubeconfig(cluster={"tls-server-name": "localhost"}), anywhere=True), PATIENT).ping()


def test_client_certificates(liar: Callable[..., Liar], tmp_path: Path) -> None:
    target = liar(rights, mutual=True)
    other = Liar(tmp_path / "other", rights)
    other.close()

    def user(keys: Any) -> dict[str, Any]:
        pair = {"client-certificate-data": keys.admin.certificate, "client-key-data": keys.admin.key}
        return {"token": None} | {k: base64.b64encode(v.read_bytes()).decode() for k, v in pair.items()}

    connect(Kubeconfig(target.kubeconfig(user=user(target.keys)), anywhere=True), PATIENT).ping()
    for wrong in (user(other.keys), {}):
        with pytest.raises(Denied, match="does not accept the kubeconfig's client certificate"):
            connect(Kubeconfig(target.kubeconfig(user=wrong), anywhere=True), PATIENT).ping()


def test_certificates_that_are_none(liar: Callable[..., Liar]) -> None:
    """An encrypted key least of all: OpenSSL would ask the terminal for its password."""
    target = liar(rights)
    key = serialization.load_pem_private_key(target.keys.admin.key.read_bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"pw")
    )
    certificate = base64.b64encode(target.keys.admin.certificate.read_bytes()).decode()
    for data in (encrypted, b"nonsense"):
        user = {"client-certificate-data": certificate, "client-key-data": base64.b64encode(data).decode()}
        with pytest.raises(Unusable, match="without a password"):
            connect(Kubeconfig(target.kubeconfig(user=user)), PATIENT)
    ca = {"certificate-authority-data": base64.b64encode(b"nonsense").decode()}
    with pytest.raises(Unusable, match="`certificate-authority-data`: it holds no certificate"):
        connect(Kubeconfig(target.kubeconfig(cluster=ca)), PATIENT)


# -- answers that never end -------------------------------------------------------------------------------------------


def drip(asked: Asked, head: bytes, drop: bytes) -> None:
    """A little at a time, so that no single read takes long."""
    asked.send(head)
    while not asked.ended.wait(0.05):
        asked.send(drop)


ENDLESS: dict[str, Handler] = {
    "silence": lambda asked: asked.ended.wait(SILENCE) and None,
    "half a head": lambda asked: drip(asked, b"HTTP/1.1 200 OK\r\n", b"X"),
    "heads without end": lambda asked: drip(asked, b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "continue": lambda asked: drip(asked, b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "drops": lambda asked: drip(asked, b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b" "),
    "chunks": lambda asked: drip(asked, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a chunk's size": lambda asked: drip(asked, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
    "trailers": lambda asked: drip(asked, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n"),
    "a flood": lambda asked: stream(asked, repeat(b" " * 4096)),
    "a long line": lambda asked: stream(asked, repeat(b"x" * 1000)),
    "a large size": lambda asked: asked.send(
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n" + b" " * 30_000
    ),
}


@pytest.mark.parametrize("how", ENDLESS.values(), ids=ENDLESS)
def test_no_answer_holds_a_thread_for_ever(client: Callable[..., TargetClient], how: Handler) -> None:
    made = client(how, QUICK)
    begun = time.monotonic()
    with pytest.raises(TargetUnreachable):
        made.get(MAPS)
    with pytest.raises(TargetUnreachable):
        list(made.watch(MAPS, "", "1"))
    assert time.monotonic() - begun < SOON


def test_a_body_that_is_not_read_holds_no_thread(client: Callable[..., TargetClient]) -> None:
    def deaf(asked: Asked) -> None:
        raise OSError

    body = b'{"data":"' + b"x" * 3_000_000 + b'"}'
    begun = time.monotonic()
    with pytest.raises(Expected):
        client(deaf, QUICK).apply(f"{MAPS}/a", body)
    assert time.monotonic() - begun < SOON


def test_a_write_is_over_when_the_lease_says_so(client: Callable[[Handler], TargetClient]) -> None:
    """However long a request may take otherwise."""
    made = client(lambda asked: asked.ended.wait(SILENCE) and None)
    made.left = lambda: 0.2
    begun = time.monotonic()
    with pytest.raises(TargetUnreachable):
        made.apply(f"{MAPS}/a", b"{}")
    assert time.monotonic() - begun < SOON < PATIENT.answer


def test_a_write_is_not_sent_once_its_time_is_up(liar: Callable[..., Liar]) -> None:
    """A process that stood still between the look at the Lease and the request, say, or while it connected."""
    target = liar(lambda asked: answer(asked, item()))
    made = connect(target.trusted(), PATIENT)
    for spent in (0, 1):
        looks = iter([60.0] * spent)
        made.left = lambda looks=looks: next(looks, 0.0)  # type: ignore[misc]
        with pytest.raises(TargetUnreachable):
            made.apply(f"{MAPS}/a", b"{}")
    assert target.asked == []
    made.left = lambda: 60.0
    made.apply(f"{MAPS}/a", b"{}")
    made.left = lambda: 0.0
    made.get(f"{MAPS}/a")
    assert len(target.asked) == 2, "reads need no Lease"
    made.close()


def test_the_lease_is_asked_for_after_everything_else_has_ended(client: Callable[[Handler], TargetClient]) -> None:
    made = client(lambda asked: answer(asked, item()))
    made.barred = lambda: "it is not ours"
    with pytest.raises(Expected, match="it is not ours"):
        made.apply(f"{MAPS}/a", b"{}")
    made.finish()
    assert made.leased("PUT", f"{MAPS}/a", b"{}")["metadata"]["name"] == "a"
    with pytest.raises(TargetUnreachable, match="closed"):
        made.get(f"{MAPS}/a")


def test_compressed_answers_are_not_unpacked(client: Callable[[Handler], TargetClient]) -> None:
    """A few bytes could stand for gigabytes."""

    def packed(asked: Asked) -> None:
        assert asked.headers["accept-encoding"] == "identity"
        asked.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00")

    with pytest.raises(TargetUnreachable, match="not answered with a JSON object"):
        client(packed).get(MAPS)


# -- answers that are none --------------------------------------------------------------------------------------------

NONE = [
    b"nonsense", b"[]", b"null", b"3", b"{}", b'{"metadata":null}', b'{"metadata":[]}', b'{"metadata":{"name":"a"}}',
    b'{"metadata":{"name":["a"],"uid":"u","resourceVersion":"1"}}',
    b'{"metadata":{"name":"' + b"a" * 300 + b'","uid":"u","resourceVersion":"1"}}',
    b'{"metadata":{"name":"a","uid":"u","resourceVersion":1}}',
    b'{"metadata":{"name":"a","uid":"u","resourceVersion":"1","labels":"x"}}',
    b"[" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("content", NONE)
def test_what_is_no_object(client: Callable[[Handler], TargetClient], content: bytes) -> None:
    made = client(lambda asked: answer(asked, content))
    for call in (made.get, lambda where: list(made.list(where)), lambda where: made.apply(where, b"{}")):
        with pytest.raises(TargetUnreachable):
            call(MAPS)
    lists = client(lambda asked: answer(asked, b'{"metadata":{"resourceVersion":"1"},"items":[%b]}' % content))
    with pytest.raises(TargetUnreachable):
        list(lists.list(MAPS))
    events = client(lambda asked: stream(asked, iter([b'{"type":"ADDED","object":%b}\n' % content])))
    with pytest.raises(TargetUnreachable):
        list(events.watch(MAPS, "", "1"))


def test_lists_come_in_parts_which_get_smaller_where_objects_are_large(
    client: Callable[[Handler], TargetClient],
) -> None:
    asked_for: list[str] = []

    def paged(asked: Asked) -> None:
        query = dict(part.split("=") for part in asked.path.partition("?")[2].split("&"))
        asked_for.append(query["limit"])
        first, limit = int(query.get("continue", "0")), int(query["limit"])
        items = [item(f"a{n}", data="x" * 3000) for n in range(first, min(first + limit, 10))]
        token = str(first + limit) if first + limit < 10 else ""
        answer(asked, page(*items, token=token, revision="" if token else "9"))

    pages = list(client(paged).list(MAPS))
    assert [i["metadata"]["name"] for p in pages for i in p.items] == [f"a{n}" for n in range(10)]
    assert pages[-1].revision == "9"
    assert asked_for[:2] == ["16", "2"]


def test_lists_without_end(client: Callable[[Handler], TargetClient]) -> None:
    with pytest.raises(Excessive, match="lists more than 1000 objects"):
        for _ in client(lambda asked: answer(asked, page(*[item()] * 100, token="more"))).list(MAPS):
            pass
    with pytest.raises(TargetUnreachable, match="nothing, and more of it"):
        list(client(lambda asked: answer(asked, page(token="more"))).list(MAPS))


def test_what_a_target_says_it_serves_is_bounded(client: Callable[[Handler], TargetClient]) -> None:
    def resource(name: Any, version: Any = "v1") -> dict[str, Any]:
        verbs = ["list", "watch", "patch", "delete"]
        found = {"resource": name, "responseKind": {"kind": "X"}, "scope": "Namespaced", "verbs": verbs}
        return {"metadata": {"name": "g"}, "versions": [{"version": version, "resources": [found]}]}

    good = client(lambda asked: answer(asked, {"items": [resource("a"), resource("../b"), resource("a", "v1/../x")]}))
    assert {str(kind): versions for kind, versions in good.served().items()} == {"a.g": ("v1", "v1")}
    wide = ClientSettings(answer=60)
    many = {"items": [resource(f"a{n}") for n in range(6000)]}
    made = client(lambda asked: answer(asked, many))
    made.settings, made._https._limits = wide, HTTPLimits()
    with pytest.raises(Excessive, match="more than 5000 resources"):
        made.served()
    for wrong in ({"items": [3]}, {"items": [resource(3)]}, {"items": {"a": 1}}):
        with pytest.raises(TargetUnreachable):
            client(lambda asked, wrong=wrong: answer(asked, wrong)).served()


def test_what_a_target_says_is_cut(client: Callable[[Handler], TargetClient]) -> None:
    made = client(lambda asked: refuse(asked, 422, "Invalid\r\nfaked: log line", "x\n" * 4000))
    with pytest.raises(TargetRefused) as raised:
        made.get(MAPS)
    assert raised.value.reason == "HTTP 422"
    assert len(str(raised.value)) < 1100
    assert "\n" not in str(raised.value)


def test_everywhere_is_everywhere() -> None:
    assert EVERYWHERE == ("0.0.0.0/0", "::/0")
