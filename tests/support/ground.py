"""Pairs of servers that differ in what one tenant has, and how their answers to another are compared.

Three kinds of worlds grow from one: ann's alone, and with a bea of whom she sees nothing, or with a bea who takes what
ann offers, in two variants that differ in every word of bea's. All stand at the same revision, and what a server draws
by chance is drawn alike: so the answers to ann have to be the same, byte for byte.
"""

from __future__ import annotations

import random
import re
import secrets
import string
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import orjson
from support.tenancy import Got, Sent, Tenancy, bearer, copied, pad
from support.tenants import BEA, Words

from apiserver.model.keys import Key
from apiserver.model.storagenames import WORKSPACES
from apiserver.model.tables import Table
from apiserver.storage.protocol import Put

_MOMENT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_AGE = re.compile(rb'"(\d+[dhms])+"')
_JWT = re.compile(rb"eyJ[\w-]+\.[\w-]+\.[\w-]+")
_INVASION = 1 << 40
"""A seed that no step has: what ann makes must not get bea's UIDs."""
_TOUCHED = 40
"""Objects of bea's that are written anew while somebody watches."""


class Foreign(NamedTuple):
    """What there is of bea's: her logical clusters by path, and what of all that ann may read nowhere. `keys`: some of
    her objects, none of which ann may see. `uids`: those of workspaces first."""

    clusters: dict[str, str]
    canaries: frozenset[str]
    keys: tuple[Key, ...]
    uids: tuple[str, ...]
    revisions: tuple[int, ...]
    hashes: tuple[str, ...]
    tokens: tuple[str, ...]


class Ground:
    """`pair(shared)`: fresh copies of two worlds, to be closed. `robot`: a token of ann's ServiceAccount; `own`: the
    logical cluster of root:ann."""

    def __init__(self, directory: Path, writes: str = "Store") -> None:
        self._directory, self._writes = directory, writes
        self._copies = 0
        base = Tenancy(directory / "base", writes)
        base.plant()
        base.close()
        self._foreign = {
            name: self._grow(name, Words(variant), consumes=name != "apart")
            for name, variant in (("apart", "p"), ("shared", "p"), ("other", "r"))
        }
        self.robot = self.own = ""
        self._level()

    def known(self, shared: bool) -> Foreign:
        return self._foreign["shared" if shared else "apart"]

    def pair(self, shared: bool) -> tuple[World, World]:
        """With controllers that have begun."""
        names = ("shared", "other") if shared else ("apart", "base")
        first, second = worlds = self.world(names[0]), self.world(names[1])
        level(worlds)
        return first, second

    def world(self, name: str) -> World:
        self._copies += 1
        at = copied(self._directory / name, self._directory / f"copy{self._copies}")
        return World(at, self._foreign.get(name), self._writes)

    def _grow(self, name: str, words: Words, *, consumes: bool) -> Foreign:
        at = Tenancy(copied(self._directory / "base", self._directory / name), self._writes)
        try:
            with drawn_alike(_INVASION):
                at.invade(words, consumes=consumes)
            return _foreign(at, words)
        finally:
            at.close()

    def _level(self) -> None:
        worlds = [Tenancy(self._directory / name, self._writes) for name in ("base", *self._foreign)]
        level(worlds)
        spec: Any = {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "spec": {"expirationSeconds": 86400},
        }
        path = "/api/v1/namespaces/default/serviceaccounts/robot/token"
        self.own = worlds[0].record("root:ann").cluster
        self.robot = worlds[0].do("POST", "root:ann", path, spec)["status"]["token"]
        for world in worlds:
            world.close()


class World(Tenancy):
    """A server of a pair. `foreign`: what of bea's is in it."""

    def __init__(self, directory: Path, foreign: Foreign | None, writes: str) -> None:
        super().__init__(directory, writes)
        self.foreign = foreign
        self._touches = 0

    def asked(self, sent: Sent) -> Got:
        """While a watch is open, bea writes."""
        return self.send(sent, self._touch)

    def _touch(self) -> None:
        self._touches += 1
        keys = self.foreign.keys if self.foreign is not None else ()
        hers = [Put(key, record.value) for key in keys if (record := self.store.get(key)) is not None]
        padding = [pad(f"-{self._touches}-{n}") for n in range(len(hers), _TOUCHED)]
        self.store.write(*hers, *padding).result()

    def bees(self) -> dict[Any, bytes]:
        """All that is stored of bea's: objects, and rows that name her workspaces."""
        assert self.foreign is not None
        clusters = set(self.foreign.clusters.values())
        found: dict[Any, bytes] = {k: v for k, v in self.everything().items() if k.cluster in clusters}
        for table in Table:
            rows = ((row.key, row.value) for row in self.store.scan_rows(table))
            found |= {(table, key): value for key, value in rows if any(c in str(key) for c in (":bee", *clusters))}
        return found


def level(worlds: Sequence[Tenancy]) -> None:
    """All at one revision, with nothing left to be done."""
    for world in worlds:
        world.settle()
    last = max(world.store.revision() for world in worlds)
    for world in worlds:
        world.reach(last)
        world.settle()
        assert world.store.revision() == last


def _foreign(at: Tenancy, words: Words) -> Foreign:
    clusters = {r.path: r.cluster for r in at.records() if r.path.startswith("root:bee") or r.path == f"user:{BEA}"}
    open_to_ann = {clusters.get("root:bee:guest", ""), clusters.get("root:bee:shop", "")}
    theirs = {k: v for k, v in at.everything().items() if k.cluster in clusters.values()}
    hidden = {key: value for key, value in theirs.items() if not _is_shown(key, clusters)}
    values = [hidden[key] for key in sorted(hidden, key=lambda key: key.resource != WORKSPACES)]
    uids = tuple(uid for value in values if (uid := orjson.loads(value)["metadata"].get("uid")))
    keys = tuple(key for key in sorted(hidden) if key.cluster == clusters["root:bee"])[:_TOUCHED]
    revisions = tuple(record.revision for key in keys if (record := at.store.get(key)) is not None)
    exports = (value for key, value in hidden.items() if key.resource == "apiexports.apis.kcp.io")
    hashes = tuple(orjson.loads(value)["status"]["identityHash"] for value in exports)
    tokens = []
    for rest in ("api/v1/configmaps", "api/v1/namespaces", "apis/tenancy.kcp.io/v1alpha1/workspaces"):
        sent = Sent(path=f"/clusters/root:bee/{rest}", query="limit=1", headers=(bearer(BEA),))
        tokens.append(orjson.loads(at.send(sent).body)["metadata"]["continue"])
    canaries = {*words.told, *uids, *hashes, *(c for c in clusters.values() if c not in open_to_ann)}
    return Foreign(clusters, frozenset(canaries), keys, uids, revisions, hashes, tuple(tokens))


def _is_shown(key: Key, clusters: dict[str, str]) -> bool:
    """Whether ann may see it: what her consumer's workspace has, and of what she takes the export and its schema."""
    if key.cluster == clusters.get("root:bee:guest"):
        return True
    return key.cluster == clusters.get("root:bee:shop") and key.name.endswith(("goods", "goods.example.io"))


def normal(got: Got) -> tuple[int, Any, bytes]:
    """Without times, and without signatures and requests' names, which are never the same."""
    headers = [(key, value) for key, value in got.headers if key not in (b"content-length", b"audit-id")]
    body = _JWT.sub(b"<token>", _AGE.sub(b'"<age>"', _MOMENT.sub(b"<time>", got.body)))
    return got.status, headers, body


@contextmanager
def drawn_alike(seed: int) -> Iterator[None]:
    """What a server draws by chance is the same whenever the seed is."""
    chance, keys, short = (random.Random(seed) for _ in range(3))

    def hexadecimal(count: int = 32) -> str:
        # Short ones are drawn once in a process, whichever server needs them first.
        drawn = keys if count == 32 else short
        return "".join(drawn.choice(string.hexdigits[:16]) for _ in range(2 * count))

    with (
        mock.patch.object(uuid, "uuid4", lambda: uuid.UUID(int=chance.getrandbits(128), version=4)),
        mock.patch.object(secrets, "choice", chance.choice),
        mock.patch("reconciler.loading.storedworkspaces.time_ns", lambda: 0),
        mock.patch.object(secrets, "token_hex", hexadecimal),
    ):
        yield
