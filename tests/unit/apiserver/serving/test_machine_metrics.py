"""What /metrics says of the machine: certificates, under names that no tenant chooses."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from apiserver.auth import pki
from apiserver.metrics.machine import CERTIFICATES
from apiserver.scrape import machine
from apiserver.settings import ServerSettings
from apiserver.storage.memory import MemoryStore

NOW = 1_800_000_000.0


def certificate(ends: float) -> bytes:
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (NOW - 1000, ends))
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begin, end)
    return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def ends(settings: ServerSettings) -> dict[str, float]:
    return {
        labels[0]: value
        for metric, labels, value in machine.read(MemoryStore(), settings, NOW)
        if metric is CERTIFICATES
    }


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    file = tmp_path / "given.pem"
    file.write_bytes(certificate(NOW + 20) + certificate(NOW + 10) + certificate(NOW + 30))
    return ServerSettings(tmp_path, tmp_path / "keys", client_ca_file=file, tls_cert_file=file, external_authority=file)


def test_the_ends_of_certificates_that_it_was_given(settings: ServerSettings) -> None:
    keys = pki.ensure_keys(settings.keys_dir)
    own = {"ca": keys.ca, "server": keys.server.certificate, "admin": keys.admin.certificate}
    given = {"given": NOW + 20, "client-ca": NOW + 10, "external-ca": NOW + 30}
    assert ends(settings) == given | {name: pki.ends(file.read_bytes()) for name, file in own.items()}


def test_one_that_is_not_there_or_does_not_read_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "wrong.pem").write_text("nonsense")
    wrong, gone = tmp_path / "wrong.pem", tmp_path / "gone.pem"
    assert ends(ServerSettings(tmp_path, tmp_path / "keys", client_ca_file=wrong, external_authority=gone)) == {}
    assert ends(ServerSettings(tmp_path, tmp_path / "keys")) == {}
