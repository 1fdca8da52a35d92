"""The log of a whole server, of which everything hostile and everything secret is asked; and its page."""

from __future__ import annotations

import base64
import json
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.plane import COMMAND, Clone, Credentials, Plane, environment

DOCUMENT = Path(__file__).parents[2] / "docs" / "logs.md"
WEB = "workspaces/root/shop/web"
ODD = "x\N{LINE SEPARATOR}y\N{RIGHT-TO-LEFT OVERRIDE}z\N{ZERO WIDTH SPACE}"
ACTS = ODD + "\x1b[31m\r\n\x07\x9b2J\x7f"
"""What a terminal acts on, and what begins a line."""
NAMED = "/%1b%5B31m%0a%e2%80%a8%e2%80%ae"
SOURCED = "/clusters/root:shop:sourced/api/v1/namespaces/default/configmaps"
SECRETS = {
    name: f"planted-{name}-5ecre7"
    for name in ("data", "token", "basic", "bearer", "url", "query", "body", "target", "header", "source")
}


def blocks() -> list[str]:
    found = re.findall(r"^```\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return [line for block in found for line in block.splitlines()]


def send(server: Plane, data: bytes, *, known: bool = True) -> bytes:
    """Bytes as they are, which no client's library would send. `known`: with the administrator's certificate."""
    at = Credentials.read(server.kubeconfig)
    context = at.tls if known else ssl.create_default_context(cafile=server.data / "keys" / "ca.crt")
    with (
        socket.create_connection((at.host, at.port), 30) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as tls,
    ):
        tls.sendall(data)
        answer = b""
        with suppress(ConnectionError, ssl.SSLError):
            while part := tls.recv(65536):
                answer += part
    return answer


def request(server: Plane, line: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [line, "host: localhost", "connection: close", f"content-length: {len(body)}", *headers]
    known = not any(each.startswith("authorization:") for each in headers)
    return send(server, "\r\n".join([*lines, "", ""]).encode() + body, known=known)


def attack(server: Plane, clone: Clone) -> None:
    """Everything that a tenant may say, with something in it that is not to be seen."""
    encoded = base64.b64encode(SECRETS["data"].encode()).decode()
    cluster = {"server": f"https://u:{SECRETS['target']}@127.0.0.1:1"}
    target = json.dumps({"clusters": [{"name": "a", "cluster": cluster}]})
    manifests = [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": encoded}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ACTS, "namespace": ACTS}, "data": {"k": ACTS}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}, "stringData": {"k": target}},
    ]
    clone.write(f"{WEB}/hostile.yaml", "\n---\n".join(json.dumps(each) for each in manifests))
    clone.write(f"{WEB}/{ODD}.yaml", f"{ACTS}: [{SECRETS['data']}\n")
    source = {"repository": f"https://me:{SECRETS['source']}@127.0.0.1:1/x?token={SECRETS['query']}"}
    clone.write("workspaces/root/shop/sourced/workspace.yaml", json.dumps({"spec": {"source": source}}))
    clone.commit(f"a message {ACTS}\n\n{ACTS}")
    clone.git("push", "origin", "HEAD:main", f"HEAD:refs/heads/{ODD}")
    clone.git("-c", f"http.userAgent={ODD}", "push", "--force", "origin", "HEAD~1:main", check=False)
    for user in ("me", ACTS):
        basic = base64.b64encode(f"{user}:{SECRETS['basic']}".encode()).decode()
        asked = "GET /git/fleet.git/info/refs?service=git-receive-pack HTTP/1.1"
        assert b" 401 " in request(server, asked, f"authorization: Basic {basic}")
    request(server, asked, f"authorization: Bearer {SECRETS['token']}")  # may not push
    path = "/clusters/root/api/v1/namespaces/default/configmaps"
    odd = [f"user-agent: {ODD}", f"audit-id: {ODD}", "x-request-id: a\x1b[31m", f"x-any: {SECRETS['header']}"]
    for line in (f"GET {path}{NAMED}?token={SECRETS['query']}", f"DELETE {NAMED}", f"GET {path}?timeout=1ns"):
        request(server, f"{line} HTTP/1.1", *odd)
    request(server, f"POST {path} HTTP/1.1", "content-type: application/json", body=SECRETS["body"].encode() + b"\x1b{")
    for token in (SECRETS["bearer"] + "\x1b", SECRETS["token"]):
        request(server, f"GET {path} HTTP/1.1", f"authorization: Bearer {token}")
    request(server, f"GET {path}?watch=1&x={SECRETS['query']} HTTP/1.1", f"impersonate-user: {ODD}")
    request(server, f"BREW {path} HTTP/9.9", f"upgrade: {ODD}")
    send(server, b"\x16\x03\x01" + ACTS.encode() + b"\r\n\r\n")


@pytest.mark.parametrize("form", ["text", "json"])
def test_nothing_hostile_and_nothing_secret_is_in_any_log(
    plane: Callable[..., Plane], example_fleet: Path, tmp_path: Path, form: str, eventually: Any
) -> None:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f"{SECRETS['token']},ann,1,{ODD}\n")
    file = tmp_path / "the.log"
    options = ["--log-level", "debug", "--log-format", form, "--log-file", str(file), "--token-auth-file", str(tokens)]
    server = plane(example_fleet, *options, "--workers", "1")
    attack(server, server.clone(tmp_path / "clone"))
    eventually(lambda: "hostile.yaml" in file.read_text(), 60, "what is said on standard output is logged, too")
    # It never had anything good, so it is not served.
    answer = request(server, f"GET {SOURCED}{NAMED} HTTP/1.1", "audit-id: the-last-one")
    assert answer.startswith(b"HTTP/1.1 503")
    assert b"audit-id: the-last-one\r\n" in answer
    eventually(lambda: "the-last-one" in file.read_text(), 30, "what failed is logged under its name")
    found = json.loads(ran(server, "pushes", "-o", "json"))["pushes"]
    assert [(each["user"], each["result"]) for each in found] == [
        ("ann", "refused"), ("", "refused"), ("", "refused"), ("kcp-admin", "refused"), ("kcp-admin", "mixed"),
    ]  # fmt: skip
    server.stop()
    logs = {each.name: each.read_text() for each in (file, *server.data.glob("pushes*.log"))} | {"out": server.output()}
    assert set(logs) == {"the.log", "pushes.log", "pushes-refused.log", "out"}
    for name, text in logs.items():
        assert [secret for secret in SECRETS.values() if secret in text] == [], name
        lines = text.split("\n")
        assert [line for line in lines if not line.isprintable()] == [], name
        assert max(map(len, lines)) < 20_000, name
    for name in ("the.log", "pushes.log", "pushes-refused.log"):
        if name != "the.log" or form == "json":
            assert all(isinstance(json.loads(line), dict) for line in logs[name].splitlines()), name
    lines = logs["the.log"].splitlines()
    assert {"up", "api-1"} <= {line.split()[2] if form == "text" else json.loads(line)["process"] for line in lines}
    assert file.stat().st_mode & 0o777 == 0o600


def ran(server: Plane, *words: str) -> str:
    """On the server's machine, where the data directory is the usual one."""
    here = server.data.parent / "here"
    here.mkdir(exist_ok=True)
    if not (here / ".treeplane").exists():
        (here / ".treeplane").symlink_to(server.data)
    command = [str(COMMAND), *words]
    result = subprocess.run(command, env=environment(), cwd=here, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_commands_of_its_page(tmp_path: Path, example_fleet: Path, eventually: Any) -> None:
    """Those that start a server are started as they stand there; those that read are asked after a push."""
    commands = [line.split()[1:] for line in blocks() if line.startswith("treeplane ")]
    starts = [words for words in commands if words[0] == "up"]
    reads = [words for words in commands if words[0] == "pushes"]
    assert (len(starts), len(reads)) == (2, 4)
    for number, words in enumerate(starts):
        assert words[:2] == ["up", "REPOSITORY"]
        folder = tmp_path / f"server-{number}"
        fleet = Path(shutil.copytree(example_fleet, tmp_path / f"fleet-{number}"))
        with Plane(fleet, folder / "data", "--workers", "1", *words[2:]) as server:
            clone = server.clone(tmp_path / f"clone-{number}")
            clone.edit(f"{WEB}/deployment.yaml", "replicas: 2", "replicas: many" if number else "replicas: 3")
            commit = clone.commit("more")
            clone.push()
            for read in reads:
                said = ran(server, *read)
                if "ann" in read:
                    assert "no push is written down" in said
                    continue
                assert f"{commit:.10}" in said
                assert ("held" if number else "accepted") in said
            if not number:
                assert '"level": "info"' in server.output()
            else:
                log = folder / "treeplane.log"
                # The test's own file of the program's output has that name, too; both are appended to.
                eventually(lambda log=log: "the.held" in log.read_text() or "is held back" in log.read_text(), 30)
    (example,) = [line for line in blocks() if line.startswith("{")]
    assert {*json.loads(example)} == {"time", "level", "process", "pid", "logger", "message", "request"}
