"""Workers as processes: they share a socket, end at SIGTERM with their watches, and with their parent."""

import contextlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from apiserver.auth.pki import Keys, ensure_keys
from apiserver.launch import listen, spawn
from apiserver.model.keys import Key
from apiserver.registry.intents import waiting
from apiserver.registry.tree import FleetRecord, WorkspaceRecord, placed, put_fleet, put_workspace
from apiserver.settings import ServerSettings
from apiserver.storage.protocol import Put
from apiserver.stores import open_main_store

Worker = subprocess.Popen[bytes]


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with listen("127.0.0.1", 0) as found:
        yield found


@pytest.fixture
def settings(tmp_path: Path, listener: socket.socket) -> ServerSettings:
    """With a store that holds an empty, loaded fleet."""
    data = tmp_path / "data"
    ensure_keys(data / "keys")
    settings = ServerSettings(data, data / "keys", port=listener.getsockname()[1], sync_writes=False)
    store = open_main_store(settings)
    root = WorkspaceRecord("root", "root", "")
    store.write(
        put_workspace(root),
        placed(root),
        put_fleet(FleetRecord(loaded=True)),
    ).result(10)
    store.close()
    return settings


@pytest.fixture
def worker(settings: ServerSettings, listener: socket.socket) -> Iterator[Callable[..., Worker]]:
    """Starts one, with other settings if need be."""
    started: list[Worker] = []

    def start(**others: Any) -> Worker:
        started.append(spawn(replace(settings, **others), listener))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait(30)
        if process.stdin and not process.stdin.closed:
            process.stdin.close()


@contextlib.contextmanager
def asked(settings: ServerSettings, path: str, sent: Any = None) -> Iterator[http.client.HTTPResponse]:
    """An answer to the administrator; a worker that is still starting is waited for, since the socket is bound."""
    keys = Keys(settings.keys_dir)
    context = ssl.create_default_context(cafile=keys.ca)
    context.load_cert_chain(keys.admin.certificate, keys.admin.key)
    connection = http.client.HTTPSConnection("127.0.0.1", settings.port, context=context, timeout=60)
    try:
        if sent is None:
            connection.request("GET", path)
        else:
            connection.request("POST", path, json.dumps(sent), {"content-type": "application/json"})
        yield connection.getresponse()
    finally:
        connection.close()


def test_a_worker_answers_and_ends(settings: ServerSettings, worker: Any) -> None:
    process = worker()
    with asked(settings, "/readyz") as answer:
        assert (answer.status, answer.read()) == (200, b"ok")
    with asked(settings, "/clusters/root/api/v1/namespaces/default/configmaps") as answer:
        assert answer.status == 200
        assert json.loads(answer.read())["items"] == []
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


def test_a_watch_ends_cleanly_at_sigterm(settings: ServerSettings, worker: Any) -> None:
    process = worker()
    with asked(settings, "/clusters/root/api/v1/configmaps?watch=true") as answer:
        assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        answer.read()  # raises IncompleteRead if the stream is cut off
    assert process.wait(30) == 0


def test_a_client_that_does_not_listen_holds_nobody_up(settings: ServerSettings, worker: Any) -> None:
    process = worker(shutdown_seconds=600)
    with asked(settings, "/readyz") as answer:
        answer.read()  # and the connection is kept for later
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_two_workers_share_the_socket(settings: ServerSettings, worker: Any) -> None:
    first, second = worker(), worker()
    with asked(settings, "/healthz") as answer:
        assert answer.status == 200
    first.send_signal(signal.SIGTERM)
    assert first.wait(30) in (0, -signal.SIGTERM)  # the other may have answered before this one was ready
    with asked(settings, "/healthz") as answer:
        assert answer.status == 200
    assert second.poll() is None


def test_a_worker_ends_with_its_parent(settings: ServerSettings, worker: Any) -> None:
    process = worker()
    with asked(settings, "/healthz"):
        pass
    process.stdin.close()
    assert process.wait(30) == 0


@pytest.mark.parametrize("how", ["its parent's end", "SIGTERM"])
def test_a_worker_that_waits_for_a_commit_ends_all_the_same(
    settings: ServerSettings, worker: Any, eventually: Any, how: str
) -> None:
    """Nobody is left to make it: its thread would wait for forty seconds."""
    store = open_main_store(settings)
    root = WorkspaceRecord("root", "root", "", writes="Commit")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    store.write(
        put_workspace(root),
        Put(Key("namespaces", "root", "", "default"), json.dumps(namespace).encode()),
    ).result(10)
    process = worker()

    def write() -> None:
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
        path, gone = "/api/v1/namespaces/default/configmaps", (OSError, http.client.HTTPException)
        with contextlib.suppress(*gone), asked(settings, path, config_map) as answer:
            answer.read()

    writing = threading.Thread(target=write)
    writing.start()
    eventually(lambda: waiting(store), 60, "the write waits")
    if how == "SIGTERM":
        process.send_signal(signal.SIGTERM)
    else:
        process.stdin.close()
    process.wait(20)
    writing.join(60)
    store.close()


def test_sigterm_while_starting(worker: Any) -> None:
    process = worker()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) in (0, -signal.SIGTERM)


def test_a_taken_port_is_an_error(listener: socket.socket) -> None:
    with pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", listener.getsockname()[1])


def test_watches_of_embedded_targets_end_too(settings: ServerSettings, worker: Any) -> None:
    store = open_main_store(settings)
    target = {"metadata": {"name": "edge"}, "spec": {"connection": {"embedded": {}}}}
    store.write(Put(Key("synctargets.workload.kcp.io", "root", "", "edge"), json.dumps(target).encode())).result(10)
    store.close()
    process = worker()
    with asked(settings, "/targets/root:edge/api/v1/configmaps?watch=true") as answer:
        assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        answer.read()
    assert process.wait(30) == 0
