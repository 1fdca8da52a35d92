"""All rows of a table, all objects of a resource, read page by page: no read lasts while its caller works on what it
found."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.model.keys import Key
from apiserver.model.tables import Table
from apiserver.storage.protocol import Record, Row, View

_PAGE = 1000


def rows(store: View, table: Table, prefix: str = "") -> Iterator[Row]:
    """Rows whose key begins with `prefix`, in order. What is written meanwhile behind the page at hand is seen."""
    after: str | None = None
    while page := store.scan_rows(table, prefix, after=after, limit=_PAGE):
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].key


def pages(store: View, resource: str, cluster: str | None = None) -> Iterator[list[Record]]:
    """The objects of a resource, of one workspace or (None) of all, in order, as `rows`."""
    after: Key | None = None
    while True:
        page = store.scan(resource, cluster, after=after, limit=_PAGE, count=False)
        yield page.records
        if page.more is None:
            return
        after = page.more
