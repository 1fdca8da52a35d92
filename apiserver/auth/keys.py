"""The keys directory by name: which file holds what, and which of them nobody can make a second time.

Written by pki.py; read by whoever needs a path. Files: `ca`, `server`, `admin`, `shard-admin`, `syncer`, each as
`.crt` (PEM, the leaf alone) and `.key` (PEM, PKCS#8), and `service-accounts.key`, which signs ServiceAccount tokens.

What all others rest on is made once, together. Where a part of it is there, the rest was there, too: it is never made
anew beside it, unless somebody says so, by an empty file of its name and `.new`. The first start says so itself, so one
that was cut off goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

OWN_NAME = "server.treeplane.internal"
"""Names the server in its own certificate, and in none that it is given: its processes ask for it."""


_NEW = ".new"
_COPIES = "a backup of the keys directory (treeplane backup, or a copy) has it"
_FOUNDATIONS = {
    "ca.crt": (
        f"{_COPIES}, and so has a kubeconfig that the server wrote (certificate-authority-data)",
        "with a new one what was issued stays good, and who compares its fingerprint trusts it no more",
    ),
    "ca.key": (
        f"{_COPIES}; nothing else has",
        "with a new one all kubeconfigs and clones of before are refused, and trust another server",
    ),
    "service-accounts.key": (
        f"{_COPIES}; nothing else has",
        "with a new one all tokens of ServiceAccounts of before are refused",
    ),
}
"""What the rest follows from: where a copy may be, and what is lost by a new one."""
_MADE = (*_FOUNDATIONS, "server.crt", "admin.crt", "shard-admin.crt", "syncer.crt")


class KeysError(Exception):
    """The keys directory cannot be used as it is; the message says what to do."""


def may_be_new(file: Path, copies: str, lost: str) -> None:
    """Raises KeysError where a file is missing beside what was made with it, and nobody said that it may be made anew.
    `copies`: where one may be; `lost`: what is lost by a new one."""
    allowed = _allowed(file)
    if not file.exists() and not allowed.exists():
        raise KeysError(
            f"{file} is missing, and what was made with it is there: it is not made anew beside that. Put it back: "
            f"{copies}. Or say that a new one may be made: {lost}:\n  touch {allowed}"
        )


def allow_new(file: Path) -> None:
    _allowed(file).touch(mode=0o600)


def made_new(file: Path) -> None:
    """It was, and may not be a second time."""
    _allowed(file).unlink(missing_ok=True)


def _allowed(file: Path) -> Path:
    return file.with_name(f"{file.name}{_NEW}")


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

    def found(self) -> None:
        """Before anything is made here: where nothing was yet, all may be made. Raises KeysError where only a part of
        what was made is there."""
        files = {name: self.directory / name for name in _FOUNDATIONS}
        if not any((self.directory / name).exists() for name in _MADE):
            for file in files.values():
                allow_new(file)
        for name, file in files.items():
            may_be_new(file, *_FOUNDATIONS[name])

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
