"""Secrets that are written into git, encrypted: as the nearest `.sops.yaml` says, or as their file is already.

Called by edits, for whatever makes commits of writes. What does not change keeps its bytes; of a changed file the MAC
is made anew, which takes its key. Nothing is written that this server could not read again.
"""

from __future__ import annotations

import base64
import posixpath
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from apiserver.model.errors import StatusError
from apiserver.schema.last_applied import ANNOTATION
from reconciler.encryption.creation import NAME, Creation, creation_of
from reconciler.encryption.document import EncryptedFile, OpenedFile
from reconciler.encryption.faults import LockedFile, UnfitFile
from reconciler.encryption.metadata import SelectedValues
from reconciler.encryption.sealing import new_key, new_metadata, sealed, stamped
from reconciler.layout import edit
from reconciler.layout.draft import Draft
from reconciler.layout.dump import ordered
from reconciler.layout.errors import BadFile
from reconciler.layout.manifest import Manifest, SealedIn, read
from reconciler.layout.yamldoc import parse
from reconciler.loading.unsealing import Unsealing, WorkspaceKeys, encrypted_file
from reconciler.plan.gitform import declared_form

Object = dict[str, Any]

SECRETS = "secrets"
_VALUES = ("data", "stringData")
_MOST = 64 * 1024
"""Bytes of a .sops.yaml."""


def creation_for(draft: Draft, path: str) -> Creation | None:
    """How a new file is to be encrypted; None where no `.sops.yaml` names age recipients for it, so that it must not be
    written to git. Raises StatusError for one that cannot be followed."""
    folder, top = posixpath.dirname(path), draft.repo.folder_at(draft.base)
    while True:
        place = posixpath.join(folder, NAME)
        said = draft.read(place)
        if said is not None:
            return _creation(said, place, posixpath.relpath(path, folder or "."))
        if folder in ("", top):
            return None  # what stands above is not the fleet's to say
        folder = posixpath.dirname(folder)


def _creation(said: bytes, place: str, path: str) -> Creation | None:
    try:
        if len(said) > _MOST:
            raise UnfitFile(f"it has more than {_MOST >> 10} KiB")
        found = parse(said, "sops.yaml")
        return creation_of(found[0].value if found else None, path)
    except BadFile as bad:
        raise _forbidden(f"{place} cannot be read: {bad.errors[0].message}") from None
    except UnfitFile as fault:
        raise _forbidden(f"{place} cannot be followed: {_text(fault)}") from None


class SealedSecrets:
    """Of the workspace at `path`, whose keys are `keys`, in one draft. Everything raises StatusError for what cannot be
    written, and BadFile."""

    def __init__(self, draft: Draft, path: str, keys: WorkspaceKeys) -> None:
        self._draft, self._path, self._keys = draft, path, keys

    def add(self, file: str, value: Object, creation: Creation) -> bool:
        """A file of its own."""
        if self._draft.read(file) is not None:
            raise StatusError(409, "Conflict", f"{file} is there already, and declares something else")
        self._require_readable(creation.recipients, f"{NAME} names")
        return self._draft.write(file, sealed_file(file, value, creation))

    def opened(self, manifest: Manifest) -> Manifest:
        """What it says."""
        self._open(manifest)
        return Unsealing(self._keys).opened(manifest)

    def replace(self, manifest: Manifest, value: Object) -> bool:
        """`value`: what it is to say."""
        opened, at, file = self._open(manifest), _sealed(manifest).number, _file(manifest)
        stands, selection = file.as_it_stands()[at], file.metadata.selection
        _require_hidden(value, opened.values[at], selection, manifest.path)
        said = sealed(untold(value), opened.key, selection, opened.values[at], stands)
        before, path = _sealed(manifest).data, manifest.path
        after = edit.replace(before, path, at, {**said, "sops": manifest.value["sops"]})
        return after != before and self._draft.write(path, _stamped(after, path, opened.key))

    def remove(self, manifest: Manifest) -> bool:
        """With the file, where nothing else stands in it."""
        before, file = _sealed(manifest).data, manifest.path
        after = edit.remove(before, file, _sealed(manifest).number)
        if after is not None:
            after = _stamped(after, file, self._open(manifest).key)
        return self._draft.write(file, after)

    def _open(self, manifest: Manifest) -> OpenedFile:
        try:
            return _file(manifest).open(self._keys.identities)
        except LockedFile as locked:
            self._require_readable(locked.recipients, f"{manifest.path} is encrypted for")
            raise
        except UnfitFile as fault:
            raise StatusError(409, "Conflict", f"{manifest.path} cannot be decrypted: {_text(fault)}") from None

    def _require_readable(self, recipients: Iterable[str], what: str) -> None:
        if not self._keys.identities.keys() & set(recipients):
            text = f"{what} {', '.join(recipients)}, and keys/age/{self._path} of the server has none of their keys"
            raise _forbidden(f"{text}: what it wrote it could not read")


def sealed_file(file: str, value: Object, creation: Creation) -> bytes:
    """A new file with one Secret, encrypted; it takes no key. Raises StatusError for what would not be, and BadFile."""
    value = untold(value)
    _require_hidden(value, {}, creation.selection, NAME)
    key = new_key()
    metadata = new_metadata(
        key, creation.recipients, creation.selection, mac_only_encrypted=creation.mac_only_encrypted
    )
    document = {**ordered(sealed(value, key, creation.selection)), "sops": _begun(metadata)}
    return _stamped(edit.add(None, file, document), file, key)


def _require_hidden(value: Object, before: Object, selection: SelectedValues, by: str) -> None:
    """What a write says of a value stands in git as it is only where that stood there so."""
    for part in _VALUES:
        there = before.get(part) or {}
        for key, text in (value.get(part) or {}).items():
            if not selection((part, key)) and there.get(key) != text:
                text = f"by {by} {part}.{key} would not be encrypted, and everybody who can clone could read it"
                raise _forbidden(f"{text}: choose values with encrypted_regex: ^(data|stringData)$")


def said_of(manifest: Object, live: Object, final: Object) -> Object:
    """What the file of a Secret is to say, which says `manifest` now, when the object goes from `live` to `final`."""
    git, stood, shall = ({k: v for k, v in each.items() if k not in _VALUES} for each in (manifest, live, final))
    out = declared_form(git, stood, shall)
    before, after = live.get("data") or {}, final.get("data") or {}
    named = {**(manifest.get("data") or {}), **(manifest.get("stringData") or {})}
    texts = {key: text for key, text in (manifest.get("stringData") or {}).items() if key in after}
    for key, text in [*texts.items()]:
        if after[key] != _base64(text):
            changed = _plain(after[key])
            texts |= {key: changed} if changed is not None else {}
            if changed is None:
                del texts[key]
    new = [key for key in after if key not in named and after[key] != before.get(key)]
    data = {key: after[key] for key in [*named, *new] if key in after and key not in texts}
    return out | {name: part for name, part in (("data", data), ("stringData", texts)) if part}


def untold(value: Object) -> Object:
    """A Secret less what kubectl keeps of it in an annotation: all of it, where nothing is encrypted."""
    annotations = value["metadata"].get("annotations") or {}
    if ANNOTATION not in annotations:
        return value
    kept = {key: text for key, text in annotations.items() if key != ANNOTATION}
    metadata = {key: part for key, part in value["metadata"].items() if key != "annotations"}
    return {**value, "metadata": metadata | ({"annotations": kept} if kept else {})}


def _stamped(data: bytes, file: str, key: bytes) -> bytes:
    """With the MAC of what stands there by now, in each of its documents. Raises StatusError."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = read(data, file).objects
    try:
        metadata = stamped({}, EncryptedFile(data, json=file.endswith(".json")), key, now)
    except UnfitFile as fault:
        raise StatusError(409, "Conflict", f"{file} cannot be encrypted: {_text(fault)}") from None
    for number, manifest in enumerate(found):
        said = {**manifest.value, "sops": {**manifest.value["sops"], **metadata}}
        data = edit.replace(data, file, number, said)
    return data


def _begun(metadata: Object) -> Object:
    """Complete in form, before there is a MAC."""
    return {**metadata, "lastmodified": "-", "mac": "-"}


def _file(manifest: Manifest) -> EncryptedFile:
    return encrypted_file(_sealed(manifest), manifest.path)


def _sealed(manifest: Manifest) -> SealedIn:
    assert manifest.sealed is not None
    return manifest.sealed


def _base64(text: Any) -> str:
    return base64.b64encode(str(text).encode()).decode()


def _plain(text: str) -> str | None:
    """None for what is no text."""
    try:
        return base64.b64decode(text).decode()
    except ValueError:
        return None


def _text(fault: UnfitFile) -> str:
    return f"{fault.message} ({fault.hint})" if fault.hint else fault.message


def _forbidden(text: str) -> StatusError:
    return StatusError(403, "Forbidden", text)
