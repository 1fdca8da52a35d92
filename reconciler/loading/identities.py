"""Identities of APIExports: a secret key each, and its hash, which tells an export's objects from those of another.

Whoever can compute an export's identity hash shares its storage, so it does not follow from public data. The key is in
the Secret that the export's spec.identity.secretRef names. Where that is its own, `kcp-system/<name>`, and no file
declares it, the key is random, kept in `keys/identities/` and served as that Secret. Never in git: the status branch
has the hash, which outlives the key and is never another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import secrets
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from apiserver.model.marks import ORIGIN, SYSTEM
from apiserver.model.origins import Origin
from apiserver.registry.behaviours.sharing import IDENTITIES
from apiserver.registry.endpointslices import own_slice, wants_one
from reconciler.layout.manifest import Manifest
from reconciler.loading.sources import generated
from reconciler.plan import system
from reconciler.plan.deletions import PROTECTED

Object = dict[str, Any]

KEY = "key"
_OWN = Origin("", "what an APIExport has by itself")
_DIGEST = 64


class NamedSecret(NamedTuple):
    """A Secret of the export's workspace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


def secret_of(export: Object) -> NamedSecret:
    """Where the key of an APIExport is, or shall be."""
    named = (export["spec"].get("identity") or {}).get("secretRef") or {}
    return NamedSecret(named.get("namespace") or IDENTITIES, named.get("name") or export["metadata"]["name"])


_MADE = "~"
"""Begins the names of files of exports that were made through the API, so that their keys go with them."""


class Identities:
    """`directory` is `keys/identities`; made when the first key is. `made`: of exports that no commit knows of."""

    def __init__(self, directory: Path, *, made: bool = False) -> None:
        self._directory, self._made = directory, made

    def of_made(self) -> Identities:
        """The same for exports that were made through the API."""
        return Identities(self._directory, made=True)

    def key(self, cluster: str, export: str, *, make: bool) -> str | None:
        """The key of an export that has it by itself. `make`: one is made where there is none."""
        plain = self._directory / f"{cluster}:{export}"
        made = self._directory / f"{_MADE}{plain.name}"
        for file in (made, plain) if self._made else (plain, made):
            with suppress(FileNotFoundError):
                found = file.read_text().strip()
                if file is made and not self._made:
                    made.rename(plain)  # a file declares it from now on
                return found
        return self._make(made if self._made else plain) if make else None

    def forget(self, cluster: str, export: str) -> None:
        """Takes the key away of one that was made through the API, and is gone."""
        (self._directory / f"{_MADE}{cluster}:{export}").unlink(missing_ok=True)

    def of(self, cluster: str, export: Object, recorded: str, secret: Object | None) -> ExportIdentity:
        """Of an APIExport with its defaults. `recorded`: its hash so far, which it keeps for good; `secret`: the Secret
        that it names, None where there is none."""
        named, own = secret_of(export), ""
        if secret is not None:
            key = _key(secret)
        elif named == NamedSecret(IDENTITIES, export["metadata"]["name"]):
            own = self.key(cluster, named.name, make=not recorded) or ""
            if not own:
                return ExportIdentity(recorded)
            key = own.encode()
        else:
            return ExportIdentity(recorded, f'secret "{named}" not found')
        if not key:
            return ExportIdentity(recorded, f'secret "{named}" has no data under "{KEY}"')
        found = hashlib.sha256(key).hexdigest()
        if recorded not in ("", found):
            wrong = f'hash mismatch: identity secret hash "{found}" must match status.identityHash "{recorded}"'
            return ExportIdentity(recorded, wrong, own)
        return ExportIdentity(found, "", own)

    def _make(self, file: Path) -> str:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = secrets.token_hex(_DIGEST // 2)
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as out:
            out.write(key + "\n")
            out.flush()
            os.fsync(out.fileno())
        return key


class IdentitiesAside(Identities):
    """The same for what may never be served: a key that is made is kept nowhere."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._fresh: dict[str, str] = {}

    def key(self, cluster: str, export: str, *, make: bool) -> str | None:
        name = f"{cluster}:{export}"
        for file in (self._directory / name, self._directory / f"{_MADE}{name}"):
            with suppress(FileNotFoundError):
                return file.read_text().strip()
        return self._fresh.setdefault(name, secrets.token_hex(_DIGEST // 2)) if make else self._fresh.get(name)


class ExportIdentity(NamedTuple):
    """`hash`: SHA-256 of the key in hex, "" where there is none; `wrong`: what is wrong with the key, in words; `own`:
    the key, where it is the export's by itself."""

    hash: str
    wrong: str = ""
    own: str = ""


@dataclass(frozen=True, slots=True)
class Keyring:
    """The identities of the exports of the workspace at `path`. `recorded`: their hashes so far, by export;
    `manifests`: what is declared, Secrets among it."""

    identities: Identities
    path: str
    cluster: str
    recorded: Mapping[str, str]
    manifests: Iterable[Manifest]

    def of(self, export: Object) -> ExportIdentity:
        """Of an APIExport with its defaults. What is recorded is its hash for good; what ships has a known one."""
        shipped = system.identity_of(self.path, export["metadata"]["name"])
        if shipped:
            return ExportIdentity(shipped)
        named = secret_of(export)
        said = next((m for m in self.manifests if _is_secret(m, named)), None)
        recorded = self.recorded.get(export["metadata"]["name"], "")
        return self.identities.of(self.cluster, export, recorded, said.value if said is not None else None)


def own(exports: Iterable[Object], identities: Mapping[str, ExportIdentity]) -> list[Manifest]:
    """What exports have by themselves: the Secrets with their keys, in a namespace that is there where these are lost,
    too, and their endpoint slices. `identities`: by export."""
    keys = [own_secret(name, identity.own) for name, identity in identities.items() if identity.own]
    slices = [own_slice(export["metadata"]["name"]) for export in exports if wants_one(export)]
    return generated([namespace_of_keys(), *keys, *slices], _OWN) if identities else []


def former(exports: Iterable[str]) -> list[Manifest]:
    """What exports of these names had by themselves, to go with them: it is nobody's loss."""
    names = list(exports)
    gone = [namespace_of_keys(), *(own_secret(name, "") for name in names), *map(own_slice, names)]
    for each in gone:
        each["metadata"]["annotations"] = {ORIGIN: SYSTEM, PROTECTED: "false"}
    return generated(gone, _OWN) if names else []


def namespace_of_keys() -> Object:
    """Where it stands."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": IDENTITIES, "annotations": {ORIGIN: SYSTEM}}}


def own_secret(name: str, key: str) -> Object:
    """The Secret with its own key that an export of that name has."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": IDENTITIES, "annotations": {ORIGIN: SYSTEM}},
        "type": "Opaque",
        "data": {KEY: base64.b64encode(key.encode()).decode()},
    }


def _is_secret(manifest: Manifest, named: NamedSecret) -> bool:
    namespace, name = named
    if manifest.gvk.kind != "Secret" or manifest.gvk.group or manifest.name != name or not manifest.origin.path:
        return False
    if manifest.locked:
        return False  # nobody here can read its key
    return (manifest.namespace or "default") == namespace


def _key(secret: Object) -> bytes:
    """What a manifest of a Secret has as the key; b"" for nothing that can be one."""
    plain = (secret.get("stringData") or {}).get(KEY)
    if isinstance(plain, str):
        return plain.encode()
    try:
        return base64.b64decode(str((secret.get("data") or {}).get(KEY) or ""), validate=True)
    except (binascii.Error, ValueError):
        return b""
