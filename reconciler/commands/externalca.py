"""What clients check the server by under its external URL, where somebody else answers there: a proxy that ends TLS.

Made by `up`, asked by certificates for what stands in kubeconfigs and in the line to clone with. It has nothing to do
with what the server itself serves with, nor with whom it lets in.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from apiserver.auth.pki import ends

SYSTEM = "system"
_CERTIFICATES = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


class ExternalAuthority(NamedTuple):
    """`file`: certificates in PEM; None: what each client's machine trusts."""

    file: Path | None

    @staticmethod
    def of(said: str) -> ExternalAuthority:
        return ExternalAuthority(None if said == SYSTEM else Path(said).absolute())

    def trusted(self) -> bytes:
        """The certificates, and nothing else of the file; b"" where the system knows. Raises OSError and ValueError.

        A kubeconfig is given away: a file with a key in it is refused, since it is not the one that was meant."""
        if self.file is None:
            return b""
        said = self.file.read_bytes()
        if b"PRIVATE KEY-----" in said:
            raise ValueError(f"{self.file}: has a private key, and what is in it is given to every client")
        found = _CERTIFICATES.findall(said)
        try:
            for each in found:
                ends(each)
        except ValueError as error:
            raise ValueError(f"{self.file}: no certificates in PEM: {error}") from error
        if not found:
            raise ValueError(f"{self.file}: no certificates in PEM")
        return b"".join(each + b"\n" for each in found)
