"""The tree of workspaces as records in the store: which exist, under which logical cluster, and how far each is loaded.

Written by the reconciler in the transaction that loads a workspace; read by every API request. Kept beside the objects
rather than in a process, since a million of them would not fit and a point read costs microseconds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from apiserver.model.keys import Internal, Key
from apiserver.storage.protocol import View


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """One workspace.

    `cluster`: its logical cluster name. `parent`: the parent's path ("" for root). `type`: its WorkspaceType as
    `<path>:<name>`. `served`: whether it had a good commit; until then it answers 503 with `errors`. `commit`: the
    commit that last changed its own content. `head`: the commit at which it was last judged good, so the base of the
    next difference. `origin`, `origin_time`: the commit in which it appeared, and that commit's committer time (seconds
    since 1970). `errors`: why a newer commit is held back (`path:line: what`), [] if none is. `directory`: its
    directory in the repository, "" for what ships with Treeplane.
    """

    path: str
    cluster: str
    parent: str
    type: str = "root:universal"
    served: bool = True
    commit: str = ""
    head: str = ""
    origin: str = ""
    origin_time: int = 0
    directory: str = ""
    errors: list[str] = field(default_factory=list)
    writes: str = ""
    builtins: str = ""

    def encode(self) -> bytes:
        return bytes(memoryview(orjson.dumps(self)))

    @staticmethod
    def decode(value: bytes) -> WorkspaceRecord:
        return WorkspaceRecord(**orjson.loads(value))


@dataclass(frozen=True, slots=True)
class FleetRecord:
    """What is served. `loaded`: the first load is complete (until then unknown workspaces answer 503, never 404).

    `url`: where clients reach the server. `claims`: directories that lost their workspace.yaml but hold manifests
    still, with the workspaces they belong to. `kept`: workspaces that stay, with all below them, although a commit took
    their directories away, and the commit that was served before. `lost`: the status commit of a recovery that could
    not bring back every workspace, "" if there is none. `ships`: digests of what ships with Treeplane and of what a
    cluster of Kubernetes' kinds starts with, as it was when such workspaces were looked at. `holder`: who writes the
    status branch where that is another server, and this one only shows what it says; "" if it is this one. `shown`: the
    status commit that is shown then. `arriving`: the commit that is on its way into the store, "" between two: some
    workspaces are there already.
    """

    fleet: str = ""
    loaded: bool = False
    commit: str = ""
    branch: str = ""
    done: int = 0
    total: int = 0
    error: str = ""
    writes: str = "ReadOnly"
    url: str = ""
    claims: dict[str, str] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    ships: str = ""
    lost: str = ""
    holder: str = ""
    shown: str = ""
    arriving: str = ""

    def encode(self) -> bytes:
        return orjson.dumps(self)

    @staticmethod
    def decode(value: bytes) -> FleetRecord:
        return FleetRecord(**orjson.loads(value))


FLEET_KEY = Key(Internal.FLEET, "", "", "")
TROUBLES_KEY = Key(Internal.FLEET, "", "", "troubles")
"""Beside the fleet's record, which another thread writes."""


def workspace_key(path: str) -> Key:
    return Key(Internal.WORKSPACE, "", "", path)


def cluster_key(cluster: str) -> Key:
    """The index from logical cluster name to path; its value is the path."""
    return Key(Internal.WORKSPACE, cluster, "", "")


def workspace_at(store: View, path: str) -> WorkspaceRecord | None:
    record = store.get(workspace_key(path))
    return WorkspaceRecord.decode(record.value) if record else None


def workspace_of(store: View, cluster: str) -> WorkspaceRecord | None:
    """By logical cluster name."""
    record = store.get(cluster_key(cluster))
    return workspace_at(store, record.value.decode()) if record else None


def held(store: View) -> dict[str, list[str]]:
    """Workspaces whose newest content is held back: path → errors. Reads every record and decodes only these."""
    found = map(WorkspaceRecord.decode, (v for v in _values(store) if b'"errors":[]' not in v))
    return {workspace.path: workspace.errors for workspace in found}


def with_builtins(store: View, builtins: str) -> list[str]:
    """Paths of the workspaces that start with these kinds. As `held`."""
    found = map(WorkspaceRecord.decode, (v for v in _values(store) if f'"{builtins}"'.encode() in v))
    return [workspace.path for workspace in found if workspace.builtins == builtins]


def below(store: View, path: str) -> Iterator[str]:
    """Paths of the workspaces below the one at `path`, of any depth. Reads theirs alone."""
    after, prefix = workspace_key(f"{path}:"), f"{path}:"
    while True:
        page = store.scan(Internal.WORKSPACE, "", after=after, limit=1000, count=False)
        for record in page.records:
            if not record.key.name.startswith(prefix):
                return
            yield record.key.name
        if page.more is None:
            return
        after = page.more


def _values(store: View) -> Iterator[bytes]:
    """Of all workspaces' records."""
    after = None
    while True:
        page = store.scan(Internal.WORKSPACE, "", after=after, limit=1000)
        yield from (record.value for record in page.records)
        if page.more is None:
            return
        after = page.more


def count(store: View) -> int:
    """How many workspaces there are."""
    return store.count(Internal.WORKSPACE, "")


def fleet(store: View) -> FleetRecord:
    record = store.get(FLEET_KEY)
    return FleetRecord.decode(record.value) if record else FleetRecord()


def troubles(store: View) -> dict[str, str]:
    """What is wrong with the fleet as a whole: by kind, a sentence with what goes on. Reads go on meanwhile."""
    record = store.get(TROUBLES_KEY)
    return _troubles(record.value) if record else {}


@lru_cache(4)
def _troubles(value: bytes) -> dict[str, str]:
    found: dict[str, str] = orjson.loads(value)
    return found


def encoded_troubles(found: dict[str, str]) -> bytes:
    return orjson.dumps(found, option=orjson.OPT_SORT_KEYS)


def summary_key(cluster: str) -> Key:
    return Key(Internal.SUMMARY, cluster, "", "")


def summary(store: View, cluster: str) -> dict[str, Any]:
    record = store.get(summary_key(cluster))
    found: dict[str, Any] = orjson.loads(record.value) if record else {}
    return found
