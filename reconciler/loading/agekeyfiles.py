"""The keys of `keys/age/<workspace path>`: each opens the encrypted files of that workspace, and of no other. With a
wider one a tenant could put somebody else's file into a workspace of his own, and read it there.

Called by secrets. A file that cannot be used opens nothing, and whatever it would have opened says why.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from apiserver.model import paths
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.storage.paging import rows
from apiserver.storage.protocol import View
from reconciler.encryption.agekeys import BadKeyFile, identities
from reconciler.loading.unsealing import NO_KEYS, WorkspaceKeys

_LARGEST = 64 * 1024
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_Seen = tuple[int, ...]


class AgeKeyFiles:
    """Looks when it is told to, so that all of a step is judged with the same keys."""

    def __init__(self, keys_dir: Path) -> None:
        self._folder = keys_dir / "age"
        self._seen: dict[str, _Seen] = {}
        self._keys: dict[str, WorkspaceKeys] = {}

    def of(self, path: str) -> WorkspaceKeys:
        return self._keys.get(path, NO_KEYS)

    def changed(self) -> set[str]:
        """Look again; the workspaces whose keys are others than at the last look."""
        seen, before = dict(self._look()), self._keys
        self._keys = {
            name: before[name] if seen[name] == self._seen.get(name) else _read(self._folder / name) for name in seen
        }
        self._seen = seen
        return {name for name in before.keys() | seen if _told(before.get(name)) != _told(self._keys.get(name))}

    def not_read(self, store: View) -> set[str]:
        """The workspaces whose files were read with others last."""
        found = {row.key: row.value for row in rows(store, Table.AGE_KEYS)}
        there = ((name, tree.workspace_at(store, name)) for name in self._keys)
        out = set()
        for name, workspace in there:
            if workspace is not None and found.pop(workspace.cluster, b"") != digest_of(self._keys[name]):
                out.add(name)
        gone = (tree.workspace_of(store, cluster) for cluster in found)
        return out | {workspace.path for workspace in gone if workspace is not None}

    def move(self, places: Mapping[str, str]) -> None:
        """Workspaces are elsewhere: their keys go along. Raises OSError."""
        for old, new in places.items():
            if (self._folder / old).is_file() and not (self._folder / new).exists():
                (self._folder / old).rename(self._folder / new)
                if old in self._keys:
                    self._keys[new], self._seen[new] = self._keys.pop(old), self._seen.pop(old)

    def errors(self) -> list[str]:
        """Files that open nothing, and why."""
        return [f"keys/age/{name} {keys.wrong}" for name, keys in sorted(self._keys.items()) if keys.wrong]

    def _look(self) -> Iterator[tuple[str, _Seen]]:
        for file in self._folder.glob("*") if self._folder.is_dir() else ():
            try:
                found = file.stat()
            except OSError:
                continue
            if not file.name.startswith("."):  # somebody is writing it
                yield file.name, (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, found.st_uid)


def digest_of(keys: WorkspaceKeys) -> bytes:
    """Of whose files they open; b"" for none."""
    return hashlib.sha256("\n".join(sorted(keys.identities)).encode()).digest() if keys.identities else b""


def _told(keys: WorkspaceKeys | None) -> tuple[list[str], str]:
    return (sorted(keys.identities), keys.wrong) if keys is not None else ([], "")


def _read(file: Path) -> WorkspaceKeys:
    if not paths.is_path(file.name):
        return WorkspaceKeys(wrong="is not named as a workspace, e.g. root:team")
    try:
        keys = identities(_text(file))
    except OSError as error:
        return WorkspaceKeys(wrong=f"cannot be read ({error.strerror or error})")
    except (BadKeyFile, UnicodeDecodeError) as error:
        why = str(error) if isinstance(error, BadKeyFile) else "it is no text that age-keygen writes"
        return WorkspaceKeys(wrong=f"is not used: {why}")
    if not keys:
        return WorkspaceKeys(wrong="holds no key: write one with age-keygen")
    return WorkspaceKeys({key.recipient: key for key in keys})


def _text(file: Path) -> str:
    """Raises BadKeyFile, OSError and UnicodeDecodeError."""
    handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise BadKeyFile("it is no file")
        if found.st_mode & _OTHERS:
            raise BadKeyFile(f"others than its owner may read it: chmod 600 {file}")
        data = os.read(handle, _LARGEST + 1)
    finally:
        os.close(handle)
    if len(data) > _LARGEST:
        raise BadKeyFile("it has more than 64 KiB")
    return data.decode("ascii")
