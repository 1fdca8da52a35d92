"""The kubeconfigs of sync targets, written where they came from once their token is another: a file of keys/secrets/.

Called by syncing, for the renewal of tokens. A file of git is not the server's to write, encrypted or not. What a write
through the API made in the store alone is written there.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from apiserver.auth.files import locked, write_private
from apiserver.model import marks, origins
from apiserver.model.keys import Key
from apiserver.registry import tree
from apiserver.registry.objects import Objects
from apiserver.storage.protocol import Store
from reconciler.commands.targets import SecretPlace, place_of
from reconciler.controllers.failures import Expected
from reconciler.layout import edit
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import read

Object = dict[str, Any]

_SECRETS = "secrets"
_CHANGED = "the Secret is another by now: it is looked at again"


class KeptKubeconfigs:
    """A TokenKeeping. `keys_dir` holds `secrets/<workspace path>/*.yaml`."""

    def __init__(self, store: Store, keys_dir: Path) -> None:
        self._store, self._objects, self._keys_dir = store, Objects(store), keys_dir

    def refuses(self, target: Object) -> str:
        place, secret = self._secret(target)
        if secret is None:
            return f"there is no Secret {place.namespace}/{place.name}"
        path = origins.file_of(secret)
        if not path:
            return ""
        workspace = self._workspace(target)
        if origins.Origin(path).in_git:
            return (
                f"the Secret {place.namespace}/{place.name} stands in git ({path}), which this server does not write: "
                f"put it into keys/secrets/{workspace}/ instead"
            )
        if self._file(path, workspace) is None:
            return f"the Secret {place.namespace}/{place.name} stands in no file of keys/secrets/{workspace}/"
        return ""

    def keep(self, target: Object, before: bytes, after: bytes) -> None:
        place, secret = self._secret(target)
        if secret is None:
            raise Expected(_CHANGED)
        path = origins.file_of(secret)
        if not path:
            self._in_store(target, place, before, after)
            return
        file = self._file(path, self._workspace(target))
        if file is None:
            raise Expected(self.refuses(target))
        try:
            with locked(self._keys_dir / _SECRETS):
                _rewrite(file, place, before, after)
        except (OSError, BadFile) as error:
            why = error.strerror or type(error).__name__ if isinstance(error, OSError) else "it cannot be edited"
            raise Expected(f"{path} could not be written: {why}") from None

    def _secret(self, target: Object) -> tuple[SecretPlace, Object | None]:
        place = place_of(target["spec"]["connection"]["kubeconfigSecretRef"])
        cluster = target["metadata"]["annotations"][marks.CLUSTER]
        return place, self._objects.get(Key(_SECRETS, cluster, place.namespace, place.name))

    def _workspace(self, target: Object) -> str:
        record = tree.workspace_of(self._store, target["metadata"]["annotations"][marks.CLUSTER])
        return record.path if record is not None else ""

    def _file(self, path: str, workspace: str) -> Path | None:
        """The file of that origin, if it is one of the target's own workspace."""
        top = (self._keys_dir / _SECRETS / workspace).resolve()
        file = (self._keys_dir / path.removeprefix("keys/")).resolve()
        return file if workspace and file.is_relative_to(top) and file.is_file() else None

    def _in_store(self, target: Object, place: SecretPlace, before: bytes, after: bytes) -> None:
        cluster = target["metadata"]["annotations"][marks.CLUSTER]
        changed: list[bool] = []

        def change(obj: Object) -> Object:
            made = _with(obj, place.field, before, after)
            changed.append(made is not None)
            return made or obj

        self._objects.update(Key(_SECRETS, cluster, place.namespace, place.name), change)
        if not changed or not changed[-1]:
            raise Expected(_CHANGED)


def _rewrite(file: Path, place: SecretPlace, before: bytes, after: bytes) -> None:
    data = file.read_bytes()
    found = (m for m in read(data, str(file)).objects if (m.namespace or "default", m.name) == place[:2])
    manifest = next(found, None)
    made = _with(manifest.value, place.field, before, after) if manifest is not None else None
    if manifest is None or made is None:
        raise Expected(_CHANGED)
    write_private(file, edit.replace(data, str(file), manifest.index, made))


def _with(secret: Object, field: str, before: bytes, after: bytes) -> Object | None:
    """The Secret with another value of `field`; None where `before` is not what stands there."""
    plain, encoded = secret.get("stringData") or {}, secret.get("data") or {}
    if field in plain:
        if plain[field] != before.decode("utf-8", "replace"):
            return None
        return {**secret, "stringData": {**plain, field: after.decode()}}
    try:
        stands = base64.b64decode("".join(str(encoded.get(field, "")).split()), validate=True)
    except ValueError:
        return None
    return {**secret, "data": {**encoded, field: base64.b64encode(after).decode()}} if stands == before else None
