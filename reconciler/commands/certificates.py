"""The server's certificates while it runs: renewed before they end, and when the server is reached by other names.

Called by `up`, which alone issues certificates; API workers and the reconciler read them again when their files have
changed. The administrators' kubeconfig holds their certificates, so it is written anew with them. The CA stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from apiserver.auth.files import write_private
from apiserver.auth.kubeconfig import write_admin_kubeconfig
from apiserver.auth.pki import Keys, KeysError, ensure_keys, renew

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
        certificate with the CA behind it, this and `.key` its key. Raises KeysError."""
        self._directory = directory
        self._names = names
        self._every = every
        self._looked = time.monotonic()
        self._told = ""
        self._written = b""
        self._copies = copies
        self.keys: Keys = ensure_keys(directory, names())
        self._copy()

    def write_kubeconfig(self, path: Path, url: str) -> None:
        """The administrators'. Raises ValueError where a file is there that is no kubeconfig."""
        certificates = self._administrators()
        write_admin_kubeconfig(path, url, self.keys)
        self._written = certificates

    def look(self, kubeconfig: Path, url: str) -> list[str]:
        """Renew what is due, and say what was done or cannot be."""
        if time.monotonic() - self._looked < self._every:
            return []
        self._looked = time.monotonic()
        try:
            issued = set(renew(self._directory, self._names()))
            if self._written not in (b"", self._administrators()):
                self.write_kubeconfig(kubeconfig, url)
                issued.add("admin")
            if "server" in issued:
                self._copy()
        except (KeysError, OSError, ValueError) as error:
            told, self._told = self._told, f"certificates cannot be renewed: {error}"
            return [self._told] if told != self._told else []
        self._told = ""
        return [text.format(kubeconfig=kubeconfig) for name, text in _SHOWN.items() if name in issued and text]

    def _copy(self) -> None:
        if self._copies is None:
            return
        pair = self.keys.server
        write_private(self._copies.with_suffix(".crt"), pair.certificate.read_bytes() + self.keys.ca.read_bytes())
        write_private(self._copies.with_suffix(".key"), pair.key.read_bytes())

    def _administrators(self) -> bytes:
        """The certificates that the kubeconfig holds."""
        return b"".join(pair.certificate.read_bytes() for pair in (self.keys.admin, self.keys.shard_admin))
