"""A certificate that the server was given (`--tls-cert-file`): read, judged, and read again when its files change.

Used by openssl.py in each API worker, and by `up`, which says what becomes of it. Part of the door to `cryptography`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Generic, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from apiserver.auth.files import stamp
from apiserver.auth.keys import Pair

_KEYS = (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey, ed25519.Ed25519PrivateKey, ed448.Ed448PrivateKey)
_LEAST_RSA = 2048
_USES = {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}
_EVERY = 1.0
"""Seconds after which the contents are compared where nothing else of the files has changed."""

_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class ServerNames:
    """What a certificate is for. Of DNS names the first label may be `*`."""

    dns: frozenset[str]
    addresses: frozenset[str]

    @staticmethod
    def of(certificate: x509.Certificate) -> ServerNames:
        try:
            found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return ServerNames(frozenset(), frozenset())
        dns = frozenset(name.lower().rstrip(".") for name in found.get_values_for_type(x509.DNSName))
        return ServerNames(dns, frozenset(map(str, found.get_values_for_type(x509.IPAddress))))

    def have(self, host: str) -> bool:
        """Whether clients that know the server as `host`, a name or an address, find it here."""
        try:
            address = ip_address(host.partition("%")[0])
        except ValueError:
            name = host.lower().rstrip(".")
            return name in self.dns or f"*.{name.partition('.')[2]}" in self.dns
        return str(getattr(address, "ipv4_mapped", None) or address) in self.addresses


@dataclass(frozen=True, slots=True)
class ServingPair:
    """`chain`: the certificate, and what stands behind it in its file. `content`: of both files."""

    chain: tuple[x509.Certificate, ...]
    key: Any = field(repr=False)
    content: tuple[bytes, bytes] = field(repr=False)
    names: ServerNames = field(repr=False)

    @property
    def ends(self) -> datetime:
        return self.chain[0].not_valid_after_utc

    @property
    def roots(self) -> tuple[x509.Certificate, ...]:
        """Those of the file that signed themselves."""
        return tuple(each for each in self.chain if is_root(each))


def is_root(certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(certificate)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def as_pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def read_pair(files: Pair, now: datetime) -> ServingPair:
    """Raises ValueError with the file for a pair that is of no use at this moment, OSError where one cannot be read."""
    content = files.certificate.read_bytes(), files.key.read_bytes()
    try:
        chain = x509.load_pem_x509_certificates(content[0])
        whole = len(chain) == content[0].count(b"-----BEGIN CERTIFICATE-----")
        names, public = ServerNames.of(chain[0]), chain[0].public_key()
    except (ValueError, UnsupportedAlgorithm):
        whole = False
    if not whole:
        raise ValueError(f"{files.certificate} is not certificates in PEM, or not whole")
    key = _key(files.key, content[1])
    if key.public_key() != public:
        raise ValueError(f"the key in {files.key} is not that of the first certificate in {files.certificate}")
    leaf = chain[0]
    if not leaf.not_valid_before_utc <= now < leaf.not_valid_after_utc:
        when = f"from {leaf.not_valid_before_utc:%Y-%m-%d %H:%M} to {leaf.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        raise ValueError(f"the certificate in {files.certificate} counts {when}, and it is {now:%Y-%m-%d %H:%M}")
    if not _is_for_servers(leaf):
        raise ValueError(f"the certificate in {files.certificate} is not for servers")
    return ServingPair(tuple(chain), key, content, names)


def _key(file: Path, content: bytes) -> Any:
    try:
        key = serialization.load_pem_private_key(content, None)
    except TypeError:
        raise ValueError(f"the key in {file} is encrypted: it has to stand there without a password") from None
    except (ValueError, UnsupportedAlgorithm):
        raise ValueError(f"{file} is not a private key in PEM, or not whole") from None
    if not isinstance(key, _KEYS):
        raise ValueError(f"the key in {file} is of a kind that TLS has no use for")
    if isinstance(key, rsa.RSAPrivateKey) and key.key_size < _LEAST_RSA:
        raise ValueError(f"the key in {file} has {key.key_size} bits: clients want {_LEAST_RSA} of RSA at least")
    return key


def _is_for_servers(certificate: x509.Certificate) -> bool:
    try:
        uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return not _USES.isdisjoint(uses)


class ServingFiles(Generic[_Made]):
    """The pair that counts, and what was made of it: of the files as they are, or as they were when they last fitted.

    `problem`: what is wrong with the files as they were found last, "" if nothing."""

    def __init__(self, files: Pair, make: Callable[[ServingPair], _Made]) -> None:
        """Has not looked yet. `make` raises ValueError for a pair that it cannot use."""
        self.files = files
        self.pair: ServingPair | None = None
        self.made: _Made | None = None
        self.problem = ""
        self._make = make
        self._stamps: Any = None
        self._looked = 0.0

    def look(self) -> bool:
        """Whether another pair counts from now on. What has changed is read at once; and, since a link may lead to
        another file that looks the same from outside, the contents are compared once a second if anybody asks."""
        now, stamps = time.monotonic(), (stamp(self.files.certificate), stamp(self.files.key))
        if stamps == self._stamps and now - self._looked < _EVERY:
            return False
        self._stamps, self._looked = stamps, now
        try:
            if self.pair is not None and self._unchanged(self.pair):
                self.problem = ""
                return False
            pair = read_pair(self.files, datetime.now(UTC))
            made = self._make(pair)
        except OSError as error:
            self.problem = f"{error.filename}: {error.strerror}"
            return False
        except ValueError as error:
            self.problem = str(error)
            return False
        self.pair, self.made, self.problem = pair, made, ""
        return True

    def again(self) -> None:
        """Make anew of the pair that counts. Raises ValueError."""
        if self.pair is not None:
            self.made = self._make(self.pair)

    def _unchanged(self, pair: ServingPair) -> bool:
        return (self.files.certificate.read_bytes(), self.files.key.read_bytes()) == pair.content
