"""Two certificates: who is shown the one that the server was given, who its own."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography import x509
from support.authorities import Authority, pem

from apiserver.auth import pki
from apiserver.auth.keys import OWN_NAME, Keys, Pair
from apiserver.openssl import ServerTLS

CA = Authority("some CA")
BETWEEN = Authority("between", CA)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return pki.ensure_keys(tmp_path / "keys", ["fleet.internal", "10.0.0.1"])


@pytest.fixture
def files(tmp_path: Path) -> Pair:
    return Pair(*BETWEEN.issue("api.example.org", "203.0.113.9").put(tmp_path / "given"))


def shown(tls: ServerTLS, name: str = "", address: str = "192.0.2.1") -> x509.Certificate:
    """The certificate that a client gets which asks for `name`, or for none, at `address`."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk, server = client.wrap_bio(back, there, server_hostname=name or None), tls.at(address).wrap_bio(there, back)
    for _ in range(5):
        for side in (talk, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    found = talk.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found)


def is_own(certificate: x509.Certificate) -> bool:
    return certificate.issuer.rfc4514_string() == "CN=treeplane-ca"


@pytest.mark.parametrize(
    ("name", "address", "own"),
    [
        ("api.example.org", "127.0.0.1", False),
        ("API.example.org", "192.0.2.1", False),
        ("localhost", "192.0.2.1", True),
        ("fleet.internal", "192.0.2.1", True),
        (OWN_NAME, "203.0.113.9", True),
        ("elsewhere.example.org", "127.0.0.1", False),
        ("", "127.0.0.1", True),
        ("", "::1", True),
        ("", "::ffff:10.0.0.1", True),
        ("", "203.0.113.9", False),
        ("", "192.0.2.1", False),
    ],
)
def test_each_is_shown_what_names_whom_he_asks_for(keys: Keys, files: Pair, name: str, address: str, own: bool) -> None:
    """And where none does, the one that was given."""
    assert is_own(shown(ServerTLS(keys, given=files), name, address)) is own


def test_a_certificate_for_this_machine_is_shown_here_but_not_to_the_servers_own_processes(
    keys: Keys, tmp_path: Path
) -> None:
    files = Pair(*CA.issue("localhost", "127.0.0.1", "*.internal").put(tmp_path / "given"))
    tls = ServerTLS(keys, given=files)
    assert not is_own(shown(tls, "localhost"))
    assert not is_own(shown(tls, "", "127.0.0.1"))
    assert is_own(shown(tls, OWN_NAME, "127.0.0.1"))


def test_the_chain_is_sent(keys: Keys, files: Pair) -> None:
    """Whoever knows the root alone can check it."""
    client = ssl.create_default_context(cadata=pem(CA.certificate).decode())
    tls = ServerTLS(keys, given=files)
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    talk = client.wrap_bio(back, there, server_hostname="api.example.org")
    server = tls.at("192.0.2.1").wrap_bio(there, back)
    for _ in range(5):
        for side in (talk, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert talk.getpeercert()


def test_another_pair_counts_at_the_next_connection_and_one_that_does_not_fit_never(
    keys: Keys, files: Pair, tmp_path: Path
) -> None:
    tls = ServerTLS(keys, given=files)
    first = shown(tls).serial_number
    files.key.write_bytes(b"half")
    assert shown(tls).serial_number == first
    BETWEEN.issue("api.example.org").put(files.key.parent)
    second = shown(tls).serial_number
    assert second != first
    assert is_own(shown(tls, "", "127.0.0.1"))
    pki.ensure_keys(keys.directory, ["other.internal"])  # the own one changes, and the given one stays
    assert shown(tls).serial_number == second
    assert is_own(shown(tls, "other.internal"))


def test_a_process_that_starts_while_they_do_not_fit_serves_with_its_own(keys: Keys, files: Pair) -> None:
    whole = files.key.read_bytes()
    files.key.write_bytes(b"half")
    tls = ServerTLS(keys, given=files)
    assert is_own(shown(tls, "api.example.org"))
    files.key.write_bytes(whole)
    assert not is_own(shown(tls, "api.example.org"))


def test_without_one_nothing_is_looked_at(keys: Keys) -> None:
    tls = ServerTLS(keys)
    assert tls.at("192.0.2.1") is tls
    assert is_own(shown(tls, "api.example.org"))
