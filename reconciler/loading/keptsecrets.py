"""Secrets written through the API where writes are commits: they go into keys/secrets/ and not into git.

Called by the committer. The file is on disk before the object is in the store and before anybody is answered; a crash
in between leaves a file that is read like one that a person put there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from apiserver.auth.files import locked
from apiserver.model import marks, origins
from apiserver.model.errors import StatusError, unavailable
from apiserver.model.keys import Key
from apiserver.model.storagenames import EXPORTS
from apiserver.registry import codec, tree
from apiserver.registry.intents import DONE, Intent
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.protocol import NEVER, Delete, Op, Put, Store
from reconciler.layout import edit
from reconciler.layout.manifest import read
from reconciler.layout.place import file_name
from reconciler.loading import awaited
from reconciler.loading.identities import NamedSecret, secret_of
from reconciler.loading.secrets import SecretFiles, kept
from reconciler.plan.gitform import sent_form

Object = dict[str, Any]


class KeptSecrets:
    """Call it with an intent about a Secret."""

    def __init__(self, store: Store, keys_dir: Path, files: SecretFiles) -> None:
        self._store = store
        self._keys_dir = keys_dir
        self._files = files

    def __call__(self, intent: Intent) -> None:
        """Raises the store's Conflict where the Secret is another by now, StatusError and OSError."""
        workspace = tree.workspace_of(self._store, intent.key.cluster)
        if workspace is None or not workspace.served:
            raise unavailable("the workspace is gone, or not served")
        self._store.write(*intent.ops()[1:]).result()  # the Secret is as it was, or nothing is written
        path = self._path(intent, workspace)
        final: Object | None = None if intent.value is None else orjson.loads(intent.value)
        (self._keys_dir / "secrets").mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._keys_dir / "secrets"):  # tokens of sync targets are written there by another process
            self._edit(self._keys_dir / path.removeprefix("keys/"), intent.key, final)
        self._files.wrote(workspace.path)
        self._store.write(*self._ops(intent, workspace, path, final)).result()

    def _path(self, intent: Intent, workspace: WorkspaceRecord) -> str:
        """Of the file, beginning with `keys/`."""
        record = self._store.get(intent.key)
        origin = origins.origin_of(orjson.loads(record.value)) if record is not None else None
        stands = origin.path if origin is not None else ""
        if origin is not None and not origin.in_keys:
            raise StatusError(403, "Forbidden", f"this Secret is declared in {stands}: change it there")
        name = f"{file_name(intent.key.namespace)}.{file_name(intent.key.name)}.yaml"
        return stands or f"keys/secrets/{workspace.path}/{name}"

    @staticmethod
    def _edit(file: Path, key: Key, final: Object | None) -> None:
        before = file.read_bytes() if file.exists() else None
        objects = read(before, str(file)).objects if before is not None else []
        found = next((m for m in objects if (m.namespace or "default", m.name) == (key.namespace, key.name)), None)
        after = before
        if final is not None:
            said = sent_form(final)
            place = str(file)
            after = edit.replace(before or b"", place, found.index, said) if found else edit.add(before, place, said)
        elif found is not None:
            after = edit.remove(before or b"", str(file), found.index)
        if after is None:
            file.unlink(missing_ok=True)
        elif after != before:
            _write(file, after)

    def _ops(self, intent: Intent, workspace: WorkspaceRecord, path: str, final: Object | None) -> list[Op]:
        if final is None:
            op: Op = Delete(intent.key, intent.base)
        else:
            metadata = final["metadata"]
            annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k != marks.ORIGIN}
            annotations |= origins.marks_of(path, workspace.origin)
            made = {**final, "metadata": {**metadata, "annotations": annotations}}
            op = Put(intent.key, codec.encode(made), intent.base or NEVER)
        # They are served as they are in the file by now.
        served = kept(workspace.cluster, self._files.of(workspace.path))
        return [served, *self._asked(intent.key, workspace), op, *intent.answered(DONE)]

    def _asked(self, key: Key, workspace: WorkspaceRecord) -> list[Op]:
        """An export that names the Secret has its identity of it: that is judged, and who takes it hears of it."""
        exports = (orjson.loads(r.value) for r in self._store.scan(EXPORTS, workspace.cluster, count=False).records)
        named = NamedSecret(key.namespace, key.name)
        return [awaited.note(workspace)] if named in map(secret_of, exports) else []


def _write(file: Path, data: bytes) -> None:
    """On disk, readable by the server alone, whole or not at all."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    part.touch(mode=0o600)
    with part.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    part.rename(file)
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
