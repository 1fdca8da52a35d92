"""The server's certificates while it runs: renewed before they end, and when the server is reached by other names.

Called by `up`, which alone issues certificates; API workers and the reconciler read them again when their files have
changed. The administrators' kubeconfig holds their certificates, so it is written anew with them, and with what vouches
for a certificate that the server was given besides (shown.py). The CA stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from apiserver.auth.files import write_private
from apiserver.auth.kubeconfig import write_admin_kubeconfig
from apiserver.auth.pki import Keys, KeysError, ensure_keys, renew

if TYPE_CHECKING:
    from reconciler.commands.externalca import ExternalAuthority
    from reconciler.commands.shown import ShownCertificate

_SHOWN = {
    "server": "the server's certificate was issued anew",
    "admin": "the administrators' certificates were issued anew: {kubeconfig} has the new ones",
    "shard-admin": "",
    "syncer": "",
}


class Certificates:
    """`names` is asked at each look for what the server's certificate has to name (addresses.py)."""

    def __init__(
        self, directory: Path, names: Callable[[], Iterable[str]], every: float, *, copies: Path | None = None
    ) -> None:
        """Makes what is missing. `every`: seconds between two looks. `copies`: this and `.crt` is the server's
        certificate with the CA behind it, this and `.key` its key. Raises KeysError.

        `shown`: the certificate that the server was given, where it was. `external`: what vouches for whoever answers
        at the URL for clients, where that is not the server."""
        self.external: ExternalAuthority | None = None
        self.shown: ShownCertificate | None = None
        self._directory = directory
        self._names = names
        self._every = every
        self._looked = time.monotonic()
        self._told = ""
        self._written = self._vouches = b""
        self._copies = copies
        self.keys: Keys = ensure_keys(directory, names())
        self._copy()

    def write_kubeconfig(self, path: Path, url: str) -> list[str]:
        """The administrators'; and what there is to say of it. Raises ValueError where a file is there that is no
        kubeconfig."""
        certificates, (ca, note) = self._administrators(), self._trusted(url)
        if self.shown is not None and self.external is None and ca:
            write_private(self.shown.file, ca)
        write_admin_kubeconfig(path, url, self.keys, ca)
        self._written, self._vouches = certificates, ca
        return [note] if note else []

    def authority(self, url: str) -> Path | None:
        """The file with what vouches for the server at `url`; None: the system does. Once the kubeconfig is written."""
        if self.external is not None:
            return self.external.file
        if self.shown is None:
            return self.keys.ca
        return self.shown.file if self._trusted(url)[0] else None

    def look(self, kubeconfig: Path, url: str) -> list[str]:
        """Renew what is due, and say what was done or cannot be."""
        another, said = (False, []) if self.shown is None else self.shown.look()
        if not another and time.monotonic() - self._looked < self._every:
            return said
        self._looked = time.monotonic()
        try:
            issued = set(renew(self._directory, self._names()))
            if self._written and (another or self._is_another() or self._written != self._administrators()):
                if self._written != self._administrators():
                    issued.add("admin")
                said += self.write_kubeconfig(kubeconfig, url)
            if "server" in issued:
                self._copy()
        except (KeysError, OSError, ValueError) as error:
            told, self._told = self._told, f"certificates cannot be renewed: {error}"
            return [*said, self._told] if told != self._told else said
        self._told = ""
        return [
            *said,
            *(text.format(kubeconfig=kubeconfig) for name, text in _SHOWN.items() if name in issued and text),
        ]

    def _is_another(self) -> bool:
        """Whether another authority vouches for whoever answers there."""
        return self.external is not None and self.external.trusted() != self._vouches

    def _trusted(self, url: str) -> tuple[bytes, str]:
        if self.external is not None:
            return self.external.trusted(), ""
        if self.shown is None:
            return self.keys.ca.read_bytes(), ""
        return self.shown.trusted(urlsplit(url).hostname or "")

    def _copy(self) -> None:
        if self._copies is None:
            return
        pair = self.keys.server
        write_private(self._copies.with_suffix(".crt"), pair.certificate.read_bytes() + self.keys.ca.read_bytes())
        write_private(self._copies.with_suffix(".key"), pair.key.read_bytes())

    def _administrators(self) -> bytes:
        """The certificates that the kubeconfig holds."""
        return b"".join(pair.certificate.read_bytes() for pair in (self.keys.admin, self.keys.shard_admin))
