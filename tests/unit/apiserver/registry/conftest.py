"""A store in memory: the protocol without disk, threads and history."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from apiserver.model.keys import Key
from apiserver.storage.protocol import NEVER, Change, Check, Conflict, Delete, Page, Put, Record


class MemoryStore:
    """Enough of storage.protocol.Store for the registry."""

    MARKED = ("customresourcedefinitions.apiextensions.k8s.io", "apibindings.apis.kcp.io",
              "apiresourceschemas.apis.kcp.io")  # fmt: skip

    def __init__(self) -> None:
        self.data: dict[Key, Record] = {}
        self.log: list[Change] = []
        self.last = 100
        self.marks: dict[str, int] = {}
        self.scans = 0
        self.writes = 0

    def revision(self) -> int:
        return self.last

    def oldest(self) -> int:
        return 100

    def marked(self, cluster: str | None = None) -> int:
        return max(self.marks.values(), default=0) if cluster is None else self.marks.get(cluster, 0)

    def view(self) -> AbstractContextManager[MemoryStore]:
        return nullcontext(self)

    def get(self, key: Key) -> Record | None:
        return self.data.get(key)

    def get_many(self, keys: Any) -> list[Record | None]:
        return [self.data.get(k) for k in keys]

    def scan(self, resource: str, cluster: str | None = None, namespace: str | None = None, *,
             after: Key | None = None, limit: int | None = None, at: int | None = None) -> Page:  # fmt: skip
        self.scans += 1
        found = [
            r
            for k, r in sorted(self.data.items())
            if k.resource == resource
            and cluster in (None, k.cluster)
            and namespace in (None, k.namespace)
            and (after is None or k > after)
        ]
        part = found if limit is None else found[:limit]
        more = part[-1].key if len(part) < len(found) else None
        return Page(part, self.last, more, len(found) - len(part))

    def count(self, resource: str, cluster: str | None = None, namespace: str | None = None) -> int:
        return len(self.scan(resource, cluster, namespace).records)

    def changes(self, after: int, limit: int = 10_000) -> list[Change]:
        return [c for c in self.log if c.revision > after][:limit]

    def write(self, *ops: Put | Delete | Check, log: bool = True) -> Future[list[int]]:
        done: Future[list[int]] = Future()
        for op in ops:
            now = self.data.get(op.key)
            at = now.revision if now else NEVER
            if op.expect is not None and op.expect != at:
                done.set_exception(Conflict(op.key, op.expect, at))
                return done
        revisions = []
        for op in ops:
            if isinstance(op, Check) or (isinstance(op, Delete) and op.key not in self.data):
                revisions.append(0)
                continue
            self.last += 1
            self.writes += 1
            old = self.data.pop(op.key, None)
            value = op.value if isinstance(op, Put) else None
            if isinstance(op, Put):
                self.data[op.key] = Record(op.key, self.last, op.value, op.stamp)
            before = (old.value, old.revision) if old else (None, 0)
            self.log.append(Change(self.last, op.key, value, *before, b""))
            if op.key.resource in self.MARKED:
                self.marks[op.key.cluster] = self.last
            revisions.append(self.last)
        done.set_result(revisions)
        return done

    def compact(self, keep: int) -> None:
        self.log = self.log[-keep:]

    def subscribe(self, ring: Any) -> Any:
        return lambda: None

    def close(self) -> None:
        pass


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()
