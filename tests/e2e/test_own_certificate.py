"""A server with a certificate of somebody else's CA, as docs/certificates.md says: what is written works as it is."""

from __future__ import annotations

import re
import shlex
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.authorities import Authority, pem
from support.plane import Answer, Credentials, Plane, environment, kubectl_program

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "fleet-repo"
HOST = "127.0.0.9"
"""Another address of this machine, as clients on other machines would have it."""
CA = Authority("somebody's CA")
BETWEEN = Authority("somebody's CA for servers", CA)


def options(server: Plane, files: tuple[Path, Path]) -> tuple[str, ...]:
    """Those of the command in the page."""
    text = (REPOSITORY / "docs" / "certificates.md").read_text()
    [line] = re.findall(r"^treeplane up REPOSITORY (.*?)$", text.replace("\\\n", " "), re.MULTILINE)
    found = line.replace("https://api.example.org:6443", f"https://{HOST}:{server.port}")
    found = found.replace("tls.crt", str(files[0])).replace("tls.key", str(files[1]))
    return ("--listen", f"0.0.0.0:{server.port}", *shlex.split(found))


def kubectl(server: Plane, *words: str, **variables: str) -> str:
    """As somebody with nothing but the kubeconfig."""
    command = [kubectl_program(), *words]
    told = environment(KUBECONFIG=str(server.kubeconfig), **variables)
    found = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout


def clone(server: Plane, folder: Path, **variables: str) -> None:
    words = [*server.clone_words()[:-1], str(folder)]
    for command in (words, ["git", "-C", str(folder), "push", "--quiet"]):
        found = subprocess.run(command, env=environment(**variables), capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr


def authorities(server: Plane) -> set[bool]:
    """Whether the clusters of the kubeconfig name a CA."""
    config = yaml.safe_load(server.kubeconfig.read_text())
    return {"certificate-authority-data" in each["cluster"] for each in config["clusters"]}


def test_with_an_own_ca(tmp_path: Path, eventually: Any) -> None:
    """Its root stands in the file. The embedded targets are reached as ever, and a new certificate counts while it
    runs."""
    server = Plane(EXAMPLE, tmp_path / "server" / "data")
    files = BETWEEN.issue(HOST).put(tmp_path / "tls", CA.certificate)
    server.arguments = options(server, files)
    with server:
        assert "shop" in kubectl(server, "get", "workspaces")
        clone(server, tmp_path / "fleet")
        web = "/clusters/root:shop:web/apis/apps/v1/namespaces/default/deployments/web"
        eventually(lambda: server.get(web).get("status", {}).get("readyReplicas") == 2, 60)
        before = ssl.get_server_certificate((HOST, server.port))
        other = Authority("another CA")
        with server.still():  # whoever looks between the two files for long enough says so
            other.issue(HOST).put(tmp_path / "tls", other.certificate)
        eventually(lambda: ssl.get_server_certificate((HOST, server.port)) != before, 60)
        eventually(lambda: "tls.crt was read again" in server.output(), 60)
        assert "shop" in kubectl(server, "get", "workspaces")
        files[1].write_bytes(b"half a key")
        eventually(lambda: "counts on" in server.output(), 60)
        assert "shop" in kubectl(server, "get", "workspaces")
        assert server.output().count("counts on") == 1


def test_with_a_public_ca(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the machine knows: no CA stands in the kubeconfig, and none in the clone."""
    (tmp_path / "system.pem").write_bytes(pem(CA.certificate))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "system.pem"))
    server = Plane(EXAMPLE, tmp_path / "server" / "data")
    server.arguments = options(server, BETWEEN.issue(HOST).put(tmp_path / "tls"))
    with server:
        assert authorities(server) == {False}
        assert "shop" in kubectl(server, "get", "workspaces")
        assert not [word for word in server.clone_words() if "sslCAInfo" in word]
        clone(server, tmp_path / "fleet", GIT_SSL_CAINFO=str(tmp_path / "system.pem"))


class AmongProxies(Plane):
    """Whose requests begin with a header of the PROXY protocol, version 1."""

    def request(self, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Answer:
        connection = self.connection()
        made = connection._http
        plain = socket.create_connection((made.host, made.port))
        plain.sendall(b"PROXY UNKNOWN\r\n")
        made.sock = Credentials.read(self.kubeconfig).tls.wrap_socket(plain, server_hostname=made.host)
        try:
            return connection.request(method, path, body, content_type)
        finally:
            connection.close()


def test_where_proxies_are_it_reaches_itself(tmp_path: Path, eventually: Any) -> None:
    """With this machine's own address among those that have to begin with a header: its processes do, and whoever is
    not told of it by a kubeconfig is by a line."""
    server = AmongProxies(EXAMPLE, tmp_path / "server" / "data")
    server.arguments = ("--proxy-protocol-network", "127.0.0.1")
    with server:
        assert "have to begin with a PROXY header, which kubectl and git do not send" in server.output()
        web = "/clusters/root:shop:web/apis/apps/v1/namespaces/default/deployments/web"
        eventually(lambda: server.get(web).get("status", {}).get("readyReplicas") == 2, 60)
