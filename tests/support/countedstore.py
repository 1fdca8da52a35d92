"""A store that counts what is read of it."""

from __future__ import annotations

from typing import Any

from apiserver.storage.protocol import Change, Page, Store, Swept


class CountedStore:
    """`entries`: revisions read of the log, `rows`: the resource of each object that a scan gave."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.entries: list[int] = []
        self.rows: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def changes(self, after: int, limit: int = 10_000, swept: Swept | None = None) -> list[Change]:
        found = self._store.changes(after, limit, swept)
        self.entries += [change.revision for change in found]
        return found

    def scan(self, resource: str, *args: Any, **options: Any) -> Page:
        page = self._store.scan(resource, *args, **options)
        self.rows += [resource] * len(page.records)
        return page
