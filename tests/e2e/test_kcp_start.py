"""`treeplane kcp start`, as somebody who knows kcp uses it."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.cowboys import COWBOY, EXPORT
from support.kcpplane import KcpPlane
from support.plane import Plane, PlaneError


class Health:
    """Asks all the time whether a server is well, from the moment at which it is."""

    def __init__(self, server: Plane) -> None:
        self._server = server
        self._ends = threading.Event()
        self.wrong: list[Any] = []
        self.good = 0
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Health:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _watch(self) -> None:
        tls = ssl.create_default_context(cafile=self._server.data / "apiserver.crt")
        while not self._ends.wait(0.05):
            for path in ("/livez", "/readyz"):
                connection = http.client.HTTPSConnection("127.0.0.1", self._server.port, timeout=60, context=tls)
                try:
                    connection.request("GET", path)
                    status: Any = connection.getresponse().status
                except OSError as error:
                    status = error
                finally:
                    connection.close()
                if status == 200:
                    self.good += 1
                else:
                    self.wrong.append((path, status))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[KcpPlane]:
    tokens = tmp_path / "tokens.csv"
    tokens.write_text("ann-token,ann,1\n")
    more = ("--token-auth-file", str(tokens), "--feature-gates=KCPCacheAPIs=true", "-v", "2")
    with KcpPlane("", tmp_path / "kcp" / ".kcp", *more) as made:
        yield made


def alive(pids: list[int]) -> list[int]:
    """Those that run still."""
    return [pid for pid in pids if (stat := _stat(pid)) and stat.rpartition(")")[2].split()[0] != "Z"]


def _stat(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""


def test_a_session(server: KcpPlane, eventually: Callable[..., Any]) -> None:
    with Health(server) as health:
        a_session(server, eventually)
    assert health.good > 10
    assert health.wrong == []

    pids = server.pids()
    assert len(pids) > 2
    assert server.stop(signal.SIGTERM) == 0
    eventually(lambda: not alive(pids), 30)

    # It goes on where it was, and writes the kubeconfig where it is told to.
    mine = server.data.parent / "mine.kubeconfig"
    server.arguments += ("--kubeconfig-path", str(mine))
    server.start()
    assert mine.read_text() != server.kubeconfig.read_text(), "what the user chose in the other one is not in it"
    assert server.run("kubectl", "ws", ":root:consumer")
    assert server.run("kubectl", "get", "cowboys", "-o", "name") == "cowboy.wildwest.dev/lucky\n"


def a_session(server: KcpPlane, eventually: Callable[..., Any]) -> None:
    run = server.run
    assert "not known here, and ignored: --feature-gates, -v" in server.output()
    assert run("kubectl", "config", "get-contexts", "-o", "name").split() == [
        "base", "root", "shard-base", "system:admin",
    ]  # fmt: skip
    for name in ("apiserver.crt", "apiserver.key", "admin.kubeconfig"):
        assert (server.data / name).exists()

    made = run("kubectl", "ws", "create", "provider", "--enter").splitlines()
    ready = 'Workspace "provider" (type root:organization) is ready to use.'
    assert made[-2:] == [ready, "Current workspace is 'root:provider' (type root:organization)."]
    run("kubectl", "apply", "-f", "-", stdin=EXPORT)

    for name in ("consumer", "other"):
        run("kubectl", "ws", ":root")
        run("kubectl", "create", "workspace", name, "--enter")
        assert run("treeplane", "bind", "apiexport", "root:provider:cowboys").splitlines() == [
            "apibinding cowboys created. Waiting to successfully bind ...",
            "cowboys created and bound.",
        ]
        run("kubectl", "apply", "-f", "-", stdin=COWBOY)
        assert run("kubectl", "get", "cowboys", "-o", "name") == "cowboy.wildwest.dev/lucky\n"

    for verb, resource in (("accept", "configmaps"), ("reject", "secrets")):
        said = run("treeplane", "claims", verb, "cowboys", "--resource", resource)
        assert said == f'claim "{resource}" on APIBinding "cowboys" is {verb}ed\n'
    assert run("treeplane", "claims", "get", "apibinding") == (
        "APIBINDING   GROUP-RESOURCE   VERBS      STATUS\n"
        "cowboys      configmaps       get,list   Accepted\n"
        "cowboys      secrets          *          Rejected\n"
    )
    run("kubectl", "delete", "apibinding", "cowboys")
    with pytest.raises(
        PlaneError, match=r"the server (could not find the requested resource|doesn't have a resource type)"
    ):
        run("kubectl", "get", "cowboys")
    run("kubectl", "ws", ":root")
    run("kubectl", "delete", "ws", "other")
    names = run("kubectl", "get", "ws", "-o", "name").splitlines()
    assert "workspace.tenancy.kcp.io/consumer" in names
    assert "workspace.tenancy.kcp.io/other" not in names

    # Everybody has a home, and sees root.
    root = f"https://127.0.0.1:{server.port}/clusters/root"
    assert "consumer" in run("kubectl", "get", "ws", "--server", root, token="ann-token")

    def home() -> Any:
        return json.loads(run("kubectl", "get", "ws", "~", "-o", "json", "--server", root, token="ann-token"))

    eventually(lambda: home()["status"]["phase"] == "Ready", 60)
    run("kubectl", "create", "configmap", "mine", "--server", home()["spec"]["URL"], token="ann-token")
