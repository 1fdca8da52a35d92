"""From when to when a certificate counts, as it says itself. Nothing of it is checked."""

from __future__ import annotations

from typing import NamedTuple

from cryptography import x509


class Validity(NamedTuple):
    """Seconds since 1970."""

    begins: float
    ends: float


def validity(pem: bytes) -> Validity:
    """Of the first certificate of a PEM file. Raises ValueError."""
    found = x509.load_pem_x509_certificate(pem)
    return Validity(found.not_valid_before_utc.timestamp(), found.not_valid_after_utc.timestamp())
