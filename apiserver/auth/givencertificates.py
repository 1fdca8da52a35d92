"""Certificates that a server was given, beside those that it makes itself: which files, and when each of them ends.

Asked for by `complaints`, which tells of them before they end, and by `scrape` for /metrics. Whether a file fits is
looked at where it is used; one that does not read is left out here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from apiserver.auth import pki
from apiserver.auth.pki import CertificateLife
from apiserver.settings import ServerSettings


class GivenLife(NamedTuple):
    """`option`: by which it was given."""

    option: str
    file: Path
    life: CertificateLife


@dataclass(frozen=True, slots=True)
class GivenCertificates:
    """Files that a server was given, None for none: what it serves with, of the CAs whose clients are let in, and what
    clients check by who answers at its external URL."""

    serving: Path | None = None
    clients: Path | None = None
    external: Path | None = None

    @staticmethod
    def of(settings: ServerSettings) -> GivenCertificates:
        return GivenCertificates(settings.tls_cert_file, settings.client_ca_file, settings.external_authority)

    def lives(self) -> Iterator[GivenLife]:
        """Of the server's own the first in the file counts, of CAs of clients the one that ends first; of what vouches
        for the external URL the last, since one that is good is enough there."""
        for option, file, which in (
            ("--tls-cert-file", self.serving, _first),
            ("--client-ca-file", self.clients, _soonest),
            ("--external-ca-file", self.external, _latest),
        ):
            if file is not None:
                with suppress(OSError, ValueError):
                    yield GivenLife(option, file, which(pki.lives(file.read_bytes())))


def _first(found: list[CertificateLife]) -> CertificateLife:
    return found[0]


def _soonest(found: list[CertificateLife]) -> CertificateLife:
    return min(found, key=_end)


def _latest(found: list[CertificateLife]) -> CertificateLife:
    return max(found, key=_end)


def _end(life: CertificateLife) -> float:
    return life.ends
