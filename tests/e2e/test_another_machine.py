"""A server that others reach by another address than it is bound to, for as long as it runs."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from support.plane import Plane

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet-repo"
HOST = "127.0.0.9"
"""Another address of this machine, which no certificate names by itself."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Plane]:
    server = Plane(EXAMPLE, tmp_path / "server" / "data")
    server.arguments = (
        "--listen", f"0.0.0.0:{server.port}", "--external-url", f"https://{HOST}:{server.port}",
        "--tls-san", "fleet.example.org", "--certificate-seconds", "0.2",
    )  # fmt: skip
    with server:
        yield server


def test_it_works_under_the_url_that_it_was_given(server: Plane, tmp_path: Path, eventually: Any) -> None:
    url = f"https://{HOST}:{server.port}"
    config = yaml.safe_load(server.kubeconfig.read_text())
    places = ("", "/clusters/root", "/clusters/system:admin")
    assert {c["cluster"]["server"] for c in config["clusters"]} == {url + place for place in places}
    [shop] = [w for w in server.get("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces")["items"]
              if w["metadata"]["name"] == "shop"]  # fmt: skip
    assert shop["spec"]["URL"] == f"{url}/clusters/root:shop"
    assert server.clone_words()[-2] == f"{url}/git/fleet.git"
    work = server.clone(tmp_path / "fleet")
    work.edit("workspaces/root/shop/web/deployment.yaml", "replicas: 2", "replicas: 3")
    work.commit("three replicas")
    work.push()
    # The embedded targets are reached, whatever others call the server.
    web = "/clusters/root:shop:web/apis/apps/v1/namespaces/default/deployments/web"
    eventually(lambda: server.get(web).get("status", {}).get("readyReplicas") == 3, 60)


def test_what_a_request_calls_the_server_is_believed_nowhere(server: Plane) -> None:
    connection = server.connection()
    connection._headers |= {"Host": "evil.example.org", "X-Forwarded-Host": "evil.example.org"}
    paths = ("/clusters/root/apis/tenancy.kcp.io/v1alpha1/workspaces", "/.well-known/openid-configuration", "/api")
    for path in paths:
        answer = connection.request("GET", path)
        assert answer.status == 200
        assert "evil" not in str(answer.body)
    connection.close()


def test_certificates_are_renewed_while_it_runs(server: Plane, eventually: Any) -> None:
    keys = server.data / "keys"
    ca = (keys / "ca.crt").read_bytes()
    before = _serial(server)
    admin = server.kubeconfig.read_bytes()
    for name in ("server", "admin"):
        _shorten(keys, name)
    eventually(lambda: server.kubeconfig.read_bytes() != admin, 60, "the administrator has a new certificate")
    eventually(lambda: _serial(server) != before, 60, "the server shows a new certificate")
    assert server.request("GET", "/clusters/root/api/v1/namespaces").status == 200
    assert (keys / "ca.crt").read_bytes() == ca


def _serial(server: Plane) -> int:
    """Of the certificate that a new connection gets, which is checked as any client does."""
    context = ssl.create_default_context(cafile=server.data / "keys" / "ca.crt")
    connection = http.client.HTTPSConnection(HOST, server.port, context=context, timeout=30)
    connection.connect()
    try:
        found = connection.sock.getpeercert(binary_form=True)  # type: ignore[union-attr]
        return x509.load_der_x509_certificate(found).serial_number
    finally:
        connection.close()


def _shorten(keys: Path, name: str) -> None:
    """The certificate as it would be a week before its end."""
    key: Any = serialization.load_pem_private_key((keys / "ca.key").read_bytes(), None)
    old = x509.load_pem_x509_certificate((keys / f"{name}.crt").read_bytes())
    begin, end = datetime.now(UTC) - timedelta(days=1), datetime.now(UTC) + timedelta(days=7)
    builder = x509.CertificateBuilder(old.issuer, old.subject, old.public_key(), old.serial_number, begin, end)
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    made = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    (keys / "short.new").write_bytes(made)
    (keys / "short.new").replace(keys / f"{name}.crt")  # at once: the server reads it several times a second
