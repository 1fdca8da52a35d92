"""The keys directory by name: which file holds what.

Written by pki.py; read by whoever needs a path. Files: `ca`, `server`, `admin`, `shard-admin`, `syncer`, each as
`.crt` (PEM, the leaf alone) and `.key` (PEM, PKCS#8), and `service-accounts.key`, which signs ServiceAccount tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

OWN_NAME = "server.treeplane.internal"
"""Names the server in its own certificate, and in none that it is given: its processes ask for it."""


class KeysError(Exception):
    """The keys directory cannot be used as it is; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, by path."""

    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys directory once `ensure_keys` has run."""

    directory: Path

    def pair(self, name: str) -> Pair:
        return Pair(self.directory / f"{name}.crt", self.directory / f"{name}.key")

    @property
    def ca(self) -> Path:
        """The CA's certificate."""
        return self.directory / "ca.crt"

    @property
    def server(self) -> Pair:
        return self.pair("server")

    @property
    def admin(self) -> Pair:
        return self.pair("admin")

    @property
    def shard_admin(self) -> Pair:
        return self.pair("shard-admin")

    @property
    def syncer(self) -> Pair:
        return self.pair("syncer")

    @property
    def service_accounts(self) -> Path:
        """The key that signs ServiceAccount tokens."""
        return self.directory / "service-accounts.key"

    @property
    def retired_service_accounts(self) -> list[Path]:
        """Keys that sign no more while tokens of theirs are still good: `service-accounts-<anything>.key`."""
        return sorted(self.directory.glob("service-accounts-*.key"))
