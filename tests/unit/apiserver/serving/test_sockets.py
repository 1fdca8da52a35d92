"""Watches over WebSocket through uvicorn and TLS, with a client that knows nothing of the server."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from websockets.exceptions import ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from apiserver.app import App
from apiserver.auth.authn import Authenticator
from apiserver.auth.pki import Keys, ensure_keys
from apiserver.auth.rbac import Authorizer
from apiserver.endpoints.kube import KubernetesAPI
from apiserver.endpoints.targets import NoTargets
from apiserver.launch import listen
from apiserver.model.keys import Key
from apiserver.registry.catalog import Catalog
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, placed, put_fleet, put_workspace
from apiserver.settings import ServerSettings
from apiserver.storage.protocol import Put, Store
from apiserver.stores import open_main_store
from apiserver.worker import server

WATCH = "/api/v1/namespaces/default/configmaps?watch=1"
TOKEN = "secret-of-ann"


class Served(NamedTuple):
    store: Store
    keys: Keys
    port: int
    kubernetes: KubernetesAPI

    def open(self, path: str, *, certificate: bool = True, **more: Any) -> ClientConnection:
        context = ssl.create_default_context(cafile=str(self.keys.ca))
        if certificate:
            pair = self.keys.pair("admin")
            context.load_cert_chain(pair.certificate, pair.key)
        return connect(f"wss://127.0.0.1:{self.port}{path}", ssl=context, open_timeout=10, close_timeout=5, **more)

    def put(self, name: str, value: str) -> None:
        metadata = {"name": name, "namespace": "default"}
        obj = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"k": value}}
        self.store.write(Put(Key("configmaps", "root", "default", name), orjson.dumps(obj))).result(10)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    keys = ensure_keys(tmp_path / "keys")
    tokens = tmp_path / "tokens.csv"
    tokens.write_text(f"{TOKEN},ann,1,system:masters\n")
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    settings = ServerSettings(tmp_path, keys.directory, port=port, token_auth_file=tokens, sync_writes=False)
    store = open_main_store(settings)
    store.write(
        put_workspace(WorkspaceRecord("root", "root", "")),
        placed(WorkspaceRecord("root", "root", "")),
        put_fleet(FleetRecord(loaded=True)),
    ).result(10)
    authenticator, authorizer = Authenticator(tokens), Authorizer(store)
    kubernetes = KubernetesAPI(store, Catalog(store), authenticator, authorizer, settings, NoTargets())
    app = App(settings, store, authenticator, authorizer, kubernetes)
    worker = server(app, settings, kubernetes.end_watches)
    thread = threading.Thread(target=worker.run, args=([listener],))
    thread.start()
    yield Served(store, keys, port, kubernetes)
    worker.should_exit = True
    thread.join(30)
    kubernetes.close()
    store.close()


def event(connection: ClientConnection) -> tuple[str, str]:
    text = connection.recv(timeout=10)
    assert isinstance(text, str)
    found = json.loads(text)
    return found["type"], found["object"]["metadata"]["name"]


def test_each_event_is_one_text_frame(served: Served) -> None:
    served.put("a", "line\nbreak")
    served.put("b", "1")
    with served.open(WATCH) as connection:
        assert [event(connection), event(connection)] == [("ADDED", "a"), ("ADDED", "b")]
        served.put("b", "2")
        assert event(connection) == ("MODIFIED", "b")


def test_a_token_comes_as_a_subprotocol_and_is_not_sent_back(served: Served) -> None:
    served.put("a", "1")
    token = "base64url.bearer.authorization.k8s.io." + base64.urlsafe_b64encode(TOKEN.encode()).decode().rstrip("=")
    offered: Any = [token, "base64.binary.k8s.io"]
    with served.open(WATCH, certificate=False, subprotocols=offered) as connection:
        assert connection.subprotocol == "base64.binary.k8s.io"
        assert event(connection) == ("ADDED", "a")


@pytest.mark.parametrize(
    ("path", "certificate", "status"),
    [
        (WATCH, False, 401),
        ("/api/v1/namespaces/default/nonsense?watch=1", True, 404),
        (WATCH + "&labelSelector=!!", True, 400),
        ("/api/v1/namespaces/default/configmaps", True, 200),
    ],
)
def test_what_is_no_watch_is_answered_as_http(served: Served, path: str, certificate: bool, status: int) -> None:
    with pytest.raises(InvalidStatus) as refused:
        served.open(path, certificate=certificate)
    assert refused.value.response.status_code == status
    assert refused.value.response.body is not None
    assert json.loads(refused.value.response.body)["kind"] == ("Status" if status != 200 else "ConfigMapList")


def test_the_time_that_was_asked_for_ends_it_cleanly(served: Served) -> None:
    with served.open(WATCH + "&timeoutSeconds=1") as connection, pytest.raises(ConnectionClosedOK):
        connection.recv(timeout=10)


def test_a_client_that_leaves_is_forgotten(served: Served, eventually: Any) -> None:
    hub = served.kubernetes._realms.main.hub
    with served.open(WATCH), served.open(WATCH):
        eventually(lambda: hub.count == 2)
    eventually(lambda: hub.count == 0)
