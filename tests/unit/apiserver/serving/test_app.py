"""The shell and the dispatcher, over real TLS."""

import http.client
import json
import ssl
from typing import Any

import pytest
from support.counted import series, total

from apiserver.model.keys import Key
from apiserver.registry import announced, tree
from apiserver.registry.tree import FleetRecord, put_fleet
from apiserver.storage.protocol import Put


@pytest.fixture
def get(running: Any) -> Any:
    """`get(path, user)` → (status, body); user "" shows no certificate."""

    def ask(path: str, user: str = "admin", headers: dict[str, str] | None = None, method: str = "GET") -> Any:
        context = ssl.create_default_context(cafile=running.keys.ca)
        if user:
            pair = running.keys.pair(user)
            context.load_cert_chain(pair.certificate, pair.key)
        connection = http.client.HTTPSConnection("127.0.0.1", running.settings.port, context=context, timeout=30)
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    return ask


def test_everything_else_is_the_kubernetes_api(get: Any) -> None:
    status, body = get("/clusters/root:a/api/v1/namespaces?limit=500")
    assert status == 200
    assert json.loads(body) == {
        "path": "/clusters/root:a/api/v1/namespaces",
        "tls": {"user": "kcp-admin", "groups": ["system:kcp:admin"]},
    }
    assert json.loads(get("/", user="")[1]) == {"path": "/", "tls": None}


def test_health(get: Any, running: Any) -> None:
    assert get("/healthz", user="") == (200, "ok")
    assert get("/livez?verbose", user="") == (200, "[+]ping ok\nlivez check passed\n")
    status, body = get("/readyz", user="")
    assert (status, body) == (500, "readyz check failed: the fleet is being loaded\n")
    assert "[-]load failed: the fleet is being loaded (0 of 0 workspaces)" in get("/readyz?verbose")[1]
    running.store.write(put_fleet(FleetRecord(loaded=True))).result(10)
    assert get("/readyz", user="") == (200, "ok")
    found = {"RemoteAway": "/var/fleet.git does not answer"}
    running.store.write(tree.put_troubles(found)).result(10)
    assert get("/readyz", user="") == (200, "ok")
    text = "[+]ping ok\n[+]load ok\n[-]fleet RemoteAway\nreadyz check passed\n"
    assert get("/readyz?verbose") == (200, text)


def test_what_is_wrong_with_the_fleet_is_told_to_whom_root_lets_look(get: Any, running: Any) -> None:
    running.store.write(put_fleet(FleetRecord(loaded=True)), tree.put_troubles({"Held": "commit 1"})).result(10)
    for user in ("", "bob"):
        status, body = get("/readyz?verbose", user=user)
        assert (status, "Held" in body) == (200, False)
        assert body.endswith("all else is told to whom root gives `get` on /readyz/fleet\n")
    bind(running, "system:monitoring")
    assert "[-]fleet Held\n" in get("/readyz?verbose", user="bob")[1]
    assert get("/metrics", user="bob")[0] == 200


def test_metrics_need_a_right(get: Any, running: Any) -> None:
    status, body = get("/metrics")
    assert status == 200
    assert total(series(body), "treeplane_store_revision") == running.store.revision()
    assert 'treeplane_certificate_expiration_timestamp_seconds{certificate="ca"}' in body
    assert "treeplane_workspaces_held 0.0" in body
    assert get("/metrics", user="bob")[0] == 403
    assert "cannot get path" in json.loads(get("/metrics", user="bob")[1])["message"]
    assert get("/metrics", user="")[0] == 401


def test_metrics_say_who_cannot_be_told_of_commits(get: Any, running: Any) -> None:
    assert "treeplane_announcing_fails{" not in get("/metrics")[1], "nobody is told"
    fails = announced.put_failing("forge", "https://git.example.org is away")
    running.store.write(fails, announced.put_failing("webhook", "")).result(10)
    body = get("/metrics")[1]
    assert 'treeplane_announcing_fails{to="forge"} 1.0\ntreeplane_announcing_fails{to="webhook"} 0.0\n' in body
    assert "git.example.org" not in body


def test_who_scrapes_needs_no_access_to_root(get: Any, running: Any) -> None:
    bind(running, "system:kcp:metrics-reader")
    assert get("/metrics", user="bob")[0] == 200


def bind(running: Any, role: str) -> None:
    """Gives bob a role in root, to which he has no access."""
    binding = {
        "metadata": {"name": "scrape"},
        "roleRef": {"kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": "bob"}],
    }
    key = Key("clusterrolebindings.rbac.authorization.k8s.io", "root", "", "scrape")
    running.store.write(Put(key, json.dumps(binding).encode())).result(10)


def test_there_are_no_documentation_routes(get: Any) -> None:
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert json.loads(get(path)[1])["path"] == path


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/git/fleet.git/HEAD", "GET", 404),
        ("/git/fleet.git/objects/info/packs", "GET", 404),
        ("/git/fleet.git/info/refs", "GET", 404),
        ("/git/fleet.git/git-upload-pack", "GET", 405),
        ("/git/other.git/info/refs?service=git-upload-pack", "GET", 404),
        ("/git/fleet.git/../../info/refs?service=git-upload-pack", "GET", 404),
        ("/git/fleet.git/%2e%2e/info/refs?service=git-upload-pack", "GET", 404),
    ],
)
def test_only_the_smart_protocol(get: Any, path: str, method: str, status: int) -> None:
    assert get(path, method=method)[0] == status
