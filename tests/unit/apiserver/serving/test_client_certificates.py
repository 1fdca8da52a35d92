"""Client certificates as kube-apiserver takes them: whoever shows a wrong one is told 401, and is nobody."""

import http.client
import json
import ssl
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.auth.keys import Keys
from apiserver.auth.pki import ensure_keys, issue_client
from apiserver.auth.pki_clients import ClientCertificates

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
MASTERS = [("O", "system:masters"), ("CN", "mallory")]
PATH = "/clusters/root/api/v1/namespaces"


class Issued(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def authority_of(keys: Keys) -> Issued:
    key = serialization.load_pem_private_key((keys.directory / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return Issued(x509.load_pem_x509_certificate(keys.ca.read_bytes()), key)


def issue(
    by: Issued | None,
    names: Any = MASTERS,
    *,
    begins: datetime = NOW - DAY,
    ends: datetime = NOW + DAY,
    uses: Any = (ExtendedKeyUsageOID.CLIENT_AUTH,),
    authority: bool = False,
) -> Issued:
    """`by` None: self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    oids = {"O": NameOID.ORGANIZATION_NAME, "CN": NameOID.COMMON_NAME}
    subject = x509.Name([x509.NameAttribute(oids[kind], text) for kind, text in names])
    issuer, signer = (by.certificate.subject, by.key) if by else (subject, key)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), begins, ends)
    builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    if uses:
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    return Issued(builder.sign(signer, hashes.SHA256()), key)


@pytest.fixture
def ask(running: Any, tmp_path: Path) -> Callable[..., tuple[int, Any]]:
    """`ask(leaf, *others, headers=…)`: status and decoded body of a request to the real Kubernetes API."""

    def request(leaf: Issued, *others: Issued, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        form, encoding = serialization.PrivateFormat.PKCS8, serialization.Encoding.PEM
        file = tmp_path / "client.pem"
        chain = b"".join(each.certificate.public_bytes(encoding) for each in (leaf, *others))
        file.write_bytes(chain + leaf.key.private_bytes(encoding, form, serialization.NoEncryption()))
        context = ssl.create_default_context(cafile=running.keys.ca)
        context.load_cert_chain(file)
        connection = http.client.HTTPSConnection("127.0.0.1", running.settings.port, context=context, timeout=30)
        try:
            connection.request("GET", "/metrics", headers=headers or {})
            answer = connection.getresponse()
            body = answer.read()
            return answer.status, json.loads(body) if body.startswith(b"{") else body
        finally:
            connection.close()

    return request


def test_one_of_ours_counts(running: Any, ask: Any) -> None:
    assert ask(issue(authority_of(running.keys)))[0] == 200
    # Without key usages it is good for all, as in kube-apiserver.
    assert ask(issue(authority_of(running.keys), uses=()))[0] == 200


def test_a_chain_counts_whose_end_is_ours(running: Any, ask: Any) -> None:
    between = issue(authority_of(running.keys), [("CN", "team")], uses=(), authority=True)
    assert ask(issue(between), between)[0] == 200
    assert ask(issue(between))[0] == 401  # the link is missing


WRONG: dict[str, Callable[[Issued, Path], tuple[Issued, ...]]] = {
    "expired": lambda ca, _: (issue(ca, begins=NOW - 2 * DAY, ends=NOW - DAY),),
    "not yet valid": lambda ca, _: (issue(ca, begins=NOW + DAY, ends=NOW + 2 * DAY),),
    "self-signed": lambda *_: (issue(None),),
    "self-signed, its authority's name": lambda ca, _: (issue(None, [("CN", "treeplane-ca")]),),
    "of another authority": lambda _, folder: (issue(authority_of(ensure_keys(folder / "other"))),),
    "of another authority, which it sends": lambda _, folder: (
        issue(authority_of(ensure_keys(folder / "other"))),
        authority_of(ensure_keys(folder / "other")),
    ),
    "a server's": lambda ca, _: (issue(ca, uses=(ExtendedKeyUsageOID.SERVER_AUTH,)),),
    "an authority's": lambda ca, _: (issue(ca, uses=(), authority=True),),
    "signed by a client's": lambda ca, _: (issue(client := issue(ca, [("CN", "bob")])), client),
    "signed by a client's without uses": lambda ca, _: (issue(client := issue(ca, [("CN", "bob")], uses=())), client),
    "of an expired link": lambda ca, _: (
        issue(link := issue(ca, [("CN", "t")], uses=(), authority=True, begins=NOW - 2 * DAY, ends=NOW - DAY)),
        link,
    ),
    "of a link for servers": lambda ca, _: (
        issue(link := issue(ca, [("CN", "t")], uses=(ExtendedKeyUsageOID.SERVER_AUTH,), authority=True)),
        link,
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_any_other_is_401_with_a_status(running: Any, ask: Any, tmp_path: Path, kind: str) -> None:
    shown = WRONG[kind](authority_of(running.keys), tmp_path)
    status, body = ask(*shown)
    assert status == 401
    assert (body["kind"], body["status"], body["code"]) == ("Status", "Failure", 401)
    # Who has a token besides is who the token says, and no more.
    status, body = ask(*shown, headers={"Authorization": "Bearer bobs-token"})
    assert status == 403
    assert 'User "bob"' in body["message"]


def test_clients_of_a_ca_that_is_told_count(tmp_path: Path) -> None:
    """Of that one and of ours; and it is read again."""
    ours, theirs, third = (ensure_keys(tmp_path / name) for name in ("ours", "theirs", "third"))
    told = tmp_path / "clients.crt"
    told.write_bytes(theirs.ca.read_bytes())
    clients = ClientCertificates(ours.ca, told)

    def user(keys: Keys) -> str:
        return clients.peer(issue(authority_of(keys)).certificate, ()).user

    assert [user(each) for each in (ours, theirs, third)] == ["mallory", "mallory", ""]
    told.write_bytes(theirs.ca.read_bytes() + third.ca.read_bytes())
    assert user(third) == "mallory"
    told.write_text("nothing of the kind")
    assert user(third) == "mallory", "what stood there counts on"
    with pytest.raises(ValueError, match=r"clients\.crt: no certificates in PEM"):
        ClientCertificates(ours.ca, told)


def test_a_good_certificate_is_judged_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until an authority's file changes, and no longer than it is good; one that is refused is judged each time."""
    ours, other = ensure_keys(tmp_path / "ours"), ensure_keys(tmp_path / "other")
    clients, judged = ClientCertificates(ours.ca), list[object]()
    judge = clients._judged
    monkeypatch.setattr(clients, "_judged", lambda leaf, *rest: (judged.append(leaf), judge(leaf, *rest))[1])
    leaf, stranger = (issue(authority_of(each)).certificate for each in (ours, other))
    for _ in range(2):
        assert clients.peer(leaf, ()).user == "mallory"
        assert clients.peer(stranger, ()).refused
        assert clients.peer(leaf, [stranger]).user == "mallory"
    assert len(judged) == 2 + 2
    ours.ca.write_bytes(other.ca.read_bytes())
    assert clients.peer(leaf, ()).refused, "its authority counts no more"
    assert clients.peer(stranger, ()).user == "mallory"
    with monkeypatch.context() as later:
        later.setattr("apiserver.auth.pki_clients.datetime", _Later)
        assert clients.peer(stranger, ()).refused, "it has ended"


class _Later(datetime):
    @classmethod
    def now(cls, tz: Any = None) -> datetime:
        return datetime(2300, 1, 1, tzinfo=tz)


def test_git_asks_for_a_password_when_the_certificate_is_wrong(running: Any, tmp_path: Path) -> None:
    other = issue_client(ensure_keys(tmp_path / "other").directory, "bob", "bob", ["system:masters"])
    shown = ("-c", f"http.sslCert={other.certificate}", "-c", f"http.sslKey={other.key}")
    done = running.git(tmp_path, *shown, "clone", running.repository, "x", user="")
    assert done.returncode != 0
    assert "could not read Username" in done.stderr


def test_nobody_uses_a_certificate_without_its_key(running: Any, ask: Any) -> None:
    admin = x509.load_pem_x509_certificate(running.keys.admin.certificate.read_bytes())
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(Issued(admin, ec.generate_private_key(ec.SECP256R1())))


def test_a_chain_with_many_ways_costs_no_time(running: Any, ask: Any) -> None:
    """All of one name and key: each could have signed each."""
    first = issue(None, [("CN", "team")], uses=(), authority=True)
    same = [issue(first, [("CN", "team")], uses=(), authority=True).certificate for _ in range(60)]
    twins = [Issued(resigned(each, first), first.key) for each in same]
    leaf = issue(first)
    for count in (3, 60):
        began = time.monotonic()
        assert ask(leaf, *twins[:count])[0] == 401
        assert time.monotonic() - began < 20


def resigned(old: x509.Certificate, by: Issued) -> x509.Certificate:
    """The same certificate for the key that signs it."""
    serial = x509.random_serial_number()
    begins, ends = old.not_valid_before_utc, old.not_valid_after_utc
    builder = x509.CertificateBuilder(old.issuer, old.subject, by.key.public_key(), serial, begins, ends)
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, extension.critical)
    return builder.sign(by.key, hashes.SHA256())
