"""HAProxy and nginx as docs/behind-a-proxy.md has them set up: what its table says passes, and what does not."""

from __future__ import annotations

import base64
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
import yaml
from realclusters.processes import free_ports
from support.plane import COMMAND, Plane, environment, kubectl_program
from support.proxies import PAGE, of_proxy, program, proxy
from websockets.sync.client import connect

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
PLACES = [(name, way) for way in ("L4", "L7") for name in ("haproxy", "nginx")]
CONFIGMAPS = "/clusters/root:shop:web/api/v1/namespaces/default/configmaps"
EVENTS = "/clusters/root:shop:web/api/v1/namespaces/default/events"
TOKEN = "token-of-ann"
MIB = 1024 * 1024
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


def printed_options(having: str, port: int) -> list[str]:
    """Of the page's one command that has this one."""
    lines = re.findall(r"^treeplane up (.*)$", PAGE.read_text(), re.MULTILINE)
    [line] = [each for each in lines if having in each]
    return str(line).replace("https://api.example.org", f"https://localhost:{port}").split()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    folder = tmp_path_factory.mktemp("behind")
    tokens = folder / "tokens.csv"
    tokens.write_text(f'{TOKEN},ann,1,"system:masters"\n')
    server = Plane(EXAMPLE, folder / "server" / "data")
    options = printed_options("--proxy-protocol-network", server.port)
    server.arguments = (*options, "--token-auth-file", str(tokens))
    with server:
        yield server


@pytest.fixture(params=PLACES, ids="-".join)
def through(request: pytest.FixtureRequest, server: Plane, tmp_path: Path) -> Iterator[Through]:
    name, way = request.param
    ca = (server.data / "keys" / "ca.crt").read_bytes()
    if way == "L7":
        ca = of_proxy(tmp_path, ca)
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


@pytest.mark.parametrize("command", ["exec deploy/web -- ls", "attach deploy/web", "port-forward service/web :80"])
def test_what_takes_a_connection_to_a_pod_is_answered(through: Through, tmp_path: Path, command: str) -> None:
    """With the server's own words, at once."""
    user = {"token": TOKEN}
    at = f"https://localhost:{through.port}/clusters/root:shop:web"
    cluster = {"server": at, "certificate-authority-data": base64.b64encode(through.ca).decode()}
    context = {"cluster": "c", "user": "u"}
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "x"}
    config |= {"clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": user}]}
    config |= {"contexts": [{"name": "x", "context": context}]}
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    words = [kubectl_program(), *command.split()]
    told = environment(KUBECONFIG=str(tmp_path / "kubeconfig"))
    found = subprocess.run(words, env=told, capture_output=True, text=True, check=False, timeout=60)
    assert found.returncode != 0
    assert f"kubectl {command.split(maxsplit=1)[0]} is not supported" in found.stderr


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1"])
def test_a_connection_that_is_to_be_another_protocol_is_refused_through_a_proxy_too(
    through: Through, protocol: str
) -> None:
    """As a client that knows of a Pod asks, which is none here."""
    upgrade = {"Connection": "Upgrade", "Upgrade": protocol, "Authorization": f"Bearer {TOKEN}"}
    if protocol == "websocket":
        upgrade |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    path = "/clusters/root:shop:web/api/v1/namespaces/default/pods/web/exec?command=ls"
    status, said = through.ask(path, certificate=False, **upgrade)
    assert (status, said["kind"], said["reason"]) == (404, "Status", "NotFound")


@pytest.mark.parametrize("size", [8 * MIB, pytest.param(100 * MIB - MIB // 4, marks=pytest.mark.slow)])
def test_a_push_passes(through: Through, tmp_path: Path, size: int) -> None:
    """To a branch that is not served, by a token: of more than proxies take if they are not told to, and of as much as
    the server takes (with what git adds to it)."""
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
    (work / "large").write_bytes(os.urandom(size))
    git("-C", str(work), "add", "large")
    git("-C", str(work), "commit", "--quiet", "--message", "large")
    git("-C", str(work), "push", "--quiet", "origin", f"HEAD:refs/heads/large-{size}-{through.port}")
    assert f"large-{size}-{through.port}" in git("-C", str(work), "ls-remote", "origin")


class AskedByNobody(Plane):
    """Its kubeconfig leads to a proxy that is started after it."""

    def _serves(self) -> bool:
        return "in a second terminal:" in self.output()


def test_clients_check_the_proxy_by_its_own_ca(tmp_path: Path) -> None:
    """With the page's command: what is written for clients works through nginx as it is, by a token."""
    program("nginx")
    server, port = AskedByNobody(EXAMPLE, tmp_path / "server" / "data"), free_ports(1)[0]
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f'{TOKEN},ann,1,"system:masters"\n')
    folder = tmp_path / "proxy"
    folder.mkdir()
    theirs = of_proxy(folder, b"")
    options = " ".join(printed_options("--external-ca-file", port)).replace("/etc/treeplane/", f"{folder}/")
    server.arguments = (*options.split(), "--token-auth-file", str(tokens))
    with server:
        (folder / "ca.crt").write_bytes((server.data / "keys" / "ca.crt").read_bytes())
        made = subprocess.run(
            [COMMAND, "kubeconfig", "--user", "bob", "--data-dir", str(server.data)],
            env=environment(), capture_output=True, text=True, check=True,
        )  # fmt: skip
        kept = json.loads((server.data / "served-at.json").read_text())["given"]
        assert [Path(file).read_bytes() for file in kept.values()] == [theirs], "status tells of its end"
        with proxy("nginx", "L7", server.port, folder, port):
            for kubeconfig in (server.kubeconfig.read_text(), made.stdout):
                found = [each["cluster"] for each in yaml.safe_load(kubeconfig)["clusters"]]
                assert {base64.b64decode(each["certificate-authority-data"]) for each in found} == {theirs}
                assert {each["server"].startswith(f"https://localhost:{port}") for each in found} == {True}
            words = [kubectl_program(), "--token", TOKEN, "get", "workspaces"]
            told = environment(KUBECONFIG=str(server.kubeconfig))
            answer = subprocess.run(words, env=told, capture_output=True, text=True, check=False)
            assert answer.returncode == 0, answer.stderr
            assert "shop" in answer.stdout


def test_the_table_is_of_those_that_are_tried() -> None:
    heads = re.findall(r"(HAProxy|nginx), (L[47])", PAGE.read_text().partition("\n| ---")[0])
    assert sorted((name.lower(), way) for name, way in heads) == sorted(PLACES)
