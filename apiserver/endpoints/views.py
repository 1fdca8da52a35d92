"""Stored values in the version that a request asks for, as bytes.

Made once per request; used by lists, watches and single reads. The hot path copies: a stored value in the right version
begins with a constant prefix (kind, apiVersion, then metadata), so that resourceVersion can be spliced in behind it and
lists of Kubernetes' own kinds, whose items carry neither kind nor apiVersion, can cut it off.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from apiserver.endpoints.sight import PartialSight
from apiserver.model import marks
from apiserver.model.keys import Key
from apiserver.model.paths import join
from apiserver.model.storagenames import BINDINGS, SHARDS, SLICES, TYPES
from apiserver.registry import codec
from apiserver.registry.boundresources import with_finalizer
from apiserver.registry.builtins.catalogue import having
from apiserver.registry.conversion import completed, convert, prepare
from apiserver.registry.endpointslices import with_host
from apiserver.registry.lags import lag
from apiserver.registry.served import ServedKind
from apiserver.registry.shards import with_addresses
from apiserver.registry.tree import cluster_key, fleet, path_of, workspace_at
from apiserver.storage.protocol import Record, Store

Object = dict[str, Any]

_METADATA = b'"metadata":{'
_DECLARED = f'"{marks.SOURCE_COMMIT}"'.encode()
"""In an object that git declares: it is written anew whenever its schema changes, others get defaults when read."""

_FILLED = having(lambda kind: kind.filled)

_LIFECYCLES = {"initializing": "initializingworkspaces", "terminating": "terminatingworkspaces"}
"""Types of virtual workspaces, and what their URLs say."""


Own = Callable[[str], ServedKind | None]
"""The kind as the workspace with that logical cluster name serves it; None if it does not."""


class KindView:
    """One kind as one request sees it.

    Across workspaces (`own`) a custom resource is what its own workspace's definition makes of it. One that is kept in
    another version is converted as its workspace would; where that does not serve the version asked for, or leaves it
    to a webhook, it is not there. (A workspace's webhook may be slow or dead, and others' lists do not wait for it.)
    """

    __slots__ = ("_cut", "_fills", "_own", "_prefix", "_sight", "_store", "key", "kind")

    def __init__(
        self, kind: ServedKind, store: Store, own: Own | None = None, sight: PartialSight | None = None
    ) -> None:
        self.kind = kind
        self._own = own
        self._sight = sight
        self.key: tuple[Hashable, ...] = (kind.api_version, kind.kind, *((sight.token,) if sight is not None else ()))
        self._prefix = f'{{"kind":"{kind.kind}","apiVersion":"{kind.api_version}",'.encode() + _METADATA
        self._cut = len(self._prefix)
        self._store = store
        self._fills = kind.builtin and kind.storage in _FILLED

    def prepare(self, values: Iterable[bytes]) -> None:
        """Before values of a kind that has a webhook are looked at: converts them together. May take long."""
        if self.kind.conversion is not None:
            prepare((value for value in values if not value.startswith(self._prefix)), self.kind)

    @property
    def mixed(self) -> bool:
        """Whether some of what is stored may not be there: `shows` knows."""
        return self._own is not None or self._sight is not None

    def shows(self, key: Key, value: bytes) -> bool:
        if self._sight is not None and not self._sight.shows(key, value):
            return False
        if self._own is None or value.startswith(self._prefix):
            return True
        found = self._own(key.cluster)
        return found is not None and found.conversion is None

    def _kind_at(self, key: Key) -> ServedKind:
        return (self._own(key.cluster) if self._own is not None else None) or self.kind

    def value(self, key: Key, value: bytes) -> bytes:
        """In the version asked for, still without resourceVersion."""
        if self._sight is not None:
            return self._labelled(key, value)
        return self._plain(key, value)

    def _labelled(self, key: Key, value: bytes) -> bytes:
        """With the labels by which it is seen."""
        assert self._sight is not None
        labels, plain = self._sight.labels(key), self._plain(key, value)
        return codec.encode(labelled(orjson.loads(plain), labels)) if labels else plain

    def _plain(self, key: Key, value: bytes) -> bytes:
        if self._fills:
            value = self._filled(key, value)
        if value.startswith(self._prefix):
            if not self.kind.custom or _DECLARED in value:
                return value
            kind = self._kind_at(key)
            return codec.encode(completed(orjson.loads(value), kind)) if kind.schema.has_defaults else value
        return codec.encode(self._converted(key, value))

    def converted(self, key: Key, value: bytes) -> Object:
        """Decoded, in the version asked for."""
        obj = self._converted(key, value)
        return labelled(obj, self._sight.labels(key)) if self._sight is not None else obj

    def _converted(self, key: Key, value: bytes) -> Object:
        kind = self._kind_at(key)
        obj = convert(orjson.loads(value), kind)
        fills = kind.custom and _DECLARED not in value and kind.schema.has_defaults
        return completed(obj, kind) if fills else obj

    def whole(self, key: Key, value: bytes, revision: int) -> bytes:
        """As clients read a single object."""
        value = self.value(key, value)
        if not value.startswith(self._prefix):
            return codec.splice(value, revision)
        return b'%b"resourceVersion":"%d",%b' % (self._prefix, revision, value[self._cut :])

    def item(self, key: Key, value: bytes, revision: int) -> bytes:
        """As an item of a list: without kind and apiVersion if the kind is Kubernetes' own."""
        if self.kind.custom:
            return self.whole(key, value, revision)
        value = self.value(key, value)
        if not value.startswith(self._prefix):
            return codec.splice(value, revision)
        return b'{"metadata":{"resourceVersion":"%d",%b' % (revision, value[self._cut :])

    def items(self, records: Sequence[Record]) -> list[bytes]:
        """`item` of each: long lists are made here, so that their usual case is one expression."""
        if self.kind.custom or self._fills or self._sight is not None:
            return [self.item(r.key, r.value, r.revision) for r in records]
        prefix, cut = self._prefix, self._cut
        return [
            b'{"metadata":{"resourceVersion":"%d",%b' % (revision, value[cut:])
            if value.startswith(prefix)
            else self.item(key, value, revision)
            for key, revision, value, _ in records
        ]

    def decoded(self, key: Key, value: bytes, revision: int) -> Object:
        return codec.decode(self.value(key, value), revision)

    def objects(self, records: Sequence[Record]) -> list[Object]:
        """`decoded` of each: long lists are read here, so that their usual case is one loop without calls."""
        if self.kind.custom or self._fills or self._sight is not None:
            return [self.decoded(r.key, r.value, r.revision) for r in records]
        prefix, loads = self._prefix, orjson.loads
        found: list[Object] = []
        for key, revision, value, _ in records:
            if value.startswith(prefix):
                obj: Object = loads(value)
                obj["metadata"]["resourceVersion"] = str(revision)
            else:
                obj = self.decoded(key, value, revision)
            found.append(obj)
        return found

    def of(self, record: Record) -> bytes:
        return self.whole(record.key, record.value, record.revision)

    def told(self, key: Key, obj: Object) -> Object:
        """What a write is answered with: the object with what is said of it whenever it is read."""
        if not self._fills:
            return obj
        found: Object = orjson.loads(self._filled(key, codec.encode(obj)))
        if "resourceVersion" in obj["metadata"]:  # of a dry run there is none
            found["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
        return found

    def _filled(self, key: Key, value: bytes) -> bytes:
        if key.resource == SHARDS:
            return codec.encode(with_addresses(orjson.loads(value), fleet(self._store).url))
        if key.resource == TYPES:
            return self._with_views(key, value)
        if key.resource == BINDINGS:
            return codec.encode(with_finalizer(orjson.loads(value)))
        if key.resource == SLICES:
            return codec.encode(with_host(orjson.loads(value), fleet(self._store).url))
        return self._with_commit(key, value)

    def _with_commit(self, key: Key, value: bytes) -> bytes:
        """A Workspace's source commit is the last that changed the child's own content: it stands in the child's
        record, so that a commit there costs no write here; nor does a change of the server's address, nor a commit
        that comes while the child is held."""
        at = self._store.get(cluster_key(key.cluster))
        child = workspace_at(self._store, join(path_of(at.value), key.name)) if at else None
        if child is None or not (child.commit or child.stored):
            return value
        obj = orjson.loads(value)
        if child.commit:
            obj["metadata"].setdefault("annotations", {})[marks.SOURCE_COMMIT] = str(child.commit)
        obj["spec"]["URL"] = f"{fleet(self._store).url}/clusters/{child.path}"
        behind = lag(self._store, child)
        if behind is not None:
            obj.setdefault("status", {})["lag"] = behind
        return codec.encode(obj)

    def _with_views(self, key: Key, value: bytes) -> bytes:
        """Where workspaces of a WorkspaceType are seen that wait for its initializer or its terminator: it has both
        addresses, whether or not it has a program that looks there."""
        url, name = fleet(self._store).url, f"{key.cluster}:{key.name}"
        obj = orjson.loads(value)
        found = [{"url": f"{url}/services/{view}/{name}", "type": each} for each, view in _LIFECYCLES.items()]
        obj["status"] = {**(obj.get("status") or {}), "virtualWorkspaces": found}
        return codec.encode(obj)


def labelled(obj: Object, labels: Mapping[str, str]) -> Object:
    """An object with further labels, in place."""
    if labels:
        obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), **labels}
    return obj
