"""The Secrets of keys/secrets/, and which workspaces' changed since they were last looked at.

Called by the reconciler's process. Reading the files is layout's; a file that cannot be used is left out and named.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from reconciler.layout.manifest import Manifest
from reconciler.layout.secrets import KeptSecrets, read_secrets

Signature = dict[str, tuple[int, int, int]]


class SecretFiles:
    """`keys_dir` holds `secrets/<workspace path>/*.yaml`. Cheap to ask: files are read again when one changed."""

    def __init__(self, keys_dir: Path) -> None:
        self._keys_dir = keys_dir
        self._signature: Signature = {}
        self._kept = KeptSecrets()
        self._found: dict[str, tuple[Manifest, ...]] = {}
        self.changed()

    def of(self, path: str) -> tuple[Manifest, ...]:
        """Of the workspace at `path`, with paths like `keys/secrets/root:infra/eu.yaml`."""
        return self._found.get(path, ())

    def changed(self) -> set[str]:
        """Look again; the workspaces whose Secrets are others than at the last look."""
        signature = self._look()
        if signature == self._signature:
            return set()
        self._signature = signature
        self._kept = read_secrets(self._keys_dir)
        before = self._found
        self._found = {
            path: tuple(replace(m, path=f"keys/{Path(m.path).relative_to(self._keys_dir)}") for m in found)
            for path, found in self._kept.by_workspace.items()
        }
        return {p for p in before.keys() | self._found.keys() if before.get(p) != self._found.get(p)}

    def errors(self) -> list[str]:
        """Files that are left out, and why."""
        return [str(e) for e in self._kept.errors]

    def _look(self) -> Signature:
        found: Signature = {}
        for file in (self._keys_dir / "secrets").rglob("*"):
            try:
                stat = file.stat()
            except OSError:
                continue
            found[str(file)] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return found
