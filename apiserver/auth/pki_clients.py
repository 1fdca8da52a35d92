"""Whose client certificates count: those whose chain ends in the fleet's CA, or in one that it was told to take, are
good now, and are for clients.

Used by tls.py for each connection that shows one: the handshake proves that the client holds the certificate's key and
nothing else, so that whoever is refused is told with a 401 and not by the end of the connection. Part of the door to
`cryptography`, with pki.py. As in kube-apiserver, the common name is the user and the organizations are the groups
(https://kubernetes.io/docs/reference/access-authn-authz/authentication/#x509-client-certificates).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from cryptography.x509.verification import (
    Criticality,
    ExtensionPolicy,
    Policy,
    PolicyBuilder,
    Store,
    VerificationError,
)

from apiserver.auth.files import Stamp, stamp
from apiserver.auth.peer import Peer

log = logging.getLogger(__name__)

_USES = {ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE}


_LINKS = 3
"""Certificates between a client's and the CA. All ways from one to the other are tried; the library bounds that too."""

_DIGEST = SHA256()
_REMEMBERED = 512
"""Clients whose certificates were judged: only good ones, so that who has none crowds nobody out. Who is crowded out is
judged again, which is all that somebody with a good one and many others beside it can do."""


class ClientCertificates:
    """Judges certificates by files with CAs'; one that was renewed counts from the next connection on."""

    def __init__(self, *authorities: Path) -> None:
        """Raises OSError, and ValueError for a file that holds no certificate."""
        self._paths = authorities
        self._stamps: tuple[Stamp | None, ...] = ()
        self._good: dict[tuple[bytes, ...], Peer] = {}
        """Who showed these certificates, by the authorities as they were read last: a chain that was good is so until
        it ends, and who asks with kubectl comes with each command anew."""
        self._store = self._read()

    def peer(self, leaf: x509.Certificate, others: Sequence[x509.Certificate]) -> Peer:
        """`others`: what the client sent besides, to build the chain from. Raises nothing: what cannot be read does not
        count."""
        self._refresh()
        if len(others) > _LINKS:
            return Peer(refused=f"more than {_LINKS} certificates come with it")
        now = datetime.now(UTC)
        shown = tuple(each.fingerprint(_DIGEST) for each in (leaf, *others))
        known = self._good.get(shown)
        if known is not None and known.counts(now.timestamp()):
            return known
        found = self._judged(leaf, others, now)
        if not found.refused:
            if len(self._good) >= _REMEMBERED:
                self._good.clear()
            self._good[shown] = found
        return found

    def _judged(self, leaf: x509.Certificate, others: Sequence[x509.Certificate], now: datetime) -> Peer:
        try:
            builder = PolicyBuilder().store(self._store).time(now).max_chain_depth(_LINKS)
            builder = builder.extension_policies(ca_policy=_authorities(), ee_policy=_clients())
            chain = builder.build_client_verifier().verify(leaf, list(others)).chain
            names = [_texts(leaf, oid) for oid in (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)]
        except VerificationError as error:
            return Peer(refused=str(error).splitlines()[0])
        except (ValueError, TypeError) as error:
            return Peer(refused=f"it cannot be read: {error}")
        begins = max(each.not_valid_before_utc for each in chain).timestamp()
        ends = min(each.not_valid_after_utc for each in chain).timestamp()
        # Of several common names Go takes the last.
        return Peer(names[0][-1] if names[0] else "", names[1], begins, ends)

    def _refresh(self) -> None:
        if tuple(map(stamp, self._paths)) == self._stamps:
            return
        try:
            self._store = self._read()
        except (OSError, ValueError) as error:
            told = ", ".join(map(str, self._paths))
            log.error("%s: not read again, what stood there counts on: %s", told, error)

    def _read(self) -> Store:
        self._stamps = tuple(map(stamp, self._paths))
        self._good.clear()
        return Store([each for path in self._paths for each in authorities_in(path)])


def authorities_in(file: Path) -> list[x509.Certificate]:
    """Raises OSError, and ValueError with the file for one that holds no certificate, or something else besides."""
    try:
        return x509.load_pem_x509_certificates(file.read_bytes())
    except ValueError as error:
        raise ValueError(f"{file}: no certificates in PEM: {error}") from error


@lru_cache(1)
def _clients() -> ExtensionPolicy:
    """What a client's certificate must not say. Without key usages it is good for all, as in Go."""
    policy = ExtensionPolicy.permit_all()
    policy = policy.may_be_present(x509.BasicConstraints, Criticality.AGNOSTIC, _no_authority)
    policy = policy.may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _signs)
    return policy.may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _for_clients)


@lru_cache(1)
def _authorities() -> ExtensionPolicy:
    """What the certificates above it have to say. An authority for servers alone vouches for no client."""
    policy = ExtensionPolicy.permit_all()
    policy = policy.require_present(x509.BasicConstraints, Criticality.AGNOSTIC, _authority)
    policy = policy.may_be_present(x509.KeyUsage, Criticality.AGNOSTIC, _signs_certificates)
    return policy.may_be_present(x509.ExtendedKeyUsage, Criticality.AGNOSTIC, _for_clients)


def _authority(_policy: Policy, _certificate: x509.Certificate, found: x509.BasicConstraints) -> None:
    if not found.ca:
        raise ValueError("what signed it is no authority")


def _no_authority(_policy: Policy, _certificate: x509.Certificate, found: x509.BasicConstraints | None) -> None:
    if found is not None and found.ca:
        raise ValueError("it is an authority's")


def _signs(_policy: Policy, _certificate: x509.Certificate, found: x509.KeyUsage | None) -> None:
    if found is not None and not found.digital_signature:
        raise ValueError("it is not for signatures")


def _signs_certificates(_policy: Policy, _certificate: x509.Certificate, found: x509.KeyUsage | None) -> None:
    if found is not None and not found.key_cert_sign:
        raise ValueError("what signed it is not for signing certificates")


def _for_clients(_policy: Policy, _certificate: x509.Certificate, found: x509.ExtendedKeyUsage | None) -> None:
    if found is not None and _USES.isdisjoint(found):
        raise ValueError("it is not for clients")


def _texts(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> tuple[str, ...]:
    values = [each.value for each in certificate.subject.get_attributes_for_oid(oid)]
    if not all(isinstance(value, str) for value in values):
        raise ValueError("a name is no text")
    return tuple(str(value) for value in values)
