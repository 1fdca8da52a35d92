"""What a recovered fleet needs of keys/, which no repository has, and what of it is there.

Called by the drill, of a store that was recovered. Names are told and nothing that a file holds. A directory of keys is
only read: a recovery would make in it what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from apiserver.admission.writes import COMMIT
from apiserver.model.keys import Key
from apiserver.model.storagenames import EXPORTS, SYNC_TARGETS
from apiserver.model.tables import Table
from apiserver.registry import tree
from apiserver.registry.behaviours.sharing import IDENTITIES
from apiserver.registry.tree import WorkspaceRecord
from apiserver.storage.paging import pages, rows
from apiserver.storage.protocol import View
from reconciler.loading.identities import NamedSecret, secret_of
from reconciler.plan import system
from reconciler.signatures.own import NAME as COMMITS
from reconciler.signatures.signers import DIRECTORY as SIGNERS

Object = dict[str, Any]

_REAL = b"kubeconfigSecretRef"


class NeededKey(NamedTuple):
    """`place`: below keys/. `what`: what it is for. `of`: whose, by path or name. `there`: whether it was found; None
    where that cannot be told, or no directory was given."""

    place: str
    what: str
    of: tuple[str, ...] = ()
    there: bool | None = None


def needed(store: View, keys: Path | None, *, signed: bool) -> tuple[NeededKey, ...]:
    """`keys`: the directory that was given, None: none. `signed`: whether the fleet asks for signatures."""
    return tuple(_Needed(store, keys).all(signed))


class _Needed:
    def __init__(self, store: View, keys: Path | None) -> None:
        self._store, self._keys = store, keys

    def all(self, signed: bool) -> Iterator[NeededKey]:
        yield self._one("ca.key", "the certificates that clients have, and the one that they trust")
        yield self._one("service-accounts.key", "the tokens of ServiceAccounts")
        yield self._one(COMMITS, "the server's own signature, of what it commits")
        if signed:
            yield self._one(SIGNERS, "who may sign, where the branch does not say")
        yield from self._identities()
        yield from self._clusters()
        usual = tree.fleet(self._store).writes
        writing = tuple(record.path for record in self._records() if (record.writes or usual) == COMMIT)
        if writing:
            # Which there were nobody but that directory knows.
            yield NeededKey("secrets/", "Secrets that were written through the API, since writes are commits", writing)

    def _one(self, name: str, what: str, *of: str) -> NeededKey:
        return NeededKey(name, what, of, (self._keys / name).exists() if self._keys is not None else None)

    def _identities(self) -> Iterator[NeededKey]:
        """Of exports with a key of their own: the hash is on the status branch, and the key nowhere."""
        for key, obj in self._objects(EXPORTS):
            path = self._path(key.cluster)
            if system.identity_of(path, key.name) or secret_of(obj) != NamedSecret(IDENTITIES, key.name):
                continue
            place = f"identities/{key.cluster}:{key.name}"
            yield self._one(place, "the identity key of an APIExport", f"{path}:{key.name}")

    def _clusters(self) -> Iterator[NeededKey]:
        """Of real clusters: the way there is a Secret, which git must not hold."""
        for key, obj in self._objects(SYNC_TARGETS, _REAL):
            said = ((obj.get("spec") or {}).get("connection") or {}).get(_REAL.decode())
            if said:
                namespace, name, path = said.get("namespace", "default"), said["name"], self._path(key.cluster)
                kept = self._store.get(Key("secrets", key.cluster, namespace, name)) is not None
                there = kept or (None if self._keys is None else False)
                what = f"the Secret {namespace}/{name}, the way to a cluster"
                yield NeededKey(f"secrets/{path}/", what, (f"{path}:{key.name}",), there)

    def _objects(self, resource: str, having: bytes = b"") -> Iterator[tuple[Key, Object]]:
        for page in pages(self._store, resource):
            yield from ((record.key, orjson.loads(record.value)) for record in page if having in record.value)

    def _records(self) -> Iterable[WorkspaceRecord]:
        return (WorkspaceRecord.decode(*row) for row in rows(self._store, Table.WORKSPACES))

    def _path(self, cluster: str) -> str:
        record = tree.workspace_of(self._store, cluster)
        return record.path if record is not None else cluster
