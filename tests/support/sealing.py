"""Secrets as SOPS writes them, for tests: by the program where it can be had, by our own hand where it cannot."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyrage
import yaml

from reconciler.encryption.document import EncryptedFile
from reconciler.encryption.metadata import SelectedValues
from reconciler.encryption.sealing import new_key, new_metadata, sealed, stamped

DATA = SelectedValues("encrypted_regex", "^(data|stringData)$")


class AgeKey:
    """A key pair. `recipient` and `secret` as age-keygen writes them."""

    def __init__(self) -> None:
        pair = pyrage.x25519.Identity.generate()
        self.recipient, self.secret = str(pair.to_public()), str(pair)

    def write(self, file: Path) -> None:
        """As keys/age/<workspace path> is written."""
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_name(f".{file.name}")
        new.write_text(f"# created: now\n# public key: {self.recipient}\n{self.secret}\n")
        new.chmod(0o600)
        new.rename(file)


def secret(name: str = "app", **values: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def encrypted(
    value: Mapping[str, Any], *keys: AgeKey, selection: SelectedValues = DATA, mac_only_encrypted: bool = False
) -> str:
    """A file with one document."""
    key, now = new_key(), datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    recipients = [each.recipient for each in keys]
    metadata = new_metadata(key, recipients, selection, mac_only_encrypted=mac_only_encrypted)
    document = {**sealed(value, key, selection), "sops": {**metadata, "mac": "x", "lastmodified": now}}
    file = EncryptedFile(_dumped(document).encode(), json=False)
    return _dumped({**document, "sops": stamped(metadata, file, key, now)})


def _dumped(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(value, sort_keys=False, width=10**6)


def environment(key: AgeKey) -> dict[str, str]:
    """In which sops decrypts with a key."""
    return {**os.environ, "SOPS_AGE_KEY": key.secret}
