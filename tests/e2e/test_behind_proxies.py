"""HAProxy and nginx as docs/behind-a-proxy.md has them set up: what its table says passes, and what does not."""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.authorities import Authority, key_pem, pem
from support.plane import Plane, environment
from support.proxies import PAGE, proxy
from websockets.sync.client import connect

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
PLACES = [(name, way) for way in ("L4", "L7") for name in ("haproxy", "nginx")]
CONFIGMAPS = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps"
EVENTS = "/clusters/root:shop:web/api/v1/namespaces/default/events"
TOKEN = "token-of-ann"
NAMES = {
    "X-Remote-User": "kcp-admin", "X-Remote-Group": "system:masters", "X-Forwarded-User": "kcp-admin",
    "X-Forwarded-For": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-Client-Cert": "x", "X-Real-IP": "127.0.0.1",
    "X-SSL-Client-S-DN": "CN=kcp-admin", "X-Remote-Extra-Scopes": "all", "Remote-User": "kcp-admin",
}  # fmt: skip


class Through(NamedTuple):
    """A server and a proxy before it."""

    server: Plane
    way: str
    port: int
    ca: bytes

    def context(self, *, certificate: bool) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.ca.decode())
        if certificate:
            keys = self.server.data / "keys"
            context.load_cert_chain(keys / "shard-admin.crt", keys / "shard-admin.key")
        return context

    def ask(self, path: str, *, certificate: bool, **headers: str) -> tuple[int, Any]:
        context = self.context(certificate=certificate)
        connection = http.client.HTTPSConnection("localhost", self.port, context=context, timeout=30)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        found = answer.status, json.loads(answer.read())
        connection.close()
        return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("behind")
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},ann,1,"system:masters"\n')
    server = Plane(EXAMPLE, folder / "server" / "data")
    [line] = re.findall(r"^treeplane up (.*)$", PAGE.read_text(), re.MULTILINE)
    options = line.replace("https://api.example.org", f"https://localhost:{server.port}").split()
    server.arguments = (*options, "--token-auth-file", str(tokens))
    with server:
        yield server


@pytest.fixture(params=PLACES, ids="-".join)
def through(request: pytest.FixtureRequest, server: Plane, tmp_path: Path) -> Iterator[Through]:
    name, way = request.param
    ca = (server.data / "keys" / "ca.crt").read_bytes()
    (tmp_path / "ca.crt").write_bytes(ca)
    if way == "L7":
        theirs = Authority("the proxy's")
        issued = theirs.issue("localhost", "127.0.0.1")
        (tmp_path / "proxy.crt").write_bytes(pem(*issued.chain))
        (tmp_path / "proxy.key").write_bytes(key_pem(issued.key))
        (tmp_path / "proxy.pem").write_bytes(pem(*issued.chain) + key_pem(issued.key))
        ca = pem(theirs.certificate)
    with proxy(name, way, server.port, tmp_path) as port:
        yield Through(server, way, port, ca)


def test_certificates_pass_where_tls_does_and_tokens_everywhere(through: Through) -> None:
    status, _ = through.ask(CONFIGMAPS, certificate=True)
    assert status == (200 if through.way == "L4" else 401)
    status, _ = through.ask(CONFIGMAPS, certificate=False, Authorization=f"Bearer {TOKEN}")
    assert status == 200


def test_no_header_names_a_user(through: Through) -> None:
    """Of nobody, 401; of somebody, no right that he does not have: ann, whose word counts, is who she is."""
    for headers in (NAMES, {"Impersonate-User": "kcp-admin"}):
        status, _ = through.ask(CONFIGMAPS, certificate=False, **headers)
        assert status == 401
    status, said = _who(through, NAMES)
    assert (status, said["username"]) == (201, "ann")


def _who(through: Through, headers: dict[str, str]) -> tuple[int, Any]:
    context = through.context(certificate=False)
    connection = http.client.HTTPSConnection("localhost", through.port, context=context, timeout=30)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    headers = {**headers, "Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    path = "/clusters/root/apis/authentication.k8s.io/v1/selfsubjectreviews"
    connection.request("POST", path, json.dumps(review), headers)
    answer = connection.getresponse()
    body = json.loads(answer.read())
    connection.close()
    return answer.status, body.get("status", {}).get("userInfo", body)


def test_events_of_a_watch_come_one_by_one(through: Through) -> None:
    context = through.context(certificate=False)
    connection = http.client.HTTPSConnection("localhost", through.port, context=context, timeout=30)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    connection.request("GET", f"{EVENTS}?watch=1", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200
    _say(through, "http")
    while True:
        event = json.loads(answer.readline())
        if event["object"]["metadata"]["name"] == f"{through.way.lower()}-{through.port}-http":
            break
    connection.close()


def test_a_websocket_passes(through: Through) -> None:
    context = through.context(certificate=False)
    url = f"wss://localhost:{through.port}{EVENTS}?watch=1"
    with connect(url, ssl=context, additional_headers={"Authorization": f"Bearer {TOKEN}"}, proxy=None) as socket:
        _say(through, "socket")
        while True:
            event = json.loads(socket.recv(30))
            if event["object"]["metadata"]["name"] == f"{through.way.lower()}-{through.port}-socket":
                break


def _say(through: Through, how: str) -> None:
    """Something for a watch to see, made beside the proxy."""
    name = f"{through.way.lower()}-{through.port}-{how}"
    about = {"kind": "Namespace", "name": "default", "namespace": "default"}
    body = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about}
    answer = through.server.request("POST", EVENTS, body)
    assert answer.status == 201, answer.body


def test_a_push_of_90_mib_passes(through: Through, tmp_path: Path) -> None:
    """To a branch that is not served, by a token."""
    work = tmp_path / "fleet"
    settings = {"http.sslCAInfo": str(tmp_path / "known.pem"), "http.extraHeader": f"Authorization: Bearer {TOKEN}"}
    (tmp_path / "known.pem").write_bytes(through.ca)
    pairs = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]

    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *pairs, *words]
        found = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        return found.stdout

    git("clone", "--quiet", f"https://localhost:{through.port}/git/fleet.git", str(work))
    (work / "large").write_bytes(os.urandom(90 * 1024 * 1024))
    git("-C", str(work), "add", "large")
    git("-C", str(work), "commit", "--quiet", "--message", "large")
    git("-C", str(work), "push", "--quiet", "origin", f"HEAD:refs/heads/large-{through.port}")
    assert f"large-{through.port}" in git("-C", str(work), "ls-remote", "origin")


def test_the_table_is_of_those_that_are_tried() -> None:
    heads = re.findall(r"(HAProxy|nginx), (L[47])", PAGE.read_text().partition("\n| ---")[0])
    assert sorted((name.lower(), way) for name, way in heads) == sorted(PLACES)
