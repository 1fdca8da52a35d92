"""TLS as an event loop uses it: whatever comes in whatever pieces, and a certificate that is renewed."""

import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st
from OpenSSL import SSL

from apiserver.auth import pki
from apiserver.auth.keys import Keys
from apiserver.openssl import ServerTLS
from apiserver.openssl_channel import Channel

VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


class Pair:
    """A client of Python's and a Channel, their bytes carried over in pieces of `sizes`."""

    def __init__(self, context: ServerTLS, client: ssl.SSLContext, sizes: Iterator[int]) -> None:
        self.to_server, self.to_client, self.incoming, self.outgoing = (ssl.MemoryBIO() for _ in range(4))
        self.client = client.wrap_bio(self.to_client, self.to_server, server_hostname="localhost")
        self.server: Channel = context.wrap_bio(self.incoming, self.outgoing, server_side=True, server_hostname=None)
        self.sizes = sizes
        self.got = b""

    def shake(self) -> None:
        done = [False, False]
        while not all(done):
            for number, side in enumerate((self.client, self.server)):
                if not done[number]:
                    try:
                        side.do_handshake()
                        done[number] = True
                    except ssl.SSLWantReadError:
                        pass
            self.carry(listens=done[1])

    def carry(self, *, listens: bool = True) -> None:
        """As an event loop: whatever comes is read as long as something is pending."""
        while self.to_server.pending:
            self.incoming.write(self.to_server.read(next(self.sizes)))
            if listens:
                self.listen()
            else:
                try:
                    self.server.do_handshake()
                    listens = True
                except ssl.SSLWantReadError:
                    pass
        if listens:
            self.listen()
        while self.outgoing.pending:
            self.to_client.write(self.outgoing.read(next(self.sizes)))

    def listen(self) -> None:
        while self.incoming.pending or self.server.pending():
            try:
                data = self.server.read(65536)
            except ssl.SSLWantReadError:
                return
            self.got += data
            if not data:
                return


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return pki.ensure_keys(tmp_path_factory.mktemp("keys"))


@given(st.data(), st.sampled_from(VERSIONS), st.booleans())
def test_nothing_is_lost_however_it_comes(
    keys: Keys, data: st.DataObject, version: ssl.TLSVersion, certified: bool
) -> None:
    client = ssl.create_default_context(cafile=keys.ca)
    client.maximum_version = version
    if certified:
        client.load_cert_chain(keys.admin.certificate, keys.admin.key)
    pieces = data.draw(st.lists(st.integers(1, 3000), min_size=1, max_size=5))
    sizes = (pieces[number % len(pieces)] for number in range(10**9))
    pair = Pair(ServerTLS(keys), client, sizes)
    early = data.draw(st.binary(max_size=100))
    pair.shake()
    shown = pair.server.shown()
    assert (shown is not None) is certified
    sent = [early, *data.draw(st.lists(st.binary(max_size=50_000), max_size=4))]
    for each in sent:
        if each:
            pair.client.write(each)
        pair.carry()
    assert pair.got == b"".join(sent)
    answer = data.draw(st.binary(max_size=300_000))
    rest, heard = memoryview(answer), b""
    while rest:
        rest = rest[pair.server.write(rest) :]
    pair.carry()
    while len(heard) < len(answer):
        heard += pair.client.read(65536)
    assert heard == answer
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.carry()
    assert pair.server.read() == b""
    pair.server.unwrap()


def test_no_session_is_resumed(keys: Keys) -> None:
    client = ssl.create_default_context(cafile=keys.ca)
    for version in VERSIONS:
        client.maximum_version = version
        pair = Pair(ServerTLS(keys), client, iter(lambda: 65536, 0))
        pair.shake()
        session = pair.client.session
        assert session is None or not session.has_ticket


def test_old_versions_are_refused(keys: Keys) -> None:
    client = ssl.create_default_context(cafile=keys.ca)
    client.set_ciphers("DEFAULT:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError):
        Pair(ServerTLS(keys), client, iter(lambda: 65536, 0)).shake()


def test_clients_are_told_whose_certificates_count(keys: Keys, tmp_path: Path) -> None:
    """Go shows none that the server does not ask for."""
    other = pki.ensure_keys(tmp_path / "other")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = ServerTLS(keys, other.ca).wrap_bio(incoming, outgoing)
    client = SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD), None)
    client.set_connect_state()
    with pytest.raises(SSL.WantReadError):
        client.do_handshake()
    incoming.write(client.bio_read(65536))
    with pytest.raises(ssl.SSLWantReadError):
        server.do_handshake()
    client.bio_write(outgoing.read())
    client.do_handshake()
    names = [x509.load_pem_x509_certificate(each.ca.read_bytes()).subject.public_bytes() for each in (keys, other)]
    assert [each.der() for each in client.get_client_ca_list()] == names


def serial(context: ServerTLS, keys: Keys) -> int:
    """Of the certificate that a new connection gets."""
    pair = Pair(context, ssl.create_default_context(cafile=keys.ca), iter(lambda: 65536, 0))
    pair.shake()
    found = pair.client.getpeercert(binary_form=True)
    assert found is not None
    return x509.load_der_x509_certificate(found).serial_number


def test_a_renewed_certificate_counts_at_the_next_connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pki, "LEAF_LIFETIME", timedelta(days=20))
    keys = pki.ensure_keys(tmp_path)
    monkeypatch.undo()
    context = ServerTLS(keys)
    first = serial(context, keys)
    assert serial(context, keys) == first
    pki.ensure_keys(tmp_path)
    assert serial(context, keys) != first


def test_half_a_pair_leaves_the_one_that_was_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    keys = pki.ensure_keys(tmp_path)
    context = ServerTLS(keys)
    first = serial(context, keys)
    whole = keys.server.key.read_bytes()
    keys.server.key.write_bytes(keys.admin.key.read_bytes())
    assert serial(context, keys) == first
    assert "the one it had counts on" in caplog.text
    assert "PRIVATE" not in caplog.text
    keys.server.key.write_bytes(whole)
    assert serial(context, keys) == first
