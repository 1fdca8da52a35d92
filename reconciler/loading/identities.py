"""Identity keys of APIExports: random, kept in `keys/identities/`, never in git.

Whoever can compute an export's identity hash shares its storage, so it does not follow from public data. The hash is on
the status branch and outlives the key.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from pathlib import Path


class Identities:
    """`directory` is `keys/identities`; made when the first key is."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def hash_of(self, cluster: str, export: str, recorded: str = "") -> str:
        """The identity hash (SHA-256, hex) of an export of a logical cluster. `recorded` (from the status branch) wins
        over a new key."""
        file = self._directory / f"{cluster}:{export}"
        try:
            key = file.read_text().strip()
        except FileNotFoundError:
            if recorded:
                return recorded
            key = self._make(file)
        found = hashlib.sha256(key.encode()).hexdigest()
        return recorded or found

    def _make(self, file: Path) -> str:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = secrets.token_hex(32)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as out:
            out.write(key + "\n")
            out.flush()
            os.fsync(out.fileno())
        return key
