"""What a header says of who asks, as proxies write it for other servers: it counts for nothing."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.auth.pki import Keys, ensure_keys
from apiserver.launch import listen, spawn
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, placed, put_fleet, put_workspace
from apiserver.settings import ServerSettings
from apiserver.stores import open_main_store

ADMIN, MASTERS = "shard-admin", "system:masters"
HEADERS = {
    "X-Remote-User": ADMIN, "X-Remote-Group": MASTERS, "X-Remote-Extra-Scopes": "all", "X-Remote-Uid": "1",
    "X-Forwarded-User": ADMIN, "X-Forwarded-Groups": MASTERS, "X-Forwarded-Email": ADMIN, "Remote-User": ADMIN,
    "X-Auth-Request-User": ADMIN, "X-Client-Cert": f"CN={ADMIN}", "X-Forwarded-Client-Cert": f"Subject=CN={ADMIN}",
    "X-SSL-Client-Cert": f"CN={ADMIN}", "X-SSL-Client-S-DN": f"CN={ADMIN},O={MASTERS}", "Client-Cert": f"CN={ADMIN}",
    "X-Forwarded-For": "127.0.0.1", "X-Real-IP": "127.0.0.1", "Forwarded": "for=127.0.0.1", "X-User": ADMIN,
}  # fmt: skip
TOKEN = {"Authorization": "Bearer bobs-token"}
REVIEW = "/clusters/root/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[ServerSettings]:
    """Of a worker that runs; bob has a token, and no right."""
    keys, tokens = ensure_keys(tmp_path / "keys"), tmp_path / "tokens.csv"
    tokens.write_text("bobs-token,bob,1\n")
    with listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        settings = ServerSettings(
            tmp_path, keys.directory, port=port, token_auth_file=tokens, anonymous=True, sync_writes=False
        )
        store = open_main_store(settings)
        root = WorkspaceRecord("root", "root", "")
        store.write(put_workspace(root), placed(root), put_fleet(FleetRecord(loaded=True))).result(10)
        store.close()
        process = spawn(settings, listener)
        yield settings
        process.terminate()
        process.wait(30)
        assert process.stdin is not None
        process.stdin.close()


def asked(settings: ServerSettings, headers: dict[str, str], *, admin: bool = False) -> tuple[int, Any]:
    """What the server answers to who wants to know who he is."""
    keys = Keys(settings.keys_dir)
    context = ssl.create_default_context(cafile=keys.ca)
    if admin:
        context.load_cert_chain(keys.shard_admin.certificate, keys.shard_admin.key)
    connection = http.client.HTTPSConnection("127.0.0.1", settings.port, context=context, timeout=60)
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    connection.request("POST", REVIEW, json.dumps(body), {"content-type": "application/json", **headers})
    answer = connection.getresponse()
    found = answer.status, json.loads(answer.read())
    connection.close()
    return found


def test_no_header_names_a_user(settings: ServerSettings) -> None:
    """The answer is to the byte that without them; even who is anybody's administrator stays who he is."""
    for headers in ({}, TOKEN):
        plain = asked(settings, headers)
        assert ADMIN not in str(plain)
        assert asked(settings, headers | HEADERS) == plain
    status, said = asked(settings, HEADERS | {"X-Remote-User": "bob"}, admin=True)
    assert (status, said["status"]["userInfo"]["username"]) == (201, ADMIN)


def test_impersonation_needs_the_right(settings: ServerSettings) -> None:
    for headers in ({}, TOKEN):
        status, said = asked(settings, headers | HEADERS | {"Impersonate-User": ADMIN, "Impersonate-Group": MASTERS})
        assert status == 403
        assert said["message"].startswith("impersonation is not allowed")
    status, said = asked(settings, {"Impersonate-User": "bob"}, admin=True)
    assert status == 403
    assert said["message"].startswith('selfsubjectreviews.authentication.k8s.io is forbidden: User "bob"')


async def client(scope: Any, receive: Any, send: Any) -> None:
    body = json.dumps(scope["client"][0]).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("running", [{"app": client}], indirect=True)
def test_no_header_names_an_address(running: Any) -> None:
    context = ssl.create_default_context(cafile=running.keys.ca)
    connection = http.client.HTTPSConnection("127.0.0.1", running.settings.port, context=context, timeout=20)
    connection.request(
        "GET", "/x", headers=HEADERS | {"X-Forwarded-For": "203.0.113.7", "Forwarded": "for=203.0.113.7"}
    )
    assert json.loads(connection.getresponse().read()) == "127.0.0.1"
    connection.close()
