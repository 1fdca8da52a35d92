"""The Secrets of keys/secrets/ and the keys of keys/age/, and which workspaces' changed since they were last looked at,
or last served.

Called by the reconciler's process. Reading the files is layout's; a file that cannot be used is left out and named.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import orjson

from apiserver.model.origins import Origin
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.protocol import DeleteRow, PutRow, RowOp, View
from reconciler.layout.manifest import Manifest
from reconciler.layout.secrets import DeclaredSecrets, read_secrets
from reconciler.loading.agekeyfiles import AgeKeyFiles, digest_of
from reconciler.loading.unsealing import WorkspaceKeys

Signature = dict[str, tuple[int, int, int]]


class SecretFiles:
    """`keys_dir` holds `secrets/<workspace path>/*.yaml` and `age/<workspace path>`. Cheap to ask: files are read again
    when one changed."""

    def __init__(self, keys_dir: Path) -> None:
        self._keys_dir = keys_dir
        self._signature: Signature = {}
        self._kept = DeclaredSecrets()
        self._found: dict[str, tuple[Manifest, ...]] = {}
        self._age = AgeKeyFiles(keys_dir)
        self.changed()

    def of(self, path: str) -> tuple[Manifest, ...]:
        """Of the workspace at `path`, with paths like `keys/secrets/root:infra/eu.yaml`."""
        return self._found.get(path, ())

    def keys_of(self, path: str) -> WorkspaceKeys:
        """What opens encrypted files of the workspace at `path`, and of no other."""
        return self._age.of(path)

    def not_served(self, store: View) -> set[str]:
        """The workspaces whose Secrets or keys are others than those that were served last: somebody changed them while
        no server ran. Where files of Secrets are gone nothing is."""
        found = self._age.not_read(store)
        for path, manifests in self._found.items():
            workspace = tree.workspace_at(store, path) if manifests else None
            if workspace is not None and store.get_row(Table.KEPT_SECRETS, workspace.cluster) != digest(manifests):
                found.add(path)
        return found

    def changed(self) -> set[str]:
        """Look again; the workspaces whose Secrets or keys are others than at the last look."""
        return self._age.changed() | self._changed()

    def _changed(self) -> set[str]:
        signature = self._look()
        if signature == self._signature:
            return set()
        self._signature = signature
        self._kept = read_secrets(self._keys_dir)
        before = self._found
        self._found = {path: self._placed(found) for path, found in self._kept.by_workspace.items()}
        return {p for p in before.keys() | self._found.keys() if before.get(p) != self._found.get(p)}

    def wrote(self, path: str) -> None:
        """The server itself wrote to a workspace's Secrets, which are in the store already or will be at once."""
        place = str(self._keys_dir / "secrets" / path) + os.sep
        kept = {file: seen for file, seen in self._signature.items() if not file.startswith(place)}
        self._signature = kept | self._look(path)
        self._found[path] = self._placed(read_secrets(self._keys_dir, path).by_workspace.get(path, []))

    def move(self, places: Mapping[str, str]) -> None:
        """Workspaces are elsewhere: their files go along, by the old path of each the new one. Where there are some at
        the new path already, whoever put them there moved them. Raises OSError."""
        self._age.move(places)
        folder = self._keys_dir / "secrets"
        for old, new in places.items():
            if (folder / old).is_dir() and not (folder / new).exists():
                (folder / old).rename(folder / new)
                gone = str(folder / old) + os.sep
                self._signature = {file: seen for file, seen in self._signature.items() if not file.startswith(gone)}
                self._found.pop(old, None)
                self.wrote(new)

    def errors(self) -> list[str]:
        """Files that are left out, and why."""
        return [*(str(e) for e in self._kept.errors), *self._age.errors()]

    def _placed(self, found: Iterable[Manifest]) -> tuple[Manifest, ...]:
        return tuple(m.at(Origin(f"keys/{Path(m.path).relative_to(self._keys_dir)}")) for m in found)

    def _look(self, path: str = "") -> Signature:
        found: Signature = {}
        for file in (self._keys_dir / "secrets" / path).rglob("*"):
            try:
                stat = file.stat()
            except OSError:
                continue
            found[str(file)] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
        return found


def kept(cluster: str, manifests: Iterable[Manifest]) -> PutRow:
    """Says that these are the workspace's Secrets which are served."""
    return PutRow(Table.KEPT_SECRETS, cluster, digest(manifests))


def kept_keys(cluster: str, keys: WorkspaceKeys) -> RowOp:
    """Says that the workspace's files were read with these keys."""
    said = digest_of(keys)
    return PutRow(Table.AGE_KEYS, cluster, said) if said else DeleteRow(Table.AGE_KEYS, cluster)


def digest(manifests: Iterable[Manifest]) -> bytes:
    """Of what some files say, and where."""
    found = [(manifest.path, manifest.value) for manifest in manifests]
    return hashlib.sha256(orjson.dumps(found, option=orjson.OPT_SORT_KEYS)).digest()
