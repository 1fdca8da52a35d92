"""Manifests that SOPS encrypted, opened with the keys of their workspace.

Called by gather, once for a judgement, and by files, which asks what is wrong with a file whatever keys there are. What
was encrypted goes from here into the objects of a judgement and from there into the store; nothing here remembers it.
Without a key an object stays what it is, which is no fault of the workspace; what a key opens and finds damaged is, and
stays so when that key has gone.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

from apiserver.model.counts import counted, some_of
from apiserver.schema.defaults import copy_json
from reconciler.encryption.agekeys import AgeIdentity
from reconciler.encryption.document import EncryptedFile, OpenedFile
from reconciler.encryption.faults import DamagedFile, LockedFile, UnfitFile
from reconciler.layout.errors import LayoutError
from reconciler.layout.manifest import SEALED, Manifest, SealedIn, of_document
from reconciler.layout.yamldoc import YamlDocument

Object = dict[str, Any]

_MOST_TOLD = 20
"""Files that a workspace's condition names."""
_UNASKED = LockedFile(())
"""In place of what is shown as it stands."""
_FOUND_OUT = "a key found that it is damaged, and that is not here any more"
_REMEDY = "take it as it was committed last, and edit it with sops; its key in keys/age/ tells what is wrong"
_NOTED = 3
"""Recipients, and Secrets, that a message names."""


class WorkspaceKeys(NamedTuple):
    """What opens the files of one workspace. `identities`: by recipient; `wrong`: why its file of keys is not used, ""
    if it is. `shown`: nothing is opened, and what is encrypted is served as it stands: for a store that is thrown
    away."""

    identities: Mapping[str, AgeIdentity] = MappingProxyType({})
    wrong: str = ""
    shown: bool = False


NO_KEYS = WorkspaceKeys()
SHOWN = WorkspaceKeys(shown=True)


def encrypted_file(sealed: SealedIn, path: str) -> EncryptedFile:
    """Raises UnfitFile."""
    return EncryptedFile(sealed.data, json=path.endswith(".json"))


def faults(data: bytes, path: str) -> tuple[LayoutError, ...]:
    """What is wrong with an encrypted file, whoever reads it."""
    try:
        encrypted_file(SealedIn(data, 0), path)
    except UnfitFile as fault:
        return (_error(path, fault),)
    return ()


class Unsealing:
    """Of one judgement. `problems`: what is damaged; `damaged`: digests of such files, with those that a key found to
    be so before (`known`, see Summary). `lenient`: that is locked instead, for a workspace that is brought back: it was
    served at that commit before there was a key that found it out. `pardoned`: whether anything was."""

    def __init__(self, keys: WorkspaceKeys, known: Collection[str] = (), *, lenient: bool = False) -> None:
        self._keys, self._known, self._lenient = keys, known, lenient
        self.pardoned = False
        self.damaged = set[str]()
        self._files: dict[bytes, OpenedFile | LockedFile | UnfitFile] = {}
        self._values: dict[SealedIn, Object] = {}
        self._locked: dict[tuple[str, str, str], LockedFile | UnfitFile] = {}
        self.problems: list[LayoutError] = []

    def opened(self, manifest: Manifest) -> Manifest:
        """What it says; of one that nobody here can read, what stands there, `locked`."""
        sealed = manifest.sealed
        if sealed is None:
            return manifest
        found = _UNASKED if self._keys.shown else self._file(sealed, manifest)
        if not isinstance(found, OpenedFile):
            if isinstance(found, LockedFile) or self._lenient:
                self._locked[manifest.path, manifest.namespace, manifest.name] = found
            return replace(manifest, value=_as_it_stands(manifest.value), told=False, locked=True)
        value = self._values.get(sealed)
        if value is None:
            document = YamlDocument(found.values[sealed.number], manifest.line)
            value = of_document(document, manifest.path, sealed.number, []).value
            self._values[sealed] = value
        return replace(manifest, value=value, told=False)

    def locked(self, path: str) -> list[str]:
        """What is encrypted for others, in words; `path`: of the workspace."""
        files = {file: locked for (file, _, _), locked in self._locked.items()}
        told = [self._told(file, locked, path) for file, locked in sorted(files.items())[:_MOST_TOLD]]
        return [*told, f"and {counted(len(files) - len(told), 'more file')}"] if len(files) > len(told) else told

    def _file(self, sealed: SealedIn, manifest: Manifest) -> OpenedFile | LockedFile | UnfitFile:
        found = self._files.get(sealed.data)
        if found is None:
            found = self._files[sealed.data] = self._read(sealed, manifest)
            if isinstance(found, UnfitFile):
                self.pardoned |= self._lenient
                if not self._lenient:
                    error = _error(manifest.path, found)
                    self.problems.append(replace(error, line=0) if manifest.origin.generator else error)
        return found

    def _read(self, sealed: SealedIn, manifest: Manifest) -> OpenedFile | LockedFile | UnfitFile:
        try:
            return encrypted_file(sealed, manifest.path).open(self._keys.identities)
        except DamagedFile as fault:
            self.damaged.add(_digest(sealed.data))
            return fault
        except UnfitFile as fault:
            return fault
        except LockedFile as locked:
            if _digest(sealed.data) not in self._known:
                return locked
            self.damaged.add(_digest(sealed.data))
            return DamagedFile(_FOUND_OUT, _REMEDY)

    def _told(self, file: str, locked: LockedFile | UnfitFile, path: str) -> str:
        names = some_of(sorted(f"{space or 'default'}/{name}" for f, space, name in self._locked if f == file), _NOTED)
        if isinstance(locked, UnfitFile):
            return f"{_error(file, locked)}: Secret {names} stays as it is"
        if locked is _UNASKED:
            return f"{file} is encrypted: what it says of Secret {names} is not looked at here"
        place = f"keys/age/{path}"
        there = self._keys.wrong or "has none of their keys"
        if self._keys.identities:
            there = f"is the key of {some_of([*self._keys.identities], _NOTED)}"
        what = f"{file} is encrypted for {some_of(locked.recipients, _NOTED)}, and {place} {there}"
        return f"{what}: Secret {names} stays as it is until it can be read"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:40]


def _error(path: str, fault: UnfitFile) -> LayoutError:
    return LayoutError(path, fault.line, 0, f"cannot be decrypted: {fault.message}", fault.hint)


def _as_it_stands(value: Object) -> Object:
    """A Secret whose values are what stands for them in the file."""
    out: Object = {key: copy_json(part) for key, part in value.items() if key != "sops" and not _is_sealed(part)}
    data = out.get("data")
    if isinstance(data, dict):
        out["data"] = {k: base64.b64encode(v.encode()).decode() if _is_sealed(v) else v for k, v in data.items()}
    return out


def _is_sealed(value: Any) -> bool:
    return isinstance(value, str) and value.encode().startswith(SEALED)
