"""The certificates of one fleet (a CA, the server's, clients' of two administrators and the syncer), its signatures.

Only `up` issues: `ensure_keys` before the first worker starts, `renew` now and then while it runs. What is there and
still good is kept, so that a restored backup of the directory keeps every issued kubeconfig valid. `TokenSigner` is
used by jwt.py. With pki_clients.py the door to `cryptography`; which file holds what is keys.py's.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.auth.files import locked, private_directory, write_private
from apiserver.auth.keys import OWN_NAME, Keys, KeysError, Pair, allow_new, made_new
from apiserver.auth.user import KCP_ADMIN, MASTERS, SYNCERS

CA_LIFETIME = timedelta(days=3650)
LEAF_LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=30)
ADMIN = "kcp-admin"
"""Who administers workspaces, as kcp calls them: in kcp's group, by RBAC."""
SHARD_ADMIN = "shard-admin"
"""Who administers the server: system:masters, from whom nothing is hidden."""
SYNCER = "system:treeplane:syncer"
_BACKDATE = timedelta(minutes=5)
_HALF = 32
"""Bytes of each of the two numbers of a P-256 signature, and of each coordinate of a point."""

__all__ = [
    "IssuedClient",
    "Keys",
    "KeysError",
    "Pair",
    "TokenSigner",
    "ensure_keys",
    "issue_client",
    "issue_unkept",
    "renew",
]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a leaf certificate has to say."""

    name: str
    common_name: str
    organizations: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()

    @property
    def usage(self) -> x509.ObjectIdentifier:
        return ExtendedKeyUsageOID.SERVER_AUTH if self.hosts else ExtendedKeyUsageOID.CLIENT_AUTH

    @property
    def subject(self) -> x509.Name:
        found = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, o) for o in self.organizations]
        return x509.Name([*found, x509.NameAttribute(NameOID.COMMON_NAME, self.common_name)])


def ensure_keys(directory: Path, hosts: Iterable[str] = ()) -> Keys:
    """Make what may be made (see keys), renew what is near its end, keep the rest.

    `hosts`: names and addresses under which the server is reached, besides 127.0.0.1, ::1, localhost and the machine's
    own name. Raises KeysError where the directory lacks what the rest rests on, or holds a CA whose halves do not fit.
    """
    renew(directory, hosts)
    return Keys(directory)


def renew(directory: Path, hosts: Iterable[str] = ()) -> frozenset[str]:
    """As ensure_keys; which of `server`, `admin`, `shard-admin` and `syncer` were issued anew. The server's is whenever
    it names other `hosts` than these."""
    private_directory(directory)
    keys, issued = Keys(directory), set()
    with locked(directory):
        keys.found()
        authority = _authority(keys.pair("ca"))
        for wanted in (
            _Wanted("server", "treeplane-server", hosts=_server_hosts(hosts)),
            _Wanted("admin", ADMIN, (KCP_ADMIN,)),
            _Wanted("shard-admin", SHARD_ADMIN, (MASTERS,)),
            _Wanted("syncer", SYNCER, (SYNCERS,)),
        ):
            if not _good(authority, keys.pair(wanted.name), wanted):
                _issue(authority, keys.pair(wanted.name), wanted)
                issued.add(wanted.name)
        if not keys.service_accounts.exists():
            _new_key(keys.service_accounts)
        made_new(keys.service_accounts)
    return frozenset(issued)


class TokenSigner:
    """Signs with ECDSA over P-256 and SHA-256 (ES256), as JOSE writes it: two numbers of 32 bytes."""

    def __init__(self, keys: Keys) -> None:
        """Raises KeysError where a key cannot be read, OSError where there is none."""
        self._key = _read_key(keys.service_accounts)
        public = [self._key.public_key(), *(_read_key(p).public_key() for p in keys.retired_service_accounts)]
        self._public = {_key_id(key): key for key in public}
        self.key_id = next(iter(self._public))

    def sign(self, data: bytes) -> bytes:
        r, s = decode_dss_signature(self._key.sign(data, ec.ECDSA(hashes.SHA256())))
        return r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")

    def verify(self, key_id: str, data: bytes, signature: bytes) -> bool:
        """Whether `signature` is one of `data` by the key of that id. Takes about 80 µs."""
        key = self._public.get(key_id)
        if key is None or len(signature) != 2 * _HALF:
            return False
        r, s = int.from_bytes(signature[:_HALF], "big"), int.from_bytes(signature[_HALF:], "big")
        try:
            key.verify(encode_dss_signature(r, s), data, ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        return True

    def public_keys(self) -> list[dict[str, str]]:
        """As JSON Web Keys, the signing one first."""
        return [_as_jwk(key_id, key) for key_id, key in self._public.items()]


def _key_id(key: ec.EllipticCurvePublicKey) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return _base64url(hashlib.sha256(key.public_bytes(serialization.Encoding.DER, form)).digest())


def _as_jwk(key_id: str, key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    at = key.public_numbers()
    x, y = (_base64url(number.to_bytes(_HALF, "big")) for number in (at.x, at.y))
    return {"use": "sig", "kty": "EC", "kid": key_id, "crv": "P-256", "alg": "ES256", "x": x, "y": y}


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def issue_client(directory: Path, name: str, common_name: str, organizations: Iterable[str] = ()) -> Pair:
    """A client certificate of the fleet's CA for one more user, as `<name>.crt` and `<name>.key`; kept while good."""
    keys = Keys(directory)
    wanted = _Wanted(name, common_name, tuple(organizations))
    with locked(directory):
        keys.found()
        authority = _authority(keys.pair("ca"))
        if not _good(authority, keys.pair(name), wanted):
            _issue(authority, keys.pair(name), wanted)
    return keys.pair(name)


@dataclass(frozen=True, slots=True)
class IssuedClient:
    """A client's certificate and its key, in PEM, which stand in no file; `ends`: when it does."""

    certificate: bytes
    key: bytes = field(repr=False)
    ends: datetime


def issue_unkept(directory: Path, common_name: str, organizations: Iterable[str], lifetime: timedelta) -> IssuedClient:
    """A client certificate of the fleet's CA that nothing is kept of. It ends with the CA at the latest. Nothing is
    made in `directory`: raises KeysError where that has no CA, and ValueError for names that no certificate can say."""
    pair = Keys(directory).pair("ca")
    if not (pair.certificate.exists() and pair.key.exists()):
        raise KeysError(f"{directory} has no CA: {pair.certificate.name} and {pair.key.name} are not both there")
    authority, key = _Authority(_read_certificate(pair.certificate), _read_key(pair.key)), _fresh_key()
    left = authority.certificate.not_valid_after_utc - datetime.now(UTC)
    if left <= timedelta(0):
        raise KeysError(f"{pair.certificate}: the CA's certificate has ended: start the server, which renews it")
    wanted = _Wanted("", common_name, tuple(organizations))
    certificate = _leaf(authority, key, wanted, min(lifetime, left) + _BACKDATE)
    encoding = serialization.Encoding.PEM
    return IssuedClient(certificate.public_bytes(encoding), _private(key), certificate.not_valid_after_utc)


@dataclass(frozen=True, slots=True)
class SigningRequest:
    """Of a PKCS #10 request, what its signer is asked to vouch for."""

    common_names: tuple[str, ...]
    organizations: tuple[str, ...]


def read_request(pem: bytes) -> SigningRequest:
    """Raises ValueError for what is no request, or not signed by the key that it names."""
    try:
        request = x509.load_pem_x509_csr(pem)
        signed = request.is_signature_valid
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    if not signed:
        raise ValueError("the signature is not of the request's own key")
    subject = request.subject
    names, organizations = map(subject.get_attributes_for_oid, (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME))
    return SigningRequest(tuple(str(n.value) for n in names), tuple(str(o.value) for o in organizations))


@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def _server_hosts(hosts: Iterable[str]) -> tuple[str, ...]:
    found = dict.fromkeys(("localhost", "127.0.0.1", "::1", OWN_NAME))
    machine = socket.gethostname()
    if machine.isascii() and 0 < len(machine) <= 253:
        found[machine] = None
    # The unspecified addresses mean "every interface"; nobody can connect to them by that name.
    found.update(dict.fromkeys(h for h in hosts if h and h not in ("0.0.0.0", "::")))  # noqa: S104
    return tuple(found)


def _authority(pair: Pair) -> _Authority:
    """That which is missing may be made: see Keys.found."""
    if not pair.key.exists():
        allow_new(pair.certificate)
        pair.certificate.unlink(missing_ok=True)  # of a key that is lost
        _new_key(pair.key)
    made_new(pair.key)
    key = _read_key(pair.key)
    if pair.certificate.exists():
        certificate = _read_certificate(pair.certificate)
        if certificate.public_key() != key.public_key():
            raise KeysError(f"{pair.certificate}: does not belong to {pair.key}: restore both from the same backup")
        if not _near_end(certificate):
            made_new(pair.certificate)
            return _Authority(certificate, key)
    # A CA renewed with its key and name still vouches for everything that it ever issued.
    certificate = _sign_authority(key)
    write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))
    made_new(pair.certificate)
    return _Authority(certificate, key)


def _sign_authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "treeplane-ca")])
    builder = _builder(name, name, key.public_key(), CA_LIFETIME)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(authority=True), critical=True)
    return builder.sign(key, hashes.SHA256())


def _issue(authority: _Authority, pair: Pair, wanted: _Wanted) -> None:
    certificate = _leaf(authority, _new_key(pair.key), wanted, LEAF_LIFETIME)
    write_private(pair.certificate, certificate.public_bytes(serialization.Encoding.PEM))


def _leaf(
    authority: _Authority, key: ec.EllipticCurvePrivateKey, wanted: _Wanted, lifetime: timedelta
) -> x509.Certificate:
    issuer = authority.certificate.subject
    builder = _builder(wanted.subject, issuer, key.public_key(), lifetime)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_key_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([wanted.usage]), critical=False)
    builder = builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False
    )
    if wanted.hosts:
        names = x509.SubjectAlternativeName([_general_name(host) for host in wanted.hosts])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(authority.key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, lifetime: timedelta
) -> x509.CertificateBuilder:
    begin = datetime.now(UTC) - _BACKDATE
    builder = x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number(), begin, begin + lifetime)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _good(authority: _Authority, pair: Pair, wanted: _Wanted) -> bool:
    """Whether the pair on disk is whole, of this CA, not near its end, and says what is wanted."""
    try:
        certificate, key = _read_certificate(pair.certificate), _read_key(pair.key)
        certificate.verify_directly_issued_by(authority.certificate)
    except (FileNotFoundError, KeysError, InvalidSignature, ValueError, TypeError):
        return False
    if certificate.public_key() != key.public_key() or certificate.subject != wanted.subject or _near_end(certificate):
        return False
    if not wanted.hosts:
        return True
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(names) == {_general_name(host) for host in wanted.hosts}


def ends(pem: bytes) -> float:
    """When the first certificate in a file's content ends, in seconds since 1970. Raises ValueError where there is
    none."""
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc.timestamp()


class CertificateLife(NamedTuple):
    """In seconds since 1970."""

    begins: float
    ends: float


def lives(pem: bytes) -> list[CertificateLife]:
    """Of all certificates in a file's content. Raises ValueError where there is none."""
    return [
        CertificateLife(each.not_valid_before_utc.timestamp(), each.not_valid_after_utc.timestamp())
        for each in x509.load_pem_x509_certificates(pem)
    ]


def _near_end(certificate: x509.Certificate) -> bool:
    return certificate.not_valid_after_utc - datetime.now(UTC) < RENEW_BEFORE


def _new_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = _fresh_key()
    write_private(path, _private(key))
    return key


def _fresh_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), None)
    except ValueError as error:
        raise KeysError(f"{path}: not a PEM private key: restore it from the backup or remove it") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise KeysError(f"{path}: not an ECDSA key")
    return key


def _read_certificate(path: Path) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except ValueError as error:
        raise KeysError(f"{path}: not a PEM certificate: restore it from the backup or remove it") from error
