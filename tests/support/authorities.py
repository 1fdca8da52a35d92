"""CAs of other people, and what they sign for servers: with chains, names and times as one likes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_BEGIN = timedelta(hours=1)
_LIFE = timedelta(days=30)


def pem(*certificates: x509.Certificate) -> bytes:
    return b"".join(each.public_bytes(serialization.Encoding.PEM) for each in certificates)


def key_pem(key: Any, password: bytes = b"") -> bytes:
    hidden: Any = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden))


@dataclass(frozen=True)
class Issued:
    """`chain`: the certificate and those above it, but for the root."""

    chain: tuple[x509.Certificate, ...]
    key: Any

    def put(self, folder: Path, *more: x509.Certificate) -> tuple[Path, Path]:
        """Into tls.crt, `more` behind the chain, and tls.key."""
        folder.mkdir(parents=True, exist_ok=True)
        files = folder / "tls.crt", folder / "tls.key"
        files[0].write_bytes(pem(*self.chain, *more))
        files[1].write_bytes(key_pem(self.key))
        return files


class Authority:
    """A CA; with `above`, one that another vouches for."""

    def __init__(self, name: str, above: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.above = above
        builder = _builder(self.name, (above or self).name, self.key.public_key(), -_BEGIN, _LIFE)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_usage(authority=True), critical=True)
        builder = _identified(builder, self.key, above or self)
        self.certificate = builder.sign((above or self).key, hashes.SHA256())

    def issue(
        self,
        *names: str,
        begins: timedelta = -_BEGIN,
        ends: timedelta = _LIFE,
        key: Any = None,
        use: x509.ObjectIdentifier = ExtendedKeyUsageOID.SERVER_AUTH,
    ) -> Issued:
        """For a server of these names and addresses."""
        key = key or ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        builder = _builder(subject, self.name, key.public_key(), begins, ends)
        builder = builder.add_extension(x509.SubjectAlternativeName([_general(name) for name in names]), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        builder = builder.add_extension(_usage(authority=False), critical=True)
        builder = _identified(builder, key, self)
        between = (self.certificate,) if self.above else ()
        return Issued((builder.sign(self.key, hashes.SHA256()), *between), key)


def _builder(
    subject: x509.Name, issuer: x509.Name, public: Any, begins: timedelta, ends: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(issuer, subject, public, x509.random_serial_number(), now + begins, now + ends)


def _identified(builder: x509.CertificateBuilder, key: Any, by: Authority) -> x509.CertificateBuilder:
    builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return builder.add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_public_key(by.key.public_key()), critical=False
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, authority: bool) -> x509.KeyUsage:
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
